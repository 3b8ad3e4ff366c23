"""Aeron, in Java: java/lab/peers, which runs the same job as java/lab/bench."""

from faro import WARMUP_ROUNDS
from peer_rounds import Peer, shape
from programs import JAVA, Command

TARGET = JAVA / "lab/peers/target"
JAR = TARGET / "faro-peers-0.1.0.jar"


class Aeron(Peer):
    product = "Aeron"
    expected_seconds = 8

    def missing(self) -> str | None:
        return None if JAR.exists() else "java/lab/peers is not built (Maven profile peers)"

    def version(self) -> str:
        jars = sorted((TARGET / "lib").glob("aeron-driver-*.jar"))
        return "Aeron " + jars[-1].stem.removeprefix("aeron-driver-")

    def command(self, workload: str, parameters: dict) -> Command:
        words = ["java", "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED", "-cp", f"{JAR}:{TARGET}/lib/*"]
        words += ["io.faro.bench.Main", "two-stage", "--transport", self.name, *shape(parameters)]
        # One more round than these, which count from the first.
        return Command([*words, "--repetitions", parameters.get("warmup", WARMUP_ROUNDS["java"])])
