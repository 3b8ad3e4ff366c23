"""Faro and the sockets baselines in C++: what `faro-lab bench` runs."""

import json
import os
import secrets

from contestant import Contestant, Result
from programs import FARO_LAB, STANDARD, Command, Failed

# JVMs until their compilers are done.
_SECRETS = {"FARO_SECRET", "FARO_SECURITY_SECRET_FILE"}
WARMUP_ROUNDS = {"java": 5, "c++": 1}
_BENCHMARKS = {
    "two_stage": "two-stage", "connect": "two-stage", "idle": "two-stage", "receive": "receive", "messages": "link",
    "variable_rows": "variable-rows",
}  # fmt: skip
_FLAGS = {
    "processes": "--processes", "workers": "--workers", "pattern": "--pattern", "row_bytes": "--row-bytes", "rows": "--rows",
    "hash": "--hash", "idle_seconds": "--idle", "warmup": "--warmup", "ring_bytes": "--ring", "threshold_bytes": "--threshold",
    "message_bytes": "--frame", "count": "--count",
}  # fmt: skip


class Faro(Contestant):
    """One of the carriers of `faro-lab bench two-stage`, by its name there, which is this one's where no other is given; with more
    `flags`, if it is to have some."""

    product = "Faro"
    needs = {STANDARD: "./run build"}
    version_command = (STANDARD, "--version")

    def __init__(self, name: str, label: str, transport: str | None = None, *flags: str):
        super().__init__(name, label)
        self.transport = transport or name
        self.flags = flags

    def command(self, workload: str, parameters: dict) -> Command:
        benchmark = _BENCHMARKS[workload]
        words = [STANDARD] if benchmark == "two-stage" else [FARO_LAB, "bench"]
        words.append(benchmark)
        for name, flag in _FLAGS.items():
            words += [flag, parameters[name]] if name in parameters else []
        environment = {"FARO_SECRET": secrets.token_hex(32)} if parameters.get("secret") == "yes" else {}
        return Command([*words, "--transport", self.transport, *self.flags, "--repetitions", 1, "--json"], environment)

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        if parameters.get("secret") == "no" and _SECRETS & os.environ.keys():
            raise Failed(f"no secret is compared with one: unset {', '.join(sorted(_SECRETS))}")
        report = json.loads(output)
        if workload in ("two_stage", "connect", "idle"):
            report = report["contests"][0]
        one = report["results"][0]
        if workload == "messages":
            seconds = one["runs"][-1]
            rate = parameters["message_bytes"] * parameters["count"] / seconds
            return Result({"seconds": seconds, "bytes_per_second": rate}, one["verified"])
        values = dict(one["runs"][-1])
        if "cold" in one:
            values |= {"cold_seconds": one["cold"]["seconds"], "cold_cpu_ns_per_hop": one["cold"]["cpu_ns_per_hop"]}
        if workload == "receive":
            values["bytes_per_second_per_node"] = one["bytes_per_second_per_node"]
        if workload == "connect":
            values = {"connect_seconds": one["connect_seconds"][0]}
        if workload == "idle":
            values = {"idle_cpu_seconds": one["idle_cpu_ns"] * 1e-9}
        if workload == "variable_rows":
            values["bytes_per_cpu_second"] = one["bytes_per_cpu_second"]
        return Result(values, one["verified"], one["count"], one["checksum"])


class RowWays(Contestant):
    """Ways to send rows, one at a time and many, in turns within one run of `faro-lab bench run-time-width`: each is a contestant."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")
    ways = {
        "typed": "rows of a compiled type", "bytes": "rows whose width is given at run time", "in_place": "such rows, written in place",
        "typed_broadcast": "rows of a compiled type, broadcast", "bytes_broadcast": "rows whose width is given at run time, broadcast",
        "typed_all": "rows of a compiled type, many at a time", "by_key": "rows whose width is given at run time, many, by their key",
        "to_vector": "such rows, many, by a vector of receivers", "by_offsets": "rows with a length each, many, by offsets",
    }  # fmt: skip

    def command(self, workload: str, parameters: dict) -> Command:
        flags = ["--row-bytes", parameters["row_bytes"], "--rows", parameters["rows"], "--repetitions", parameters["rounds"]]
        return Command([FARO_LAB, "bench", "run-time-width", *flags, "--json"])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        report = json.loads(output)
        names = {"send_ns": "send_cpu_ns_per_row", "receive_ns": "receive_cpu_ns_per_row"}
        return [
            (parameters, Result({names[name]: ns for name, ns in report["ways"][way].items()}, report["verified"], contestant=f"row-{way}"))
            for way in self.ways
        ]


class GroupWays(Contestant):
    """Rows to groups of receivers, in turns within one run of `faro-lab bench groups`: each way is a contestant."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")
    ways = {
        "one_group": "one group of two", "overlap": "two groups that share a receiver", "apart": "two groups that share none",
        "broadcast": "no group, each row by a broadcast",
    }  # fmt: skip

    def command(self, workload: str, parameters: dict) -> Command:
        flags = ["--row-bytes", parameters["row_bytes"], "--rows", parameters["rows"], "--repetitions", parameters["rounds"]]
        return Command([FARO_LAB, "bench", "groups", *flags, "--json"])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        report = json.loads(output)

        def values(way: dict) -> dict:
            both = way["send_ns"] + way["receive_ns"]
            return {"cpu_ns_per_copy": both, "send_cpu_ns_per_copy": way["send_ns"], "rows_per_frame": way["rows_per_frame"]}

        return [
            (parameters, Result(values(report["ways"][way]), report["verified"], contestant=f"group-{way}")) for way in self.ways
        ]


LABELS = {f"row-{way}": text for way, text in RowWays.ways.items()} | {f"group-{way}": text for way, text in GroupWays.ways.items()}
