"""Operators over shuffles: what `faro-lab bench operators` measures."""

import json

from contestant import Contestant, Result
from programs import FARO_LAB, Command


class OperatorWays(Contestant):
    """All contestants of one point of `faro-lab bench operators`, in turns within one run; each of `ways` is one, by its name there."""

    product = "Faro"
    needs = {FARO_LAB: "./run build"}
    version_command = (FARO_LAB, "--version")
    prefix = ""
    ways: dict[str, str] = {}

    def command(self, workload: str, parameters: dict) -> Command:
        words = [FARO_LAB, "bench", "operators", "--rows", parameters["rows"], "--transport", parameters["transport"]]
        words += ["--processes", parameters["processes"], "--workers", parameters["workers"], *self.flags(parameters)]
        return Command([*words, "--repetitions", 1, "--json"])

    def flags(self, parameters: dict) -> list:
        raise NotImplementedError

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        (point,) = json.loads(output)["results"]
        return [(parameters, self._result(way)) for way in point["contestants"]]

    def _result(self, way: dict) -> Result:
        values = {**way["runs"][-1], "cpu_ns_per_row": way["cpu_ns_per_row"]}
        return Result(values, way["verified"], way["count"], way["checksum"], contestant_of(self.prefix, way["name"]))


class AggregationWays(OperatorWays):
    expected_seconds = 6
    prefix = "aggregation"
    ways = {
        "automatic": "aggregation, its table chosen by itself", "tree": "aggregation by a tree (Dist. AGG)", "pass": "every row sent",
        "4 Ki": "a table of 4 Ki groups", "16 Ki": "a table of 16 Ki groups", "64 Ki": "a table of 64 Ki groups",
        "256 Ki": "a table of 256 Ki groups", "1024 Ki": "a table of 1 Mi groups",
    }  # fmt: skip

    def flags(self, parameters: dict) -> list:
        more = ["--exponent", parameters["exponent"]] if "exponent" in parameters else []
        return ["--groups", parameters["groups"], "--keys", parameters["keys"], *more]


class JoinWays(OperatorWays):
    expected_seconds = 8
    prefix = "join"
    ways = {
        "radix join": "radix join", "materialised": "rows received first, then partitioned and joined (GHJ)",
        "by hand": "one thread by hand, without a shuffle",
    }  # fmt: skip

    def flags(self, parameters: dict) -> list:
        return ["--joins", "--ratios", parameters["ratio"]]


def contestant_of(prefix: str, way: str) -> str:
    return f"{prefix}-{way.replace(' ', '-')}"


LABELS = {contestant_of(ways.prefix, name): text for ways in (AggregationWays, JoinWays) for name, text in ways.ways.items()}
AUTOMATIC, TREE = "aggregation-automatic", "aggregation-tree"
JOIN, MATERIALISED, BY_HAND = "join-radix-join", "join-materialised", "join-by-hand"
# What the automatic table is compared with.
CHOICES = tuple(contestant_of(AggregationWays.prefix, name) for name in AggregationWays.ways if name != "automatic")
