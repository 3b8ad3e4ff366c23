"""Flink's own network benchmarks, over its Netty, over Faro and within a TaskManager: tests/flink runs them."""

import os
from dataclasses import dataclass
from statistics import median

import programs
from contestant import Contestant, Result
from peer_rounds import printed
from programs import JAVA, ROOT, Command

JAR = JAVA / "faro-flink/target/faro-flink-0.1.0.jar"
AGENT = ROOT / "tests/flink/target/faro-flink-conformance-0.1.0.jar"
CLASS_PATH = ROOT / "build/flink/tests-2.3.0.classpath"
RUNNER = "tests/flink/benchmark"
LAST_ROUNDS = 5  # whose medians count: the compiler is done by then


@dataclass(frozen=True)
class Shape:
    """What the benchmark does: `flush_ms` is the time after which a buffer is sent that is not full."""

    name: str
    workload: str
    channels: int
    flush_ms: int
    records: int  # of each round

    def words(self, channel: str, rounds: int, part: float) -> list:
        return [self.workload, self.channels, self.flush_ms, channel, rounds, max(1000, int(self.records * part))]


LATENCY = "latency"
SHAPES = {
    one.name: one
    for one in (
        Shape("1 channel", "throughput", 1, 100, 12_000_000),
        Shape("100 channels, 100 ms", "throughput", 100, 100, 12_000_000),
        Shape("100 channels, 1 ms", "throughput", 100, 1, 8_000_000),
        Shape(LATENCY, "latency", 1, 0, 20_000),
    )
}
THROUGHPUT = tuple(name for name in SHAPES if name != LATENCY)


@dataclass(frozen=True)
class _Carrier:
    side: str  # of the agent
    channel: str = "remote"
    settings: tuple[str, ...] = ()


_CARRIERS = {
    "netty": _Carrier("netty"),
    "shm": _Carrier("faro", settings=("faro.transport=shm",)),
    "tcp": _Carrier("faro", settings=("faro.transport=tcp",)),
    "local": _Carrier("netty", "local"),
}


class Flink(Contestant):
    """A benchmark in one JVM with two TaskManagers' shuffle environments, as Flink publishes it."""

    product = "Flink"
    expected_seconds = 20.0

    def __init__(self, carrier: str, label: str, ssl: bool = False):
        super().__init__(f"flink-{carrier}{'-ssl' if ssl else ''}", label)
        self._carrier = _CARRIERS[carrier]
        self._ssl = ssl

    def missing(self) -> str | None:
        return programs.not_built("Flink's jars or what runs beside them", JAR, AGENT, CLASS_PATH)

    def version(self) -> str:
        return "Flink " + CLASS_PATH.stem.removeprefix("tests-")

    def command(self, workload: str, parameters: dict) -> Command:
        words = ["taskset", "-c", _processors(parameters["processors"]), RUNNER, self._carrier.side, *(["--ssl"] if self._ssl else [])]
        shape = SHAPES[parameters["shape"]].words(self._carrier.channel, parameters["rounds"], parameters["part"])
        return Command([*words, *shape, *self._carrier.settings])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        """The medians of the last rounds. Every round was verified, or the program has failed."""
        report = printed(output)
        over_faro = report["received_over_faro"] > 0
        if over_faro != (self._carrier.side == "faro"):
            raise ValueError("the exchange was not carried by what was to carry it")
        last = report["rounds"][-LAST_ROUNDS:]

        def middle(value) -> float:
            return median(value(one) for one in last)

        values = {
            "cpu_ns_per_record": middle(lambda one: one["cpu_seconds"] * 1e9 / one["records"]),
            "transport_ns_per_record": middle(lambda one: one["transport_cpu_seconds"] * 1e9 / one["records"]),
        }
        if parameters["shape"] == LATENCY:
            values |= {name: middle(lambda one, name=name: one[name]) for name in ("p50_us", "p99_us")}
        else:
            values["records_per_second"] = middle(lambda one: one["records"] / one["seconds"])
        return Result(values, report["verified"], report["count"])


def _processors(count: int) -> str:
    """As taskset has them: as many of those that this process may use, or all if there are fewer."""
    return ",".join(str(one) for one in sorted(os.sched_getaffinity(0))[:count])
