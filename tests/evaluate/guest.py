"""Faro over the real RDMA drivers, in an emulated guest: the suite `evaluate` of tests/softroce."""

import json

import programs
from contestant import Result
from measurement import Measurement
from peer_rounds import last_round
from programs import ROOT, Command

# With what was built for everything else; `./run softroce evaluate` would also build the tests that its other suites need.
COMMAND = Command(["tests/softroce/softroce", "evaluate"])
LOGS = ROOT / "build/softroce/logs/evaluate"
EXPECTED_SECONDS = 900.0
LABELS = {
    "sockets": "tuned sockets",
    "tcp": "Faro over TCP",
    "rxe": "Faro over Soft-RoCE",
    "siw": "Faro over Soft-iWARP",
    "java-nio": "tuned Java NIO sockets",
    "java-rxe": "Faro in Java over Soft-RoCE",
    "java-siw": "Faro in Java over Soft-iWARP",
}


class Missing(Exception):
    """Why there can be no guest here."""


def measure(time_limit_s: float) -> list[Measurement]:
    """Blocks for a quarter of an hour. Raises Missing, Failed."""
    if reason := programs.found("qemu-system-x86_64", "Debian package qemu-system-x86"):
        raise Missing(reason)
    for old in LOGS.glob("*.json"):
        old.unlink()
    programs.run(COMMAND, time_limit_s)
    return [one for file in sorted(LOGS.glob("*.json")) for one in read(file.stem, file.read_text())]


def read(name: str, text: str) -> list[Measurement]:
    """Of a file called <contestant>.<workers>.<lap>[.<node>].json; of several nodes the first has it all."""
    contestant, workers, lap, *node = name.split(".")
    if node and node[0] != "0":
        return []
    report = json.loads(text)
    if "contests" in report:
        one = report["contests"][0]["results"][0]
        rows, result = one["rows_per_process"], Result(one["runs"][-1], one["verified"], one["count"], one["checksum"])
    else:
        one, rows, result = report, report["rows"], last_round(report)
    if not result.verified:
        raise ValueError(f"{name}: a wrong result")
    parameters = {"processes": one["processes"], "workers": int(workers), "rows": rows}
    measured = (result.values, result.count, result.checksum, True)
    return [Measurement(contestant, parameters, int(lap), COMMAND.text(), *measured)]
