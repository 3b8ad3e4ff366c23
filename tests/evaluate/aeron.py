"""Aeron, in Java: java/lab/peers, which runs the same job as java/lab/bench."""

from faro_java import two_stage
from peer_rounds import Peer
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
        return Command(two_stage(f"{JAR}:{TARGET}/lib/*", self.name, parameters, "--add-opens", "java.base/sun.nio.ch=ALL-UNNAMED"))
