"""SQL on a cluster of Flink, over Netty and over Faro: what examples/flink's QueryBench runs."""

import json
import sys
from pathlib import Path

import programs
from contestant import Contestant, Result
from measurement import Comparison, Measurements
from programs import ROOT, Command

EXAMPLE = ROOT / "examples/flink"
JARS = (EXAMPLE / "target/faro-flink-example-0.1.0.jar", ROOT / "java/faro-flink/target/faro-flink-0.1.0.jar")
CLASS_PATH = ROOT / "build/flink/examples-2.3.0.classpath"
IN_TURN = Path(__file__).with_name("in_turn.py")
NETTY, FARO = "flink-jobs-netty", "flink-jobs-faro"
LABELS = {NETTY: "Flink's jobs over Netty", FARO: "Flink's jobs over Faro"}
_CARRIERS = {NETTY: "netty", FARO: "faro"}  # as QueryBench calls them
_MEMORY = "-Dtaskmanager.memory.managed.size=512m"


class FlinkJobs(Contestant):
    """Two clusters at the same time, of which one runs a query, then the other."""

    product = "Flink"
    expected_seconds = 900

    def missing(self) -> str | None:
        return programs.not_built("Flink's jars or what runs beside them", *JARS, CLASS_PATH)

    def version(self) -> str:
        return "Flink " + CLASS_PATH.stem.removeprefix("examples-")

    def command(self, workload: str, parameters: dict) -> Command:
        words = [word for name, value in parameters.items() for word in (f"--{name}", value)]
        return Command([sys.executable, IN_TURN, ",".join(_CARRIERS.values()), EXAMPLE / "built", "QueryBench", _MEMORY, *words])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        """One for each query, carrier and round; verified if all rounds over both carriers gave the same rows."""
        reports = {contestant: _by_name(json.loads(output)[carrier]) for contestant, carrier in _CARRIERS.items()}
        place = {name: value for name, value in parameters.items() if name not in ("queries", "warmup", "rounds")}
        found = []
        for contestant, queries in reports.items():
            for name, query in queries.items():
                outcome = (query["rows"], query["checksum"])
                same = all((one[name]["rows"], one[name]["checksum"]) == outcome for one in reports.values())
                verified = query["verified"] and query["rows"] > 0 and same
                for number, run in enumerate(query["runs"]):
                    values = {
                        "seconds": run["seconds"],
                        "cpu_seconds_per_query": run["cpu_seconds"],
                        "transport_share": run["transport_cpu_seconds"] / run["cpu_seconds"],
                    }
                    where = {**place, "query": name, "round": number}
                    found.append((where, Result(values, verified, *outcome, contestant)))
        return found


def _by_name(report: dict) -> dict:
    return {query["name"]: query for query in report["queries"]}


def places(ms: Measurements, **parameters) -> list[dict]:
    """Mode, number of TaskManagers and query of all that was measured over both, with these parameters."""
    return [
        place
        for place in ms.places("mode", "taskmanagers", "query")
        if parameters.items() <= place.items() and ms.of(NETTY, **place) and ms.of(FARO, **place)
    ]


def name(place: dict) -> str:
    return f"{place['query']} on {place['taskmanagers']}"


def beside_netty(ms: Measurements, value: str, place: dict) -> Comparison:
    """In times of what it takes over Netty, in the same round."""
    return ms.compare(value, NETTY, FARO, **place)


def transport_share(ms: Measurements, place: dict) -> float:
    """Over Netty: the part of the TaskManagers' CPU time that its threads take."""
    return ms.spread("transport_share", NETTY, **place).median
