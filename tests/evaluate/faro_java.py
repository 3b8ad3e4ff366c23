"""Faro in Java, and the sockets in Java: what java/lab/bench runs."""

from contestant import Result, hops
from peer_rounds import Peer, last_round, printed, shape
from programs import JAVA_CLASS_PATH, JAVA_JAR, STANDARD, Command

WARMUP_ROUNDS = 5  # until the JVM's compilers are done


class FaroJava(Peer):
    """`level`: of the API by which rows are sent: many at a time, one by one, or objects by a codec."""

    product = "Faro"
    version_command = (STANDARD, "--version")
    expected_seconds = 8

    def __init__(self, name: str, label: str, transport: str, level: str = "many"):
        super().__init__(name, label)
        self.transport = transport
        self.level = level

    def missing(self) -> str | None:
        return None if JAVA_JAR.exists() else "java/ is not built"

    def command(self, workload: str, parameters: dict) -> Command:
        return Command([*two_stage(JAVA_CLASS_PATH, self.transport, parameters), "--level", self.level])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        report = printed(output)
        result, first = last_round(report), report["rounds"][0]
        cold_ns = first["cpu_seconds"] * 1e9 / hops(parameters)
        result.values |= {"cold_seconds": first["seconds"], "cold_cpu_ns_per_hop": cold_ns}
        return result


def two_stage(class_path: str, transport: str, parameters: dict, *jvm: str) -> list:
    """The words that start a JVM for each process."""
    words = ["java", *jvm, "-cp", class_path, "io.faro.bench.Main", "two-stage", "--transport", transport, *shape(parameters)]
    # One more round than these, which count from the first.
    return [*words, "--repetitions", parameters.get("warmup", WARMUP_ROUNDS)]
