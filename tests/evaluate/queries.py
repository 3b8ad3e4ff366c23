"""Queries of examples/sql, whose rows go over Faro and over sockets: what its QueryBench runs."""

import json
import sys
from pathlib import Path
from statistics import mean

import programs
from contestant import Contestant, Result
from programs import FARO_LAB, SQL_CLASS_PATH, SQL_JAR, Command

BENCH = "io.faro.sql.bench.QueryBench"
IN_TURN = Path(__file__).with_name("in_turn.py")
LABELS = {"sql-faro": "Faro in the SQL engine", "sql-sockets": "tuned NIO sockets in the SQL engine"}
TIME_LIMIT_S = 60  # of one query
REFERENCE_LIMIT_S = 300  # of all queries on one node


class Queries(Contestant):
    """The engine over Faro and over sockets: two clusters at the same time, of which one runs all queries once, then the
    other. A cluster that has not its turn does nothing."""

    product = "Faro"
    version_command = (FARO_LAB, "--version")
    expected_seconds = 70
    _carriers = {"sql-faro": "faro", "sql-sockets": "sockets"}  # as the engine calls them
    _expected: dict[tuple, dict] = {}  # rows and checksum by query, by tables: those of one node with one worker

    def missing(self) -> str | None:
        return None if SQL_JAR.exists() else "examples/sql is not built"

    def command(self, workload: str, parameters: dict) -> Command:
        carriers = ",".join(self._carriers.values())
        return Command([sys.executable, IN_TURN, carriers, *_bench(parameters), "--in-turn", "--carrier"])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        """One for each query and carrier; verified if all its runs gave what one node gives."""
        expected = self._reference(parameters)
        place = {name: parameters[name] for name in ("processes", "workers", "data", "scale")}
        reports = json.loads(output)
        return [
            _result(contestant, place, query, expected)
            for contestant, carrier in self._carriers.items()
            for query in reports[carrier]["queries"]
        ]

    def _reference(self, parameters: dict) -> dict:
        tables = (parameters["data"], parameters["scale"])
        if tables not in self._expected:
            bench = _bench({**parameters, "processes": 1, "workers": 1, "warmup": 0, "laps": 1, "sampled": 0})
            report = json.loads(programs.run(Command(bench), REFERENCE_LIMIT_S))
            self._expected[tables] = {one["name"]: (one["rows"], one["checksum"]) for one in report["queries"]}
        return self._expected[tables]


def _result(contestant: str, place: dict, query: dict, expected: dict) -> tuple[dict, Result]:
    values = {
        # Not medians: some runs collect garbage, and that is part of what a query costs.
        "seconds": mean(run["seconds"] for run in query["runs"]),
        "cpu_seconds_per_query": mean(run["cpu_seconds"] for run in query["runs"]),
    }
    if query["shuffle_share"] is not None:  # something was seen
        values["shuffle_share"] = query["shuffle_share"]
    result = (query["rows"], query["checksum"])
    verified = query["verified"] and result == expected[query["name"]]
    return {**place, "query": query["name"]}, Result(values, verified, *result, contestant)


def _bench(parameters: dict) -> list:
    # Over sockets there are no others, and what is compared is the carrier.
    words = ["java", "-XX:+UseSerialGC", "-Xmx2g", "-cp", SQL_CLASS_PATH, BENCH, "--operators", "calcite"]
    flags = {"nodes": parameters["processes"], **parameters, "limit": TIME_LIMIT_S}
    for name in ("nodes", "workers", "data", "scale", "limit", "queries", "warmup", "laps", "sampled"):
        words += [f"--{name}", flags[name]] if name in flags else []
    return words
