"""UCX's own tool: puts from one process into the memory of another. It checks no contents."""

import socket

from contestant import Contestant, Result
from programs import Command


class Ucx(Contestant):
    """`transports`: as in UCX_TLS."""

    product = "UCX"
    needs = {"ucx_perftest": "Debian package ucx-utils"}
    version_command = ("ucx_info", "-v")
    attempts = 3

    def __init__(self, name: str, label: str, transports: str):
        super().__init__(name, label)
        self.transports = transports

    def version(self) -> str:
        return super().version().lstrip("# ")

    def command(self, workload: str, parameters: dict) -> Command:
        held, number = _held_port()
        port = ["-p", str(number)]
        put = ["-t", "ucp_put_bw", "-s", str(parameters["message_bytes"]), "-n", str(parameters["count"]), "-f"]
        client = " ".join(["ucx_perftest", "127.0.0.1", *port, *put])
        # The server takes one client, and that does not wait for it.
        listens = f"cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{number:04X} 0*:0000 0A'"
        waits = f"for try in $(seq 200); do {listens} && exec {client}; sleep 0.05; done; echo no server >&2; exit 1"
        return Command(["sh", "-c", waits], {"UCX_TLS": self.transports}, ["ucx_perftest", *port], held)

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        # With -f one line: iterations; µs typical, average, overall; MB/s average, overall; messages/s.
        numbers = output.strip().splitlines()[-1].split()
        return Result({"bytes_per_second": float(numbers[5]) * 2**20}, verified=None, count=int(numbers[0]))


def _held_port() -> tuple[socket.socket, int]:
    """A port that the system gives to nobody else while the socket lives: it is bound to it, and does not listen. Whoever
    listens there with SO_REUSEADDR, as ucx_perftest does, may."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("0.0.0.0", 0))
    return held, held.getsockname()[1]
