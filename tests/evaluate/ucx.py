"""UCX's own tool: puts from one process into the memory of another. It checks no contents."""

import socket

import programs
from contestant import Contestant, Result
from programs import Command


class Ucx(Contestant):
    """`transports`: as in UCX_TLS."""

    product = "UCX"

    def __init__(self, name: str, label: str, transports: str):
        super().__init__(name, label)
        self.transports = transports

    def missing(self) -> str | None:
        return programs.found("ucx_perftest", "Debian package ucx-utils")

    def version(self) -> str:
        return programs.run(Command(["ucx_info", "-v"]), 10).splitlines()[0].lstrip("# ")

    def command(self, workload: str, parameters: dict) -> Command:
        port = ["-p", str(_free_port())]
        put = ["-t", "ucp_put_bw", "-s", str(parameters["message_bytes"]), "-n", str(parameters["count"]), "-f"]
        client = " ".join(["ucx_perftest", "127.0.0.1", *port, *put])
        # The client tries again until the server listens.
        tries = f"for try in $(seq 99); do {client} && exit; sleep 0.1; done; exit 1"
        return Command(["sh", "-c", tries], {"UCX_TLS": self.transports}, beside=["ucx_perftest", *port])

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        # With -f one line: iterations; µs typical, average, overall; MB/s average, overall; messages/s.
        numbers = output.strip().splitlines()[-1].split()
        return Result({"bytes_per_second": float(numbers[5]) * 2**20}, verified=None, count=int(numbers[0]))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
