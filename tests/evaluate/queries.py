"""Queries of examples/sql, whose rows go over Faro or over sockets: what its QueryBench runs."""

import json
from statistics import mean

import programs
from contestant import Contestant, Result
from programs import SQL_CLASS_PATH, SQL_JAR, Command

BENCH = "io.faro.sql.QueryBench"
TIME_LIMIT_S = 60  # of one query
REFERENCE_LIMIT_S = 300  # of all queries on one node


class Queries(Contestant):
    """The engine with one of its carriers, by its name there."""

    product = "Faro"
    expected_seconds = 35
    _expected: dict[tuple, dict] = {}  # rows and checksum by query, by tables: those of one node with one worker

    def __init__(self, name: str, label: str, carrier: str):
        super().__init__(name, label, "java")
        self.carrier = carrier

    def missing(self) -> str | None:
        return None if SQL_JAR.exists() else "examples/sql is not built"

    def version(self) -> str:
        return programs.run(Command([programs.FARO, "--version"]), 10).splitlines()[0]

    def command(self, workload: str, parameters: dict) -> Command:
        runs = {name: parameters[name] for name in ("warmup", "laps", "sampled")}
        return _command(parameters, parameters["processes"], parameters["workers"], self.carrier, runs)

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        """One for each query; verified if all its runs gave what one node gives."""
        expected = self._reference(parameters)
        place = {name: parameters[name] for name in ("processes", "workers", "data", "scale")}
        found = []
        for query in json.loads(output)["queries"]:
            values = {
                # Not medians: some runs collect garbage, and that is part of what a query costs.
                "seconds": mean(run["seconds"] for run in query["runs"]),
                "cpu_seconds_per_query": mean(run["cpu_seconds"] for run in query["runs"]),
            }
            if query["shuffle_share"] is not None:  # something was seen
                values["shuffle_share"] = query["shuffle_share"]
            result = (query["rows"], query["checksum"])
            verified = query["verified"] and result == expected[query["name"]]
            found.append(({**place, "query": query["name"]}, Result(values, verified, *result)))
        return found

    def _reference(self, parameters: dict) -> dict:
        tables = (parameters["data"], parameters["scale"])
        if tables not in self._expected:
            command = _command(parameters, 1, 1, "faro", {"warmup": 0, "laps": 1, "sampled": 0})
            report = json.loads(programs.run(command, REFERENCE_LIMIT_S))
            self._expected[tables] = {one["name"]: (one["rows"], one["checksum"]) for one in report["queries"]}
        return self._expected[tables]


def _command(parameters: dict, nodes: int, workers: int, carrier: str, runs: dict) -> Command:
    words = ["java", "-XX:+UseSerialGC", "-Xmx2g", "-cp", SQL_CLASS_PATH, BENCH, "--nodes", nodes, "--workers", workers]
    words += ["--carrier", carrier, "--data", parameters["data"], "--scale", parameters["scale"]]
    words += ["--limit", TIME_LIMIT_S]
    if "queries" in parameters:
        words += ["--queries", parameters["queries"]]
    for name, count in runs.items():
        words += [f"--{name}", count]
    return Command([str(word) for word in words])
