"""memcpy: what no carrier that copies can go below."""

import programs
from contestant import Contestant, Result
from peer_rounds import last_round, shape
from programs import PEERS, Command

PROGRAMS = {"two_stage": PEERS / "two_stage_copied", "messages": PEERS / "copied_messages"}


class Copying(Contestant):
    product = "C library"

    def missing(self) -> str | None:
        return programs.found(PROGRAMS["two_stage"], "cmake --build build/release --target evaluate_peers")

    def version(self) -> str:
        return programs.run(Command(["ldd", "--version"]), 10).splitlines()[0]

    def command(self, workload: str, parameters: dict) -> Command:
        if workload == "messages":
            flags = ["--bytes", parameters["message_bytes"], "--count", parameters["count"]]
        else:
            flags = ["--rounds", 2, *shape(parameters)]
        return Command([str(word) for word in [PROGRAMS[workload], *flags]])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        result = last_round(output)
        if workload == "messages":
            moved = parameters["message_bytes"] * parameters["count"]
            result.values["bytes_per_second"] = moved / result.values["seconds"]
        return result
