"""What the project wants to reach against its peers."""

from dataclasses import dataclass

from measurement import Comparison, Measurements


@dataclass(frozen=True)
class Goal:
    """`other` takes at least `least` times the `value` of `faro`."""

    what: str
    experiment: str
    value: str
    faro: str
    other: str
    least: float

    def comparison(self, measurements: Measurements) -> Comparison | None:
        return measurements.compare(self.value, self.faro, self.other)

    def verdict(self, measurements: Measurements) -> str:
        found = self.comparison(measurements)
        if found is None:
            return "not measured"
        if found.ratio < self.least:
            return "no"
        return "yes" if found.least >= self.least else "yes, not in every lap"


GOALS = (
    Goal("Less CPU time than MPI Isend on shared memory", "peers", "cpu_ns_per_hop", "shm", "mpi-isend", 1.3),
    Goal("Faster than Aeron IPC carrying the same frames from Java", "peers", "seconds", "java-shm", "aeron-ipc", 1.3),
)
