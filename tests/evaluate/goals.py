"""What the project wants to reach against its peers."""

from dataclasses import dataclass
from typing import NamedTuple

import flink_jobs
from flink import LATENCY, THROUGHPUT
from labels import number
from measurement import Measurements
from shares import FARO, SOCKETS, gain, most_shuffling, place_of, share

LARGE_SHARE = 0.2  # of a job's CPU time
SMALL_SHARE = 0.05  # of a query's CPU time: whose exchanges hardly matter
TPCC = ("query 1", "query 2", "query 3")
TPCH = ("q1", "q3", "q4", "q5", "q6", "q10", "q12", "q14", "q18")


class Judged(NamedTuple):
    """A goal beside what was measured of it, as the table has them."""

    wanted: str
    measured: str = "–"
    verdict: str = "not measured"


@dataclass(frozen=True)
class Goal:
    """`other` takes at least `least` times the `value` of `faro`."""

    what: str
    experiment: str
    value: str
    faro: str
    other: str
    least: float

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"≥ {self.least} ×"
        found = ms.compare(self.value, self.faro, self.other)
        if found is None:
            return Judged(wanted)
        measured = f"{number(found.ratio)} × ({number(found.least)} to {number(found.most)})"
        return Judged(wanted, measured, _verdict(found.ratio, found.least, self.least))


def _verdict(found: float, least: float, wanted: float) -> str:
    if found < wanted:
        return "no"
    return "yes" if least >= wanted else "yes, not in every lap"


@dataclass(frozen=True)
class Beside:
    """The `value` of `faro` is at most, or at least, `bound` times that of `other` at a place."""

    what: str
    experiment: str
    value: str
    faro: str
    other: str
    place: dict
    bound: float
    at_least: bool = False

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"{'≥' if self.at_least else '≤'} {self.bound} ×"
        found = ms.compare(self.value, self.other, self.faro, **self.place)
        if found is None:
            return Judged(wanted)
        measured = f"{number(found.ratio)} × ({number(found.least)} to {number(found.most)})"
        if self.at_least:
            return Judged(wanted, measured, _verdict(found.ratio, found.least, self.bound))
        return Judged(wanted, measured, _verdict(-found.ratio, -found.most, -self.bound))


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

    def judged(self, ms: Measurements) -> Judged:
        query = self.query or most_shuffling(ms)
        place = None if query is None else place_of(ms, self.value, query)
        of_sockets = None if place is None else share(ms, SOCKETS, place)
        if of_sockets is None:  # not measured, or not seen
            return Judged("half of its share" if self.part else _percent(self.least))
        least = 0 if self.part and of_sockets < SMALL_SHARE else max(self.least, self.part * of_sockets)
        found = gain(ms, self.value, place)
        measured = (
            f"{_percent(found.median)} less ({_percent(found.least)} to {_percent(found.most)}); {place['query']}, "
            f"{place['workers']} per process; share over sockets {_percent(of_sockets)}"
        )
        verdict = _verdict(found.median, found.least, least)
        if least == 0 and found.median < 0 <= found.most:
            verdict = "within the spread"
        return Judged(f"≥ {_percent(least)} less" if least else "no more", measured, verdict)


@dataclass(frozen=True)
class HalvedShare:
    """Over Faro the shuffle has at most half of the share of a query's CPU time that it has over sockets: where over
    sockets it takes least CPU time."""

    what: str
    experiment: str
    query: str

    def judged(self, ms: Measurements) -> Judged:
        place = place_of(ms, "cpu_seconds_per_query", self.query)
        over_faro, over_sockets = (place and share(ms, carrier, place) for carrier in (FARO, SOCKETS))
        if over_faro is None or over_sockets is None:
            return Judged("half")
        measured = f"{_percent(over_faro)} instead of {_percent(over_sockets)}; {place['workers']} per process"
        return Judged(f"≤ {_percent(over_sockets / 2)}", measured, _verdict(-over_faro, -over_faro, -over_sockets / 2))


@dataclass(frozen=True)
class NoJobSlower:
    """No query on Flink's cluster takes more than over Netty, in every round."""

    what: str
    experiment: str
    value: str
    mode: str

    def judged(self, ms: Measurements) -> Judged:
        wanted = "none takes more"
        found = {flink_jobs.name(one): flink_jobs.beside_netty(ms, self.value, one) for one in flink_jobs.places(ms, mode=self.mode)}
        if not found:
            return Judged(wanted)
        least, most = (pick(found.values(), key=lambda one: one.ratio) for pick in (min, max))
        slower = [f"{name} {number(one.ratio)} × ({number(one.least)} to {number(one.most)})" for name, one in found.items() if one.least > 1]
        measured = f"medians of {len(found)} queries {number(least.ratio)} to {number(most.ratio)} ×"
        return Judged(wanted, "; ".join([measured, *slower]), "no" if slower else "yes")


@dataclass(frozen=True)
class NetworkHalved:
    """Of the queries on Flink's cluster that spend over a fifth of their CPU time in Netty's threads, each saves half of that."""

    what: str
    experiment: str
    mode: str

    def judged(self, ms: Measurements) -> Judged:
        wanted = "≥ half of a share over 20 %"
        shares, judged, worst = [], [], 1.0
        for place in flink_jobs.places(ms, mode=self.mode):
            part = flink_jobs.transport_share(ms, place)
            shares.append(part)
            if part > LARGE_SHARE:
                saved = 1 - flink_jobs.beside_netty(ms, "cpu_seconds_per_query", place).ratio
                judged.append(f"{flink_jobs.name(place)} saves {_percent(saved)} of {_percent(part)}")
                worst = min(worst, saved / part)
        if not shares:
            return Judged(wanted)
        if not judged:
            return Judged(wanted, f"shares {_percent(min(shares))} to {_percent(max(shares))}", "none has such a share")
        return Judged(wanted, "; ".join(judged), "yes" if worst >= 0.5 else "no")


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


_CPU, _OF_TRANSPORT, _RATE = "cpu_ns_per_record", "transport_ns_per_record", "records_per_second"
_NAMES = {_CPU: "CPU", _OF_TRANSPORT: "CPU of the transport's threads", _RATE: "records per second", "p50_us": "p50"}
_ONE_CHANNEL, _HUNDRED, _FLUSHED = THROUGHPUT


def _of_flink():
    def beside(carrier: str, shape: str, value: str, bounds: tuple, at_least: bool = False):
        other = "flink-netty-ssl" if carrier.endswith("-ssl") else "flink-netty"
        text = carrier.replace("-ssl", " with SSL")
        for processors, bound in zip((1, 2), bounds):
            what = f"Flink, {shape}, {text}, {'one processor' if processors == 1 else 'two processors'}: {_NAMES[value]}"
            place = {"shape": shape, "processors": processors}
            yield Beside(what, "flink", value, f"flink-{carrier}", other, place, bound, at_least)

    yield from beside("shm", _ONE_CHANNEL, _CPU, (0.65, 0.85))
    yield from beside("shm", _HUNDRED, _CPU, (0.75, 0.75))
    yield from beside("shm", _HUNDRED, _OF_TRANSPORT, (0.3, 0.3))
    yield from beside("shm", _FLUSHED, _CPU, (0.5, 0.85))
    yield from beside("shm", _FLUSHED, _RATE, (1.9, 1.0), at_least=True)
    for carrier, bound in (("shm", 0.4), ("tcp", 0.8)):
        yield from beside(carrier, LATENCY, "p50_us", (bound, bound))
        yield from beside(carrier, LATENCY, _CPU, (1.0, 1.0))
    for shape in THROUGHPUT:
        yield from beside("tcp", shape, _CPU, (0.8, 1.0))
        yield from beside("tcp", shape, _RATE, (1.0, 1.0), at_least=True)
    for shape in THROUGHPUT:
        yield from beside("shm-ssl", shape, _CPU, (0.6, 0.6))
        yield from beside("tcp-ssl", shape, _CPU, (1.0, 1.0))


def _of_flink_jobs():
    modes = {"pipelined": "TPC-H pipelined", "blocking": "TPC-H blocking", "streams": "streams"}
    for mode, text in modes.items():
        for value, name in (("seconds", "time"), ("cpu_seconds_per_query", "CPU time")):
            yield NoJobSlower(f"Flink, {text}: {name}", "flink-jobs", value, mode)
        yield NetworkHalved(f"Flink, {text}: half of the network's CPU time saved", "flink-jobs", mode)


GOALS = (
    Goal("Less CPU time than MPI Isend on shared memory", "peers", "cpu_ns_per_hop", "shm", "mpi-isend", 1.3),
    Goal("Faster than Aeron IPC carrying the same frames from Java", "peers", "seconds", "java-shm", "aeron-ipc", 1.3),
    *_of_queries("queries", "TPC-C", TPCC),
    *_of_queries("queries-tpch", "TPC-H", TPCH),
    *_of_flink(),
    *_of_flink_jobs(),
)
