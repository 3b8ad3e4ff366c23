"""What the project wants to reach against its peers."""

from dataclasses import dataclass
from typing import NamedTuple

import flink_jobs
from best_choice import VALUE, beside_best, keys_text
from experiments import (
    FARO as TRANSPORTS,
    DUCKDB_GROUPS,
    GROUPS,
    JOIN_RATIOS,
    KEY_SHAPES,
    LARGE_WIDTHS,
    MOST_GROUPS_SHAPES,
    OPERATOR_SHAPES,
    ROW_WIDTHS,
    SHAPES_ON_ALL,
    SKEWED_PART,
    TCP_SHAPES,
)
from flink import LATENCY, THROUGHPUT
from labels import label, number, size
from measurement import Measurements, Spread
from operator_ways import ARROW, AUTOMATIC, BY_HAND, DUCKDB, JOIN, MATERIALISED, TREE
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


@dataclass(frozen=True)
class Bound:
    """The `value` of a contestant at a place is at most, or at least, `bound`, in units of which `factor` make one of the value's."""

    what: str
    experiment: str
    value: str
    contestant: str
    place: dict
    bound: float
    unit: str
    factor: float = 1
    at_least: bool = False

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"{'≥' if self.at_least else '≤'} {self.bound} {self.unit}"
        found = ms.spread(self.value, self.contestant, **self.place)
        if found is None:
            return Judged(wanted)
        median, least, most = (one * self.factor for one in (found.median, found.least, found.most))
        measured = f"{number(median)} {self.unit} ({number(least)} to {number(most)})"
        if self.at_least:
            return Judged(wanted, measured, _verdict(median, least, self.bound))
        return Judged(wanted, measured, _verdict(-median, -most, -self.bound))


@dataclass(frozen=True)
class TimesOther:
    """The `value` of `faro` is `wanted` times that of `other` at a place, give or take `part` of it, in every lap."""

    what: str
    experiment: str
    value: str
    faro: str
    other: str
    place: dict
    wanted: float
    part: float

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"{number(self.wanted)} × ± {self.part * 100:g} %"
        found = ms.compare(self.value, self.other, self.faro, **self.place)
        if found is None:
            return Judged(wanted)
        reached = all(abs(one - self.wanted) <= self.part * self.wanted for one in (found.least, found.most))
        return Judged(wanted, f"{number(found.ratio)} × ({number(found.least)} to {number(found.most)})", "yes" if reached else "no")


@dataclass(frozen=True)
class Within:
    """The `value` of a contestant at a place differs from what is wanted by at most this part of it; in times of its value at
    another place, if there is one."""

    what: str
    experiment: str
    value: str
    contestant: str
    place: dict
    wanted: float
    part: float = 0
    times_of: dict | None = None

    def judged(self, ms: Measurements) -> Judged:
        times = "" if self.times_of is None else " ×"
        wanted = f"{number(self.wanted)}{times}" + (f" ± {self.part * 100:g} %" if self.part else "")
        found = ms.spread(self.value, self.contestant, **self.place)
        other = Spread(1, 1, 1, 1) if self.times_of is None else ms.spread(self.value, self.contestant, **self.times_of)
        if found is None or other is None:
            return Judged(wanted)
        median, least, most = found.median / other.median, found.least / other.most, found.most / other.least
        reached = all(abs(one - self.wanted) <= self.part * self.wanted for one in (least, most))
        return Judged(wanted, f"{number(median)}{times} ({number(least)} to {number(most)})", "yes" if reached else "no")


@dataclass(frozen=True)
class NearTheBest:
    """At every number of groups the automatic table takes at most `bound` times the CPU time of the best choice there."""

    what: str
    experiment: str
    place: dict
    bound: float

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"≤ {self.bound} ×"
        found = {groups: beside_best(ms, **self.place, groups=groups) for groups in ms.parameter_values("groups")}
        found = {groups: one for groups, one in found.items() if one}
        if not found:
            return Judged(wanted)
        most = max(found, key=lambda groups: found[groups].times.ratio)
        ratios = [one.times.ratio for one in found.values()]
        above = sum(ratio > self.bound for ratio in ratios)
        measured = f"{number(min(ratios))} to {number(max(ratios))} ×, most at {most:,} groups, beside {label(found[most].best)}"
        return Judged(wanted, measured, f"no, not at {above} of {len(found)}" if above else "yes")


@dataclass(frozen=True)
class Growth:
    """The `value` of a contestant at the place `to` is at most `bound` times that at `start`; without a bound it stands there to
    compare with."""

    what: str
    experiment: str
    value: str
    contestant: str
    start: dict
    to: dict
    bound: float | None = None

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"≤ {self.bound} ×" if self.bound else "to compare with"
        first = {one.lap: one.values[self.value] for one in ms.of(self.contestant, **self.start)}
        ratios = [one.values[self.value] / first[one.lap] for one in ms.of(self.contestant, **self.to) if first.get(one.lap)]
        if not ratios:
            return Judged(wanted)
        found = Spread.of(ratios)
        measured = f"{number(found.median)} × ({number(found.least)} to {number(found.most)})"
        verdict = _verdict(-found.median, -found.most, -self.bound) if self.bound else "–"
        return Judged(wanted, measured, verdict)


@dataclass(frozen=True)
class Authentication:
    """A secret adds at most `bound` ms to the median time until two nodes are connected."""

    what: str
    experiment: str
    contestant: str
    bound: float

    def judged(self, ms: Measurements) -> Judged:
        wanted = f"≤ {self.bound} ms"
        place = {"part": "connect", "processes": 2}
        open_, closed = (ms.spread("connect_seconds", self.contestant, **place, secret=secret) for secret in ("no", "yes"))
        if open_ is None or closed is None:
            return Judged(wanted)
        more = max(0.0, closed.median - open_.median) * 1e3
        return Judged(wanted, f"{number(more)} ms", "yes" if more <= self.bound else "no")


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


def _of_figures():
    cpu, wall, name = "cpu_ns_per_hop", "seconds", "figures"

    def beside(what: str, value: str, one: str, other: str, place: dict, bound: float, at_least: bool = False):
        return Beside(what, name, value, one, other, place, bound, at_least)

    place, where = {"part": "pinned"}, "4 × 1 on one processor"
    yield Bound(f"{where}: shm, CPU per hop", name, cpu, "shm", place, 2.2, "ns")
    yield Bound(f"{where}: shm, CPU per hop, cheap hash", name, cpu, "shm", {"part": "cheap hash"}, 1.6, "ns")
    for row_bytes in ROW_WIDTHS:
        text = f"{where}, rows of {row_bytes} bytes: shm against the plain loop, CPU"
        yield beside(text, cpu, "shm", "plain-loop", {"part": "widths", "row_bytes": row_bytes}, 1.1)
    for row_bytes in (width for width in ROW_WIDTHS if width >= 100):  # from here on moving bytes is all that counts
        text = f"{where}, rows of {row_bytes} bytes: shm against the copies alone, CPU"
        yield beside(text, cpu, "shm", "copies", {"part": "widths", "row_bytes": row_bytes}, 1.1)
    for row_bytes in LARGE_WIDTHS:
        at, text = {"part": "large", "row_bytes": row_bytes}, f"{where}, rows of {size(row_bytes)}"
        yield beside(f"{text}: shm against the plain loop, CPU", cpu, "shm", "plain-loop", at, 1.1)
        yield beside(f"{text}: shm against the copies alone, CPU", cpu, "shm", "copies", at, 1.1)
        yield beside(f"{text}: shm against tuned sockets, CPU", cpu, "shm", "sockets", at, 1)
        yield beside(f"{text}: tcp against tuned sockets, CPU", cpu, "tcp", "sockets", at, 1)
    for processes, workers, row_bytes in TCP_SHAPES:
        shape = {"part": "tcp", "processes": processes, "workers": workers, "row_bytes": row_bytes}
        text = f"{processes} × {workers} on one processor, rows of {row_bytes} bytes: tuned sockets against tcp, CPU"
        bound = 0.87 if (processes, workers, row_bytes) == (4, 1, 8) else 1
        yield beside(text.replace("tuned sockets against tcp", "tcp against tuned sockets"), cpu, "tcp", "sockets", shape, bound)
    place, where = {"part": "java"}, "4 × 1 on one processor, Java"
    for faro, text, bound in (("java-shm", "many at a time", 1.25), ("java-shm-one", "one by one", 2), ("java-shm-codec", "by a codec", 3)):
        yield beside(f"{where}: shm against C++, rows sent {text}, CPU", cpu, faro, "shm", place, bound)
    yield beside(f"{where}: first round in fresh JVMs, shm against NIO sockets", "cold_seconds", "java-shm", "java-nio", place, 0.5)
    for processes, workers in SHAPES_ON_ALL:
        shape = {"part": "unpinned", "processes": processes, "workers": workers}
        yield beside(f"{processes} × {workers}: tuned sockets against shm, time", wall, "sockets", "shm", shape, 4, at_least=True)
    text = "rows of 100 bytes with a length each, written and read on one processor"
    yield Bound(text, name, "bytes_per_cpu_second", "shm", {"part": "variable-rows"}, 8, "GB/s", 1e-9, at_least=True)
    ways = (("send", "send", "bytes", "typed", 1.15), ("write", "send", "in_place", "typed", 1.2),
            ("broadcast", "send", "bytes_broadcast", "typed_broadcast", 1.2), ("each_row", "receive", "bytes", "typed", 1.05),
            ("send_all by a key", "send", "by_key", "typed_all", 1.25), ("send_rows", "send", "to_vector", "typed_all", 1.25))  # fmt: skip
    for row_bytes in ROW_WIDTHS:
        for call, side, one, other, bound in ways:
            text = f"rows of {row_bytes} bytes, width given at run time: {call} against a compiled type, CPU"
            at = {"part": "run-time-width", "row_bytes": row_bytes}
            yield beside(text, f"{side}_cpu_ns_per_row", f"row-{one}", f"row-{other}", at, bound)
    text = "idle session of 8 processes: CPU of the busiest in 10 s"
    yield Bound(text, name, "idle_cpu_seconds", "shm", {"part": "idle", "idle_seconds": 10}, 1, "ms", 1e3)
    for carrier in ("shm", "tcp"):
        for secret, words in (("no", ""), ("yes", " with a secret")):
            text = f"connect 8 processes × 2 workers{words}, {carrier}"
            at = {"part": "connect", "processes": 8, "secret": secret}
            yield Bound(text, name, "connect_seconds", carrier, at, 100, "ms", 1e3)
        yield Authentication(f"authentication of one link, of 2 × 2, {carrier}", name, carrier, 5)


def _of_multiplexer():
    for row_bytes in (8, 16, 100):
        at = {"part": "groups", "row_bytes": row_bytes}
        text = f"rows of {row_bytes} bytes to two groups that share a receiver"
        for what, value in (("CPU per row and copy", "cpu_ns_per_copy"), ("sending alone", "send_cpu_ns_per_copy")):
            for other, words in (("one_group", "one group"), ("apart", "two that share none")):
                yield Beside(f"{text}: {what} against {words}", "multiplexer", value, "group-overlap", f"group-{other}", at, 1.1)
        what = f"{text}: rows per frame against one group"
        yield Beside(what, "multiplexer", "rows_per_frame", "group-overlap", "group-one_group", at, 0.99, at_least=True)
    yield from _of_delivery()
    yield from _of_lanes_to_nodes()


def _of_delivery():
    def beside(what: str, value: str, one: str, other: str, place: dict, bound: float, at_least: bool = False):
        return Beside(what, "multiplexer", value, one, other, place, bound, at_least)

    for node, worker, workers, bound, text in (
        ("shm-node", "shm", 1, 1.05, ""), ("shm-node-32", "shm", 2, 1.25, ", equally large rings"),
        ("shm-node", "shm", 2, 1.15, ""), ("tcp-node-32", "tcp", 2, 1.05, ", equally large rings"),
        ("tcp-node", "tcp", 2, 1.05, ""),
    ):  # fmt: skip
        what = f"4 × {workers}, {worker}: delivery to nodes{text} against delivery to workers, CPU per hop"
        yield beside(what, "cpu_ns_per_hop", node, worker, {"part": "two-stage", "workers": workers}, bound)
    at, text = {"part": "skewed", "workers": 4}, "2 × 4, three quarters of the rows have one key: delivery to nodes against delivery to workers"
    yield beside(f"{text}, time", "seconds", "delivery-node", "delivery-worker", at, 0.75)
    yield beside(f"{text}, time at least by CPU", "least_seconds", "delivery-node", "delivery-worker", at, 0.75)
    text = "2 × 4, one worker receives when the others have ended, against all receiving: time"
    yield beside(text, "seconds", "delivery-absent", "delivery-all", {"part": "absent"}, 1.5)
    text = "2 × 4, one worker holds every batch for 20 ms, against without it: time"
    yield beside(text, "seconds", "delivery-holding", "delivery-without", {"part": "holding"}, 1.3)
    text, at = "rows of 64 KiB, rings of 512 KiB, taken by any worker", {"part": "wide"}
    for value, words in (("bytes_per_second", "bytes per second"), ("bytes_per_cpu_second", "bytes per second of CPU")):
        what = f"{text}: {words} against two memcpy, in by one thread, out by another"
        yield beside(what, value, "delivery-node", "delivery-handed_on", at, 0.8, at_least=True)
    what = f"{text}: bytes per second of CPU against two memcpy of each row by one thread, which has it in its cache"
    yield beside(what, "bytes_per_cpu_second", "delivery-node", "delivery-copies", at, 0.8, at_least=True)


    for transport, bound in (("tcp", 0.5), ("shm", 0.75)):
        at, text = {"part": "broadcast", "transport": transport}, f"4 × 4, {transport}, broadcast: replicated against delivery to workers"
        yield TimesOther(f"{text}, bytes to other nodes", "multiplexer", "bytes_to_others", "delivery-replicate", "delivery-worker", at, 0.25, 0.02)
        for way, rings in (("replicate", "rings by default"), ("same_memory", "rings of the same memory together")):
            for value, words in (("seconds", "time"), ("cpu_seconds", "CPU time")):
                yield beside(f"{text}, {rings}, {words}", value, f"delivery-{way}", "delivery-worker", at, bound)


def _of_lanes_to_nodes():
    def within(what: str, value: str, contestant: str, place: dict, wanted: float, part: float = 0, times_of: dict | None = None):
        return Within(what, "multiplexer", value, contestant, place, wanted, part, times_of)

    one, eight = ({"part": "memory", "processes": 4, "workers": workers} for workers in (1, 8))
    text = "rings of 4 nodes of 8 workers, in times of those of 1 worker: lanes that end at"
    yield within(f"{text} nodes", "ring_bytes", "ends-node", eight, 8, 0.05, one)
    yield within(f"{text} workers", "ring_bytes", "ends-workers", eight, 64, 0.05, one)
    at = {"part": "memory", "processes": 8, "workers": 8}
    for ends in ("node", "workers"):
        text = f"rings of 8 × 8 in times of what faro plan says: lanes that end at {'nodes' if ends == 'node' else 'workers'}"
        yield within(text, "rings_of_planned", f"ends-{ends}", at, 1, 0.05)
    for units, wanted in ((240, 2.34), (6, 1.028)):
        text = f"a key with {SKEWED_PART * 100:g} % of the rows, {units} units: the most loaded, in times of the mean"
        yield within(text, "most_rows_times_mean", "skew", {"part": "skew", "units": units}, wanted, 0.01)
    for value, words, wanted in (("links", "links", 15), ("frames_to_others", "frames of a worker and stage to others", 5),
                                 ("frames_to_own_node", "frames of a worker and stage to its own node", 1)):  # fmt: skip
        yield within(f"6 × 40 by faro plan: {words}", value, "plan-node", {"part": "plan"}, wanted)


def _of_operators():
    for part, contestant in (("aggregation", AUTOMATIC), ("join", JOIN)):
        all_, eighth = ({"part": f"memory of the {part}", "memory": memory} for memory in ("all", "an eighth"))
        what = f"{'radix join' if part == 'join' else part}, 4 × 1, shm, memory limited to an eighth, overflow's included: CPU in times of the unlimited"
        yield Growth(what, "operators", VALUE, contestant, all_, eighth, 2)
    for processes, workers in OPERATOR_SHAPES:
        for transport in TRANSPORTS:
            place = {"processes": processes, "workers": workers, "transport": transport}
            yield from _of_aggregation({"part": "aggregation", **place}, f"{processes} × {workers}, {transport}")
            yield from _of_join({"part": "join", **place}, f"{processes} × {workers}, {transport}")


def _of_aggregation(place: dict, where: str):
    text = f"aggregation, {where}: CPU per row against the best choice"
    yield NearTheBest(f"{text}, keys drawn evenly, at every number of groups", "operators", {**place, "keys": "uniform"}, 1.25)
    for bound, shapes in ((1.4, KEY_SHAPES), (1.25, MOST_GROUPS_SHAPES)):
        for shape in shapes:
            yield NearTheBest(f"{text}, keys {keys_text(shape)}", "operators", {**place, **shape}, bound)
    for groups, of_shm in zip(DUCKDB_GROUPS, (0.7, 1.3, 0.55, 0.5)):
        bound = of_shm if place["transport"] == "shm" else round(of_shm + 0.15, 2)
        what = f"aggregation, {where}, {groups:,} groups: CPU per row against DuckDB"
        yield Beside(what, "operators", VALUE, AUTOMATIC, DUCKDB, {**place, "keys": "uniform", "groups": groups}, bound)
    few, many = ({**place, "keys": "uniform", "groups": groups} for groups in (GROUPS[0], GROUPS[-1]))
    for contestant, bound in ((AUTOMATIC, 8), (TREE, None)):
        what = f"Fig. 8b, {where}: time at 4 M groups over that at 16, {'ours' if bound else 'Dist. AGG'}"
        yield Growth(what, "operators", "seconds", contestant, few, many, bound)


def _of_join(place: dict, where: str):
    for ratio in JOIN_RATIOS:
        at, text = {**place, "ratio": ratio}, f"radix join, {where}, 1 : {ratio}: CPU per row against"
        of_hand = 1.5 if place["transport"] == "shm" else 1.9
        yield Beside(f"{text} one thread by hand without a shuffle", "operators", VALUE, JOIN, BY_HAND, at, of_hand)
        yield Beside(f"{text} rows received first (GHJ)", "operators", VALUE, JOIN, MATERIALISED, at, 0.95)
        yield Beside(f"{text} DuckDB", "operators", VALUE, JOIN, DUCKDB, at, 0.4)
        yield Beside(f"{text} Arrow", "operators", VALUE, JOIN, ARROW, at, 0.3)


def _of_python():
    for value, name in (("bytes_per_second", "bytes per second"), ("bytes_per_cpu_second", "bytes per second of CPU")):
        for faro, other, bound in (("shm", "flight", 1.5), ("shm", "pickle", 2), ("tcp", "flight", 1)):
            what = f"Python, Arrow batches: {faro} against {'Flight' if other == 'flight' else 'sockets with pickle 5'}, {name}"
            yield Beside(what, "python", value, f"python-{faro}", f"python-{other}", {}, bound, at_least=True)


def _of_flink_jobs():
    modes = {"pipelined": "TPC-H pipelined", "blocking": "TPC-H blocking", "streams": "streams"}
    for mode, text in modes.items():
        for value, name in (("seconds", "time"), ("cpu_seconds_per_query", "CPU time")):
            yield NoJobSlower(f"Flink, {text}: {name}", "flink-jobs", value, mode)
        yield NetworkHalved(f"Flink, {text}: half of the network's CPU time saved", "flink-jobs", mode)


GOALS = (
    Goal("Less CPU time than MPI Isend on shared memory", "peers", "cpu_ns_per_hop", "shm", "mpi-isend", 1.3),
    Goal("Faster than Aeron IPC carrying the same frames from Java", "peers", "seconds", "java-shm", "aeron-ipc", 1.3),
    *_of_figures(),
    *_of_multiplexer(),
    *_of_operators(),
    *_of_python(),
    *_of_queries("queries", "TPC-C", TPCC),
    *_of_queries("queries-tpch", "TPC-H", TPCH),
    *_of_flink(),
    *_of_flink_jobs(),
)
