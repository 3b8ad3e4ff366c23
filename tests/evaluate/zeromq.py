"""ZeroMQ: PUSH and PULL sockets over ipc."""

import programs
from peer_rounds import Peer, printed, shape
from programs import PEERS, Command

PROGRAM = PEERS / "two_stage_zeromq"


class Zeromq(Peer):
    product = "ZeroMQ"
    needs = {PROGRAM: "Debian package libzmq3-dev"}

    def version(self) -> str:
        return printed(programs.run(Command([PROGRAM, "--rows", 1, "--rounds", 1]), 20))["version"]

    def command(self, workload: str, parameters: dict) -> Command:
        return Command([PROGRAM, "--rounds", 2, *shape(parameters)])
