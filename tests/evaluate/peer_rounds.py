"""What the programs in peers/ and java/lab/bench understand, and the line of JSON that they print."""

import json

from contestant import Result


def shape(parameters: dict) -> list:
    return [word for name in ("processes", "workers", "rows") for word in (f"--{name}", parameters[name])]


def last_round(output: str) -> Result:
    report = json.loads(output.strip().splitlines()[-1])
    last = report["rounds"][-1]
    checksum = last.get("checksum")
    if isinstance(checksum, int):
        checksum = f"{checksum:016x}"
    # Java says it of all rounds together.
    verified = last.get("verified", report.get("verified"))
    return Result({"seconds": last["seconds"], "cpu_seconds": last["cpu_seconds"]}, verified, last["count"], checksum)


def printed_version(output: str) -> str:
    return json.loads(output.strip().splitlines()[-1])["version"]
