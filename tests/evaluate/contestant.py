"""What takes part in experiments: one subclass for each peer."""

from dataclasses import dataclass

import programs
from programs import Command


@dataclass
class Result:
    """What a run printed. `values` as in Measurement."""

    values: dict
    verified: bool | None
    count: int | None = None
    checksum: str | None = None
    contestant: str | None = None  # whose it is, where one run has several; None: that of the run


class Contestant:
    """How to run one contestant, and how to read what it prints."""

    product = ""  # whose version() it is
    needs: dict = {}  # programs, and what brings each
    version_command: tuple = ()  # whose first line is the version
    expected_seconds = 1.0  # that a run takes, for the time that is left
    attempts = 1  # of a run that fails: more for who is not ours to mend

    def __init__(self, name: str, label: str):
        self.name = name
        self.label = label

    def missing(self) -> str | None:
        """Why it cannot take part on this machine; None if it can."""
        return next((why for need in self.needs.items() if (why := programs.found(*need))), None)

    def version(self) -> str:
        return programs.run(Command(self.version_command), 20).splitlines()[0]

    def command(self, workload: str, parameters: dict) -> Command:
        """`workload`: two_stage, receive, messages, connect, idle, variable_rows, row_ways, groups, delivery, skew, memory, operators, tuples, batches, queries, flink, flink_jobs."""
        raise NotImplementedError

    def read(self, workload: str, parameters: dict, output: str) -> Result:
        """Raises ValueError, KeyError or IndexError if the output is not what it should be."""
        raise NotImplementedError

    def results(self, workload: str, parameters: dict, output: str) -> list[tuple[dict, Result]]:
        """What one run gives, and by which parameters: more than one result where it measures several things."""
        return [(parameters, self.read(workload, parameters, output))]


def hops(parameters: dict) -> int:
    """Of the two-stage job: rows shuffled, each twice."""
    return 2 * parameters["processes"] * parameters["rows"]
