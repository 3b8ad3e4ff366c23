"""UCX's own tool: puts from one process into the memory of another. It checks no contents."""

import random
import socket

import programs
from contestant import Contestant, Result
from programs import Command


class Ucx(Contestant):
    """`transports`: as in UCX_TLS."""

    product = "UCX"
    attempts = 3

    def __init__(self, name: str, label: str, transports: str):
        super().__init__(name, label)
        self.transports = transports

    def missing(self) -> str | None:
        return programs.found("ucx_perftest", "Debian package ucx-utils")

    def version(self) -> str:
        return programs.run(Command(["ucx_info", "-v"]), 10).splitlines()[0].lstrip("# ")

    def command(self, workload: str, parameters: dict) -> Command:
        number = _free_port()
        port = ["-p", str(number)]
        put = ["-t", "ucp_put_bw", "-s", str(parameters["message_bytes"]), "-n", str(parameters["count"]), "-f"]
        client = " ".join(["ucx_perftest", "127.0.0.1", *port, *put])
        # The server takes one client, and that does not wait for it.
        listens = f"cat /proc/net/tcp /proc/net/tcp6 | grep -q ':{number:04X} 0*:0000 0A'"
        waits = f"for try in $(seq 200); do {listens} && exec {client}; sleep 0.05; done; echo no server >&2; exit 1"
        return Command(["sh", "-c", waits], {"UCX_TLS": self.transports}, beside=["ucx_perftest", *port])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        # With -f one line: iterations; µs typical, average, overall; MB/s average, overall; messages/s.
        numbers = output.strip().splitlines()[-1].split()
        return Result({"bytes_per_second": float(numbers[5]) * 2**20}, verified=None, count=int(numbers[0]))


def _free_port() -> int:
    """One that no connection is given by chance."""
    for port in random.sample(range(20_000, 30_000), 100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise programs.Failed("no free port from 20000 to 30000")
