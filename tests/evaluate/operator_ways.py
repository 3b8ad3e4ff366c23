"""Operators over shuffles: what `faro-lab bench operators` measures, and the same rows grouped and joined by DuckDB and Arrow."""

import json

from contestant import Contestant, Result
from peer_rounds import printed
from programs import FARO_LAB, PYARROW, ROOT, Command, not_built, run


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
        if "operator_bytes" in parameters:
            for setting in ("operator", "overflow"):
                words += ["--set", f"{setting}.memory_bytes={parameters[f'{setting}_bytes']}"]
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


class OtherOperators(Contestant):
    """DuckDB or Arrow, in one process. It has no transport, and stands beside each of ours."""

    expected_seconds = 6
    PROGRAM = ROOT / "tests/evaluate/peers/operators.py"

    def __init__(self, name: str, label: str, product: str, transports: tuple[str, ...]):
        super().__init__(name, label)
        self.product = product
        self.transports = transports

    def missing(self) -> str | None:
        return not_built(self.product, PYARROW)

    def version(self) -> str:
        return run(Command([PYARROW, "-c", f"import {self.product}; print({self.product}.__version__)"]), 20).strip()

    def command(self, workload: str, parameters: dict) -> Command:
        by = "duckdb" if self.product == "duckdb" else "arrow"
        if parameters["part"] == "aggregation":
            what = ["groups", "--groups", parameters["groups"]]
        else:
            what = ["join", "--ratio", parameters["ratio"]]
        return Command([PYARROW, "-B", self.PROGRAM, by, *what, "--rows", parameters["rows"]])

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        report = printed(output)
        values = {name: report[name] for name in ("seconds", "cpu_seconds", "cpu_ns_per_row")}
        result = Result(values, report["verified"], report["count"], f"{report['checksum']:x}")
        return [({**parameters, "transport": transport}, result) for transport in self.transports]


def contestant_of(prefix: str, way: str) -> str:
    return f"{prefix}-{way.replace(' ', '-')}"


LABELS = {contestant_of(ways.prefix, name): text for ways in (AggregationWays, JoinWays) for name, text in ways.ways.items()}
AUTOMATIC, TREE = "aggregation-automatic", "aggregation-tree"
JOIN, MATERIALISED, BY_HAND = "join-radix-join", "join-materialised", "join-by-hand"
DUCKDB, ARROW = "duckdb", "arrow"
# What the automatic table is compared with.
CHOICES = tuple(contestant_of(AggregationWays.prefix, name) for name in AggregationWays.ways if name != "automatic")
