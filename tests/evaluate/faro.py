"""Faro and the sockets baselines, in C++ and Java: what `faro bench` runs."""

import json

import programs
from contestant import Contestant, Result
from programs import FARO, JAVA_CLASS_PATH, JAVA_JAR, Command

# JVMs until their compilers are done.
WARMUP_ROUNDS = {"java": 5, "c++": 1}


class Faro(Contestant):
    """One of the carriers of `faro bench two-stage`, by its name there."""

    product = "Faro"

    def __init__(self, name: str, label: str, language: str):
        super().__init__(name, label, language)
        self.expected_seconds = 8 if language == "java" else 1

    def missing(self) -> str | None:
        if self.language == "java" and not JAVA_JAR.exists():
            return "java/ is not built"
        return programs.found(FARO, "./run build")

    def version(self) -> str:
        return programs.run(Command([FARO, "--version"]), 10).splitlines()[0]

    def command(self, workload: str, parameters: dict) -> Command:
        flags = {"two_stage": self._two_stage, "connect": self._two_stage, "receive": _receive, "messages": _messages}
        words = [FARO, "bench", *flags[workload](parameters), "--transport", self.name, "--repetitions", 1, "--json"]
        return Command([str(word) for word in words])

    def _two_stage(self, parameters: dict) -> list:
        words = ["two-stage", "--processes", parameters["processes"], "--workers", parameters["workers"]]
        words += ["--rows", parameters["rows"], "--warmup", parameters.get("warmup", WARMUP_ROUNDS[self.language])]
        if self.language == "java":
            words += ["--java", JAVA_CLASS_PATH]
        for parameter, flag in (("ring_bytes", "--ring"), ("threshold_bytes", "--threshold")):
            if parameter in parameters:
                words += [flag, parameters[parameter]]
        return words

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        report = json.loads(output)
        if workload in ("two_stage", "connect"):
            one = report["contests"][0]["results"][0]
        else:
            one = report["results"][0]
        if workload == "messages":
            seconds = one["runs"][-1]
            values = {
                "seconds": seconds,
                "bytes_per_second": parameters["message_bytes"] * parameters["count"] / seconds,
            }
            return Result(values, verified=one["verified"])
        values = dict(one["runs"][-1])
        if workload == "receive":
            values["bytes_per_second_per_node"] = one["bytes_per_second_per_node"]
        if workload == "connect":
            values = {"connect_seconds": one["connect_seconds"][0]}
        return Result(values, one["verified"], one["count"], one["checksum"])


def _receive(parameters: dict) -> list:
    words = ["receive", "--processes", parameters["processes"], "--pattern", parameters["pattern"]]
    return words + ["--row-bytes", parameters["row_bytes"], "--rows", parameters["rows"]]


def _messages(parameters: dict) -> list:
    return ["link", "--frame", parameters["message_bytes"], "--count", parameters["count"]]
