"""ZeroMQ: PUSH and PULL sockets over ipc."""

import programs
from contestant import Contestant, Result
from peer_rounds import last_round, printed_version, shape
from programs import PEERS, Command

PROGRAM = PEERS / "two_stage_zeromq"


class Zeromq(Contestant):
    product = "ZeroMQ"

    def missing(self) -> str | None:
        return programs.found(PROGRAM, "Debian package libzmq3-dev")

    def version(self) -> str:
        return printed_version(programs.run(Command([str(PROGRAM), "--rows", "1", "--rounds", "1"]), 20))

    def command(self, workload: str, parameters: dict) -> Command:
        words = [PROGRAM, "--rounds", 2]
        words += shape(parameters)
        return Command([str(word) for word in words])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        return last_round(output)
