"""memcpy: what no carrier that copies can go below."""

from contestant import Result
from peer_rounds import Peer, shape
from programs import PEERS, Command

TUPLES = "copied-tuples"
PROGRAMS = {"two_stage": PEERS / "two_stage_copied", "messages": PEERS / "copied_messages", "tuples": PEERS / "copied_tuples"}


class Tuples(Peer):
    """Tuples of a width, copied one after the other from memory to memory."""

    product = "C library"
    needs = {PROGRAMS["tuples"]: "cmake --build build/release --target copied_tuples"}
    version_command = ("ldd", "--version")

    def command(self, workload: str, parameters: dict) -> Command:
        return Command([PROGRAMS["tuples"], "--bytes", parameters["row_bytes"], "--count", parameters["count"]])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        result = super().read(workload, parameters, output)
        result.values["bytes_per_second"] = parameters["row_bytes"] * parameters["count"] / result.values["seconds"]
        return result


class Copying(Peer):
    product = "C library"
    needs = {PROGRAMS["two_stage"]: "cmake --build build/release --target evaluate_peers"}
    version_command = ("ldd", "--version")

    def command(self, workload: str, parameters: dict) -> Command:
        if workload == "messages":
            flags = ["--bytes", parameters["message_bytes"], "--count", parameters["count"]]
        else:
            flags = ["--rounds", 2, *shape(parameters)]
        return Command([PROGRAMS[workload], *flags])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        result = super().read(workload, parameters, output)
        if workload == "messages":
            moved = parameters["message_bytes"] * parameters["count"]
            result.values["bytes_per_second"] = moved / result.values["seconds"]
        return result
