"""What each figure shows: one paragraph, its numbers and its words computed from the measurements.

A paragraph says also where Faro loses, and what no difference can be told of."""

import flink_jobs
from best_choice import VALUE, beside_best, keys_text, places
from labels import is_java, label, number, shape, size
from measurement import Comparison, Measurements
from operator_ways import ARROW, AUTOMATIC, BY_HAND, DUCKDB, JOIN, MATERIALISED, TREE
from shares import FARO as SQL_FARO
from shares import SOCKETS as SQL_SOCKETS
from shares import gain, place_of, share

DEFAULT_THRESHOLD = 16 * 1024
FARO = ("shm", "tcp", "java-shm", "java-tcp")


def paragraph(name: str, measurements: Measurements) -> str:
    """Of the experiment called so. Empty if nothing was measured that it could speak of."""
    return " ".join(sentence for sentence in _PARAGRAPHS[name](measurements) if sentence)


def against(ms: Measurements, value: str, what: str, faro: str, others, where: str = "", **parameters) -> str:
    """A sentence on how many times the `what` (time, CPU time) of `faro` the others take; empty if none was measured."""
    more, less, undecided = [], [], []
    for other in others:
        found = ms.compare(value, faro, other, **parameters)
        if found is None:
            continue
        times = f"{label(other)}, {number(found.ratio)} times ({number(found.least)} to {number(found.most)})"
        if not found.clear:
            undecided.append(times)
        elif found.ratio > 1:
            more.append(times)
        else:
            back = f"({number(1 / found.most)} to {number(1 / found.least)})"
            less.append(f"{label(other)}, of which it takes {number(1 / found.ratio)} times {back}")
    said = {"more is taken by": more, "Faro loses against": less, "the laps do not agree about": undecided}
    parts = [f"{words} {_listed(who)}" for words, who in said.items() if who]
    return f"{what[0].upper()}{what[1:]} beside {label(faro)}{where}: {'; '.join(parts)}." if parts else ""


def losses(found: list[tuple[str, Comparison | None]], against: str) -> str:
    """`found`: where, and how many times more the other takes there than Faro."""
    lost = [f"{where} ({number(1 / c.ratio)} times as much)" for where, c in found if c and c.clear and c.ratio < 1]
    if not [c for _, c in found if c]:
        return ""
    if not lost:
        return f"Nowhere in this figure does Faro clearly lose against {against}."
    return f"Faro loses against {against}, with {_listed(lost)}."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _less(faro: float, other: float) -> str:
    return f"{_gained(1 - faro / other)} time"


def _fastest(ms: Measurements, contestant: str, processes: int):
    """The least median over all numbers of workers, with that number."""
    spreads = ms.spreads("seconds", contestant, "workers", processes=processes)
    return min(((spread.median, workers) for workers, spread in spreads.items()), default=None)


def _sockets(faro: str) -> str:
    """Those of its language."""
    return "java-nio" if is_java(faro) else "sockets"


def _workers(ms: Measurements):
    for processes in ms.parameter_values("processes"):
        for faro, sockets, language in (("shm", "sockets", "C++"), ("java-shm", "java-nio", "Java")):
            best, other = _fastest(ms, faro, processes), _fastest(ms, sockets, processes)
            if best and other:
                yield (
                    f"Fastest against fastest, {processes} processes, {language}: {label(faro)} {number(best[0])} s with "
                    f"{best[1]} per process, {label(sockets)} {number(other[0])} s with {other[1]}: {_less(best[0], other[0])}."
                )
    yield "In the paper it is 75 % less, against sockets that write every row for itself."
    for value, what in (("seconds", "time"), ("cpu_ns_per_hop", "CPU time")):
        found = [
            (f"{label(faro)}, {shape(place)}", ms.compare(value, faro, _sockets(faro), **place))
            for place in ms.places("processes", "workers")
            for faro in FARO
        ]
        yield losses(found, f"the sockets of its language, by {what}")


def _threshold(ms: Measurements):
    for processes in ms.parameter_values("processes"):
        for contestant in ms.contestants():
            spreads = ms.spreads("cpu_ns_per_hop", contestant, "threshold_bytes", processes=processes)
            by_size = {threshold: spread.median for threshold, spread in spreads.items()}
            if len(by_size) < 2:
                continue
            best, worst = min(by_size, key=by_size.get), max(by_size, key=by_size.get)
            text = (
                f"{label(contestant)}, {processes} processes: the worst threshold ({_threshold_text(worst)}) costs "
                f"{number(by_size[worst] / by_size[best])} times the CPU time of the best ({_threshold_text(best)})"
            )
            with_one = {threshold: median for threshold, median in by_size.items() if threshold > 0}
            if len(with_one) > 1:
                text += f", the worst that is more than none {number(max(with_one.values()) / by_size[best])} times"
            if DEFAULT_THRESHOLD in by_size:
                text += f", the default of 16 KiB {number(by_size[DEFAULT_THRESHOLD] / by_size[best])} times"
            yield text + "."
    yield "The paper found more than 25 % in time between thresholds, and 16 KiB to be good."


def _threshold_text(threshold: int) -> str:
    return size(threshold) if threshold else "none"


def _row_width(ms: Measurements):
    for contestant in ms.contestants():
        spreads = ms.spreads("bytes_per_second_per_node", contestant, "row_bytes")
        rates = {width: spread.median / 1e9 for width, spread in spreads.items()}
        if rates:
            best, first, last = max(rates, key=rates.get), min(rates), max(rates)
            yield f"{label(contestant)}: of rows of {size(first)} a node receives {number(rates[first])} GB/s" + (
                f", most of {size(best)}: {number(rates[best])} GB/s" if best != first else ", and of no others more"
            ) + (f", of {size(last)} {number(rates[last])} GB/s." if last != best else ".")
    yield "All nodes share the one processor: together they receive as many times more as there are nodes."


def _messages(ms: Measurements):
    for faro, other in (("shm", "ucx-shm"), ("shm", "memcpy"), ("tcp", "ucx-tcp")):
        # Of a rate: who has more takes less.
        found = [
            (f"messages of {size(place['message_bytes'])}", ms.compare("bytes_per_second", other, faro, **place))
            for place in ms.places("message_bytes")
        ]
        clear = [(where, c) for where, c in found if c and c.clear]
        won = [f"{number(c.ratio)} times with {where}" for where, c in clear if c.ratio > 1]
        if won:
            yield f"{label(faro)} moves more than {label(other)}: {_listed(won)}."
        lost = [f"{number(1 / c.ratio)} times with {where}" for where, c in clear if c.ratio < 1]
        if lost:
            yield f"It loses: {label(other)} moves more than {label(faro)}: {_listed(lost)}."
    if ms.of("shm"):
        yield (
            "Faro over shared memory hands frames over where they were written, and here hardly anything is written into "
            "them; the figures by the width of rows are those of rows that are written and read."
        )


def _patterns(ms: Measurements):
    for contestant in ms.contestants():
        for processes in ms.parameter_values("processes"):
            spreads = ms.spreads("bytes_per_second_per_node", contestant, "pattern", processes=processes)
            rates = {pattern: spread.median / 1e9 for pattern, spread in spreads.items()}
            if len(rates) == 2:
                ratio = rates["broadcast"] / rates["repartition"]
                yield (
                    f"{label(contestant)}, {processes} nodes: {number(rates['repartition'])} GB/s a node by repartition, "
                    f"{number(rates['broadcast'])} by broadcast, which is {number(max(ratio, 1 / ratio))} times "
                    f"{'faster' if ratio > 1 else 'slower'}."
                )


def _connect(ms: Measurements):
    for contestant in ms.contestants():
        spreads = ms.spreads("connect_seconds", contestant, "processes")
        texts = [f"{processes} nodes {number(spread.median * 1e3)} ms" for processes, spread in spreads.items()]
        if texts:
            yield f"{label(contestant)}: {_listed(texts)}."
    yield (
        "(The data-shuffling-operator paper, on machines of their own: under 40 ms.) All nodes share the processors of one "
        "machine, and every pair of them makes a link: time grows faster than the number of nodes."
    )


def _gained(part: float) -> str:
    return f"{part * 100:.0f} % less" if part >= 0 else f"{-part * 100:.0f} % more"


def _queries(ms: Measurements):
    for query in ms.parameter_values("query"):
        place = place_of(ms, "cpu_seconds_per_query", query)
        if place is None:
            continue
        cpu = gain(ms, "cpu_seconds_per_query", place)
        agreed = "" if (cpu.least > 0) == (cpu.most > 0) else ", about which the laps do not agree"
        time = gain(ms, "seconds", place)
        parts = share(ms, SQL_FARO, place), share(ms, SQL_SOCKETS, place)
        seen = "was not seen over both"
        if None not in parts:
            seen = f"has {parts[0] * 100:.0f} % of the workers' CPU time instead of {parts[1] * 100:.0f} %"
        yield (
            f"{query[0].upper()}{query[1:]}, {place['workers']} per process: over Faro {_gained(cpu.median)} CPU time than over "
            f"sockets ({_gained(cpu.least)} to {_gained(cpu.most)}){agreed}, {_gained(time.median)} time; the shuffle {seen}."
        )
    found = [
        (f"{place['query']}, {place['workers']} per process", ms.compare("cpu_seconds_per_query", SQL_FARO, SQL_SOCKETS, **place))
        for place in ms.places("query", "workers")
    ]
    yield losses(found, "sockets, by CPU time")


def _queries_of_the_paper(ms: Measurements):
    yield from _queries(ms)
    if ms.parameter_values("query"):
        yield "In the paper RDMA brings 2 % to 16 % of the greatest speed-up of these queries on 4 machines."


def _peers(ms: Measurements):
    for value, what in (("cpu_ns_per_hop", "CPU time"), ("seconds", "time")):
        yield against(ms, value, what, "shm", ("mpi-isend", "mpi-alltoallv", "zeromq", "sockets"))
        yield against(ms, value, what, "tcp", ("mpi-isend-tcp", "sockets"))
        yield against(ms, value, what, "java-shm", ("aeron-ipc", "java-nio"))
        yield against(ms, value, what, "java-shm-one", ("aeron-ipc",))
        yield against(ms, value, what, "java-tcp", ("aeron-udp", "java-nio"))
    floor, faro = ms.spread("cpu_ns_per_hop", "memcpy"), ms.spread("cpu_ns_per_hop", "shm")
    if floor and faro:
        yield (
            f"A memcpy of each frame within one process takes {number(floor.median)} ns per hop, {label('shm')} "
            f"{number(faro.median)} ns of CPU time: {number(faro.median / floor.median)} times."
        )


def _figures(ms: Measurements):
    yield against(ms, "cpu_ns_per_hop", "CPU time", "shm", ("plain-loop", "sockets"), part="pinned")
    yield against(ms, "cpu_ns_per_hop", "CPU time", "tcp", ("sockets",), part="pinned")
    yield against(ms, "cpu_ns_per_hop", "CPU time", "java-shm", ("shm", "java-nio"), part="java")
    found = [
        (f"rows of {width} bytes", ms.compare("cpu_ns_per_hop", "shm", "plain-loop", part="widths", row_bytes=width))
        for width in ms.parameter_values("row_bytes")
    ]
    yield losses(found, "the loop written by hand, by CPU time")
    places = [place for place in ms.places("processes", "workers", "row_bytes") if ms.of("tcp", part="tcp", **place)]
    found = [
        (f"{shape(place)}, rows of {place['row_bytes']} bytes", ms.compare("cpu_ns_per_hop", "tcp", "sockets", part="tcp", **place))
        for place in places
    ]
    yield losses(found, "tuned sockets over TCP, by CPU time")


def _multiplexer(ms: Measurements):
    for row_bytes in ms.parameter_values("row_bytes"):
        where = f" (rows of {row_bytes} bytes)"
        others = ("group-one_group", "group-apart", "group-broadcast")
        yield against(ms, "cpu_ns_per_copy", "CPU time", "group-overlap", others, where, row_bytes=row_bytes)
    for workers in ms.parameter_values("workers"):
        for node, worker in (("shm-node", "shm"), ("tcp-node", "tcp")):
            where = f" (the two-stage job, 4 × {workers})"
            yield against(ms, "cpu_ns_per_hop", "CPU time", node, (worker,), where, part="two-stage", workers=workers)
        where = f" (2 × {workers}, three quarters of the rows have one key)"
        yield against(ms, "seconds", "time", "delivery-node", ("delivery-worker",), where, part="skewed", workers=workers)


def _operators(ms: Measurements):
    of_best = []
    for at in places(ms):
        where = f"{shape(at)}, {at['transport']}, keys {keys_text(at)}, {at['groups']:,} groups"
        yield against(ms, VALUE, "CPU time", AUTOMATIC, (TREE, DUCKDB), f" ({where})", **at)
        found = beside_best(ms, **at)
        # How many times more the best choice takes.
        of_best.append((where, found and Comparison(1 / found.times.ratio, 1 / found.times.most, 1 / found.times.least)))
    yield losses(of_best, "the best choice for each, by CPU time")
    for at in ms.places("processes", "workers", "transport", "ratio"):
        where = f" ({shape(at)}, {at['transport']}, 1 : {at['ratio']})"
        yield against(ms, VALUE, "CPU time", JOIN, (MATERIALISED, BY_HAND, DUCKDB, ARROW), where, part="join", **at)


def _python(ms: Measurements):
    for value, what in (("seconds", "time"), ("cpu_seconds", "CPU time")):
        for faro in ("python-shm", "python-tcp", "python-shm-256", "python-tcp-256"):
            yield against(ms, value, what, faro, ("python-flight", "python-pickle"))


def _flink(ms: Measurements):
    for place in ms.places("processors", "shape"):
        found = []
        for carrier in ("shm", "tcp", "local", "shm-ssl", "tcp-ssl"):
            one, other = f"flink-{carrier}", "flink-netty-ssl" if carrier.endswith("-ssl") else "flink-netty"
            ratios = {value: ms.compare(value, other, one, **place) for value in _OF_FLINK}
            texts = [f"{words} {_times(ratios[value])}" for value, words in _OF_FLINK.items() if ratios[value]]
            if texts:
                found.append(f"{label(one)} {', '.join(texts)}")
        if found:
            where = "one processor" if place["processors"] == 1 else f"{place['processors']} processors"
            shape = place["shape"][0].upper() + place["shape"][1:]
            yield f"{shape}, {where}, in times of Netty's (where there is SSL, with SSL): {'; '.join(found)}."
    yield losses(_beside_netty(ms, "cpu_ns_per_record", False), "Netty, by CPU time")
    yield losses(_beside_netty(ms, "records_per_second", True), "Netty, by records per second")
    yield losses(_beside_netty(ms, "p50_us", False), "Netty, by latency")


_OF_FLINK = {
    "cpu_ns_per_record": "CPU",
    "transport_ns_per_record": "that of the transport's threads",
    "records_per_second": "records per second",
    "p50_us": "p50",
    "p99_us": "p99",
}


def _times(found: Comparison) -> str:
    return f"{number(found.ratio)} ({number(found.least)} to {number(found.most)}{'' if found.clear else ', undecided'})"


def _beside_netty(ms: Measurements, value: str, other_way: bool) -> list[tuple[str, Comparison | None]]:
    """Where, and how many times more Netty takes there; of a rate, how many times more Faro has."""
    found = []
    for place in ms.places("processors", "shape"):
        for carrier in ("shm", "tcp", "shm-ssl", "tcp-ssl"):
            pair = (f"flink-{carrier}", "flink-netty-ssl" if carrier.endswith("-ssl") else "flink-netty")
            where = f"{label(pair[0])}, {place['shape']}, {place['processors']} processor{'s' if place['processors'] > 1 else ''}"
            found.append((where, ms.compare(value, *(reversed(pair) if other_way else pair), **place)))
    return found


def _flink_jobs(ms: Measurements):
    for place in flink_jobs.places(ms):
        cpu, time = (flink_jobs.beside_netty(ms, value, place) for value in ("cpu_seconds_per_query", "seconds"))
        part = flink_jobs.transport_share(ms, place)
        yield (
            f"{flink_jobs.name(place)} TaskManagers, {place['mode']}: in times of Netty's CPU time {_times(cpu)}, time {_times(time)}; Netty's threads take "
            f"{part * 100:.1f} % of the CPU time."
        )
    for value, what in (("cpu_seconds_per_query", "CPU time"), ("seconds", "time")):
        found = [
            (f"{flink_jobs.name(place)} TaskManagers, {place['mode']}", ms.compare(value, flink_jobs.FARO, flink_jobs.NETTY, **place))
            for place in flink_jobs.places(ms)
        ]
        yield losses(found, f"Netty, by {what}")


def _guest(ms: Measurements):
    for workers in ms.parameter_values("workers"):
        for faro in ("rxe", "siw", "tcp", "java-rxe", "java-siw"):
            yield against(ms, "seconds", "time", faro, (_sockets(faro),), f" (4 × {workers})", workers=workers)


_PARAGRAPHS = {
    "workers": _workers,
    "threshold": _threshold,
    "row-width": _row_width,
    "messages": _messages,
    "patterns": _patterns,
    "connect": _connect,
    "queries": _queries_of_the_paper,
    "queries-tpch": _queries,
    "peers": _peers,
    "figures": _figures,
    "multiplexer": _multiplexer,
    "operators": _operators,
    "python": _python,
    "flink": _flink,
    "flink-jobs": _flink_jobs,
    "guest": _guest,
}
