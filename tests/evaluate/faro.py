"""Faro and the sockets baselines, in C++ and Java: what `faro-lab bench` runs."""

import json

from contestant import Contestant, Result
from programs import FARO, JAVA_CLASS_PATH, JAVA_JAR, Command

# JVMs until their compilers are done.
WARMUP_ROUNDS = {"java": 5, "c++": 1}
_BENCHMARKS = {"two_stage": "two-stage", "connect": "two-stage", "receive": "receive", "messages": "link"}
_FLAGS = {
    "processes": "--processes", "workers": "--workers", "pattern": "--pattern", "row_bytes": "--row-bytes", "rows": "--rows",
    "warmup": "--warmup", "ring_bytes": "--ring", "threshold_bytes": "--threshold",
    "message_bytes": "--frame", "count": "--count",
}  # fmt: skip


class Faro(Contestant):
    """One of the carriers of `faro-lab bench two-stage`, by its name there."""

    product = "Faro"
    needs = {FARO: "./run build"}
    version_command = (FARO, "--version")

    def __init__(self, name: str, label: str, language: str):
        super().__init__(name, label)
        self.language = language
        self.expected_seconds = 8 if language == "java" else 1

    def missing(self) -> str | None:
        if self.language == "java" and not JAVA_JAR.exists():
            return "java/ is not built"
        return super().missing()

    def command(self, workload: str, parameters: dict) -> Command:
        words = [FARO, "bench", _BENCHMARKS[workload]]
        if words[-1] == "two-stage":
            parameters = {"warmup": WARMUP_ROUNDS[self.language], **parameters}
        for name, flag in _FLAGS.items():
            words += [flag, parameters[name]] if name in parameters else []
        if self.language == "java":
            words += ["--java", JAVA_CLASS_PATH]
        return Command([*words, "--transport", self.name, "--repetitions", 1, "--json"])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        report = json.loads(output)
        if workload in ("two_stage", "connect"):
            report = report["contests"][0]
        one = report["results"][0]
        if workload == "messages":
            seconds = one["runs"][-1]
            rate = parameters["message_bytes"] * parameters["count"] / seconds
            return Result({"seconds": seconds, "bytes_per_second": rate}, one["verified"])
        values = dict(one["runs"][-1])
        if workload == "receive":
            values["bytes_per_second_per_node"] = one["bytes_per_second_per_node"]
        if workload == "connect":
            values = {"connect_seconds": one["connect_seconds"][0]}
        return Result(values, one["verified"], one["count"], one["checksum"])
