"""What the programs in peers/ and java/lab/bench understand, and the line of JSON that they print."""

import json

from contestant import Contestant, Result


class Peer(Contestant):
    """Who runs the job of two stages by such a program."""

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        return last_round(printed(output))


def shape(parameters: dict) -> list:
    return [word for name in ("processes", "workers", "rows") for word in (f"--{name}", parameters[name])]


def last_round(report: dict) -> Result:
    last = report["rounds"][-1]
    checksum = last.get("checksum")
    if isinstance(checksum, int):
        checksum = f"{checksum:016x}"
    # Java says it of all rounds together.
    verified = last.get("verified", report.get("verified"))
    return Result({"seconds": last["seconds"], "cpu_seconds": last["cpu_seconds"]}, verified, last["count"], checksum)


def printed(output: str) -> dict:
    return json.loads(output.strip().splitlines()[-1])
