"""What the project wants to reach against its peers."""

from dataclasses import dataclass

from labels import number
from measurement import Comparison, Measurements
from shares import FARO, SOCKETS, Place, gain, most_shuffling, place_of, share

NOT_MEASURED = "not measured"
SMALL_SHARE = 0.05  # of a query's CPU time: whose exchanges hardly matter
TPCC = ("query 1", "query 2", "query 3")
TPCH = ("q1", "q3", "q4", "q5", "q6", "q10", "q12", "q14", "q18")


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

    def wanted(self, measurements: Measurements) -> str:
        return f"≥ {self.least} ×"

    def measured(self, measurements: Measurements) -> str:
        found = self.comparison(measurements)
        return "–" if found is None else f"{number(found.ratio)} × ({number(found.least)} to {number(found.most)})"

    def verdict(self, measurements: Measurements) -> str:
        found = self.comparison(measurements)
        if found is None:
            return NOT_MEASURED
        return _verdict(found.ratio, found.least, self.least)


def _verdict(found: float, least: float, wanted: float) -> str:
    if found < wanted:
        return "no"
    return "yes" if least >= wanted else "yes, not in every lap"


@dataclass(frozen=True)
class Gain:
    """A query gains at least `part` of the share that the shuffle has over sockets, or `least`, whatever is given: over
    Faro it takes so much less. With a small share it only must not lose.

    `query` None: the one that shuffles most. Where over sockets it takes least."""

    what: str
    experiment: str
    value: str
    query: str | None
    part: float = 0
    least: float = 0

    def _place(self, ms: Measurements) -> Place | None:
        """None if it was not measured, or no share over sockets was seen."""
        query = self.query or most_shuffling(ms)
        place = None if query is None else place_of(ms, self.value, query)
        return None if place is None or share(ms, SOCKETS, place) is None else place

    def _least(self, ms: Measurements, place: Place) -> float:
        of_sockets = share(ms, SOCKETS, place)
        return 0 if self.part and of_sockets < SMALL_SHARE else max(self.least, self.part * of_sockets)

    def wanted(self, ms: Measurements) -> str:
        place = self._place(ms)
        if place is None:
            return "half of its share" if self.part else _percent(self.least)
        least = self._least(ms, place)
        return f"≥ {_percent(least)} less" if least else "no more"

    def measured(self, ms: Measurements) -> str:
        place = self._place(ms)
        if place is None:
            return "–"
        found = gain(ms, self.value, place)
        text = f"{_percent(found.median)} less ({_percent(found.least)} to {_percent(found.most)})"
        return f"{text}; {place['query']}, {place['workers']} per process; share over sockets {_percent(share(ms, SOCKETS, place))}"

    def verdict(self, ms: Measurements) -> str:
        place = self._place(ms)
        if place is None:
            return NOT_MEASURED
        found, least = gain(ms, self.value, place), self._least(ms, place)
        if least == 0 and found.median < 0 <= found.most:
            return "within the spread"
        return _verdict(found.median, found.least, least)


@dataclass(frozen=True)
class HalvedShare:
    """Over Faro the shuffle has at most half of the share of a query's CPU time that it has over sockets: where over
    sockets it takes least CPU time."""

    what: str
    experiment: str
    query: str

    def _place(self, ms: Measurements) -> Place | None:
        return place_of(ms, "cpu_seconds_per_query", self.query)

    def _shares(self, ms: Measurements) -> tuple[float, float] | None:
        place = self._place(ms)
        shares = (None, None) if place is None else (share(ms, FARO, place), share(ms, SOCKETS, place))
        return None if None in shares else shares

    def wanted(self, ms: Measurements) -> str:
        shares = self._shares(ms)
        return "half" if shares is None else f"≤ {_percent(shares[1] / 2)}"

    def measured(self, ms: Measurements) -> str:
        shares = self._shares(ms)
        if shares is None:
            return "–"
        return f"{_percent(shares[0])} instead of {_percent(shares[1])}; {self._place(ms)['workers']} per process"

    def verdict(self, ms: Measurements) -> str:
        shares = self._shares(ms)
        return NOT_MEASURED if shares is None else _verdict(-shares[0], -shares[0], -shares[1] / 2)


def _percent(part: float) -> str:
    return f"{part * 100:.1f} %"


def _of_queries(experiment: str, tables: str, queries: tuple[str, ...]):
    for value, name in (("cpu_seconds_per_query", "CPU time"), ("seconds", "time")):
        for query in queries:
            yield Gain(f"{tables}, {query}: half of the shuffle's share, {name}", experiment, value, query, part=0.5)
        if experiment == "queries":
            yield Gain(f"{tables}, what shuffles most: {name}", experiment, value, None, least=0.16)
    for query in queries:
        yield HalvedShare(f"{tables}, {query}: the shuffle's share halved", experiment, query)


GOALS = (
    Goal("Less CPU time than MPI Isend on shared memory", "peers", "cpu_ns_per_hop", "shm", "mpi-isend", 1.3),
    Goal("Faster than Aeron IPC carrying the same frames from Java", "peers", "seconds", "java-shm", "aeron-ipc", 1.3),
    *_of_queries("queries", "TPC-C", TPCC),
    *_of_queries("queries-tpch", "TPC-H", TPCH),
)
