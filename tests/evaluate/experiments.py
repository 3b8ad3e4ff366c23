"""What is measured: data. `experiments(quick)` has all of it, in the order in which it is run."""

import os
from dataclasses import dataclass, replace

from aeron import Aeron
from contestant import Contestant
from copying import TUPLES, Copying, Tuples
from delivery import DeliveryWays, Plan, RingMemory, Skew
from faro import Faro, GroupWays, RowWays
from faro_java import FaroJava
from flink import LAST_ROUNDS, SHAPES, THROUGHPUT, Flink
from flink_jobs import FlinkJobs
from mpi import Mpi
from operator_ways import ARROW, DUCKDB, AggregationWays, JoinWays, OtherOperators
from python_batches import PythonBatches
from queries import Queries
from ucx import Ucx
from zeromq import Zeromq

KIB = 1024

TO_NODES = ("--delivery", "node", "--set", "lane.ends=node")

CONTESTANTS: dict[str, Contestant] = {
    one.name: one
    for one in (
        Faro("shm", "Faro over shared memory"),
        Faro("tcp", "Faro over TCP"),
        Faro("sockets", "tuned sockets"),
        Faro("sockets-paper", "sockets as in the paper, a write per row"),
        Faro("plain-loop", "a loop written by hand for this job"),
        Faro("copies", "making, hashing and copying the rows alone"),
        RowWays("row-ways", "ways to send rows"),
        GroupWays("group-ways", "rows to groups of receivers"),
        Faro("shm-node", "Faro over shared memory, delivery to nodes", "shm", *TO_NODES),
        Faro("shm-node-32", "Faro over shared memory, delivery to nodes, rings of 32 KiB", "shm", *TO_NODES, "--ring", "32KiB"),
        Faro("tcp-node", "Faro over TCP, delivery to nodes", "tcp", *TO_NODES),
        Faro("tcp-node-32", "Faro over TCP, delivery to nodes, rings of 32 KiB", "tcp", *TO_NODES, "--ring", "32KiB"),
        DeliveryWays("delivery-ways", "delivery to nodes"),
        Skew("skew", "rows by their hash, counted"),
        RingMemory("ends-workers", "lanes that end at workers", "workers"),
        RingMemory("ends-node", "lanes that end at nodes", "node"),
        Plan("plan-workers", "faro plan, lanes that end at workers", "workers"),
        Plan("plan-node", "faro plan, lanes that end at nodes", "node"),
        AggregationWays("aggregation-ways", "aggregation"),
        JoinWays("join-ways", "join"),
        OtherOperators(DUCKDB, "DuckDB", "duckdb", ("shm", "tcp")),
        OtherOperators(ARROW, "Arrow", "pyarrow", ("shm", "tcp")),
        FaroJava("java-shm", "Faro in Java over shared memory", "shm"),
        FaroJava("java-shm-one", "Faro in Java row by row", "shm", "one"),
        FaroJava("java-shm-codec", "Faro in Java by a codec", "shm", "codec"),
        FaroJava("java-tcp", "Faro in Java over TCP", "tcp"),
        FaroJava("java-nio", "tuned Java NIO sockets", "nio"),
        FaroJava("java-nio-paper", "Java NIO sockets as in the paper, a write per row", "nio-paper"),
        Mpi("mpi-isend", "MPI Isend over shared memory", "isend", "vader"),
        Mpi("mpi-isend-tcp", "MPI Isend over TCP", "isend", "tcp"),
        Mpi("mpi-alltoallv", "MPI Alltoallv over shared memory", "alltoallv", "vader"),
        Zeromq("zeromq", "ZeroMQ over ipc"),
        Aeron("aeron-ipc", "Aeron over IPC"),
        Aeron("aeron-udp", "Aeron over UDP"),
        Ucx("ucx-shm", "UCX put over shared memory", "posix,self"),
        Ucx("ucx-tcp", "UCX put over TCP", "tcp"),
        Copying("memcpy", "memcpy in one process"),
        Tuples(TUPLES, "tuples copied in memory"),
        Queries("sql", "the SQL engine over Faro and over tuned NIO sockets"),
        Flink("netty", "Flink over Netty"),
        Flink("shm", "Flink over Faro, shared memory"),
        Flink("tcp", "Flink over Faro, TCP"),
        Flink("local", "Flink within a TaskManager"),
        Flink("netty", "Flink over Netty with SSL", ssl=True),
        Flink("shm", "Flink over Faro, shared memory, with SSL", ssl=True),
        Flink("tcp", "Flink over Faro, TLS", ssl=True),
        PythonBatches("python-shm", "Faro over shared memory, from Python", "shm"),
        PythonBatches("python-tcp", "Faro over TCP, from Python", "tcp"),
        PythonBatches("python-shm-256", "Faro over shared memory, rings of 256 KiB, from Python", "shm", "--ring", "256KiB"),
        PythonBatches("python-tcp-256", "Faro over TCP, rings of 256 KiB, from Python", "tcp", "--ring", "256KiB"),
        PythonBatches("python-flight", "Arrow Flight, DoPut", "flight"),
        PythonBatches("python-pickle", "a socket and pickle 5, out of band", "pickle"),
        FlinkJobs("flink-jobs", "Flink's jobs over Netty and over Faro"),
    )
}
CPP = ("shm", "tcp", "sockets")
JAVA = ("java-shm", "java-tcp", "java-nio")
FARO = ("shm", "tcp")


@dataclass(frozen=True)
class Point:
    """One contestant at one place of an experiment."""

    contestant: str
    parameters: dict
    workload: str | None = None  # None: that of the experiment
    pinned: bool | None = None


@dataclass(frozen=True)
class Experiment:
    """Points that are measured lap by lap, all of them in each lap."""

    name: str
    workload: str  # as in Contestant.command; "guest": a suite of tests/softroce
    points: tuple[Point, ...] = ()
    laps: int = 5
    pinned: bool = False  # all on one processor, where CPU time and time are steady
    time_limit_s: float = 120
    title: str = ""
    method: str = ""  # what is done, for the report


PAPER_ROWS = 5_000_000  # integers of each process


def experiments(quick: bool, rows: int = PAPER_ROWS) -> list[Experiment]:
    """`quick`: few points, few rows, few laps: to see that everything runs and verifies, not how fast. `rows`: of each
    process in the two-stage job."""
    two_stage = {"rows": 100_000, "warmup": 1} if quick else {"rows": rows}
    made = [
        _workers(quick, two_stage),
        _threshold(quick, two_stage),
        _row_width(quick),
        _messages(quick),
        _patterns(quick),
        _connect(quick),
        _queries_tpcc(quick),
        _queries_tpch(quick),
        _peers(two_stage),
        _figures(quick, two_stage),
        _multiplexer(quick, two_stage),
        _operators(quick),
        _python(quick),
        _flink(quick),
        _flink_jobs(quick),
    ]
    return [replace(one, laps=1) for one in made] if quick else [*made, _guest()]


def _points(contestants, *places: dict) -> tuple[Point, ...]:
    return tuple(Point(name, place) for place in places for name in contestants)


def _workers(quick: bool, rows: dict) -> Experiment:
    shapes = [(4, 1), (4, 2)] if quick else [(p, w) for p in (4, 8) for w in (1, 2, 4)]
    places = [{"processes": p, "workers": w, **rows} for p, w in shapes]
    points = _points(CPP, *places) + _points(JAVA, *(places[:1] if quick else places))
    return Experiment(
        "workers", "two_stage", points, laps=4,
        title="Two shuffles in a row, by workers (Fig. 3 of the paper)",
        method=f"Every process generates {rows['rows']:,} integers, which are shuffled by hash, multiplied by 3/2 and shuffled "
        "again. All processors of the machine are used. A point is the last round of fresh processes: the second in C++, the "
        "sixth in Java.",
    )  # fmt: skip


def _threshold(quick: bool, rows: dict) -> Experiment:
    sizes = (0, 16) if quick else (0, 1, 2, 4, 8, 16, 32, 64)
    # The largest threshold is half a ring. Without one every row is a transfer, so that a tenth of the rows will do.
    few = {**rows, "rows": rows["rows"] // 10}
    places = [
        {"processes": count, "workers": 2, "ring_bytes": 128 * KIB, "threshold_bytes": size * KIB, **(rows if size else few)}
        for count in ((4,) if quick else (4, 8))
        for size in sizes
    ]
    return Experiment(
        "threshold", "two_stage", _points(FARO, *places), laps=4,
        title="The threshold of a transfer (Fig. 4 of the paper)",
        method="The same job with two workers per process. A transfer starts when as many bytes are pending in a ring; rings "
        "have 128 KiB, so that nothing else changes. Without a threshold every row is a transfer of its own.",
    )  # fmt: skip


def _row_width(quick: bool) -> Experiment:
    widths = (8, 4096) if quick else (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
    volume = 2_000_000 if quick else 100_000_000  # bytes that a worker sends
    places = [
        # Narrow rows are bound by their number, not by their bytes.
        {"processes": 4, "pattern": "repartition", "row_bytes": width, "rows": min(volume // width, 5_000_000)}
        for width in widths
    ]
    return Experiment(
        "row-width", "receive", _points(FARO, *places), pinned=True,
        title="What a node receives, by the width of rows",
        method="Four processes with a worker each repartition rows by hash, on one processor. Every byte is written by its "
        "sender and checked by its receiver.",
    )  # fmt: skip


def _messages(quick: bool) -> Experiment:
    sizes = (4, 64) if quick else (1, 4, 16, 64, 256, 1024)
    volume = 20_000_000 if quick else 1_000_000_000
    places = [{"message_bytes": size * KIB, "count": max(100, min(volume // (size * KIB), 200_000))} for size in sizes]
    return Experiment(
        "messages", "messages", _points((*FARO, "ucx-shm", "ucx-tcp", "memcpy"), *places), pinned=True,
        title="Bandwidth from one process to another, by the size of messages",
        method="One worker sends to one of another process, both on one processor. Faro's sender fills a frame in place, its "
        "first and its last word, and the receiver checks both; over shared memory nothing is copied. UCX puts the same "
        "bytes again and again; memcpy copies them into a ring of 16.",
    )  # fmt: skip


def _patterns(quick: bool) -> Experiment:
    rows = 2_000 if quick else 400_000  # that each node receives: broadcast multiplies what is sent
    places = [
        {"processes": count, "row_bytes": 256, "pattern": pattern, "rows": rows // copies}
        for count in ((2,) if quick else (2, 4, 8))
        for pattern, copies in (("repartition", 1), ("broadcast", count))
    ]
    return Experiment(
        "patterns", "receive", _points(FARO, *places), pinned=True,
        title="Repartition and broadcast, by nodes",
        method="Rows of 256 bytes, each to the worker of its hash or to all workers, on one processor. Every node receives as "
        "many rows in both cases.",
    )  # fmt: skip


def _connect(quick: bool) -> Experiment:
    places = [{"processes": count, "workers": 2, "rows": 20_000} for count in ((2, 4) if quick else (2, 4, 8, 16))]
    return Experiment(
        "connect", "connect", _points(FARO, *places), laps=7,
        title="What connecting costs, by nodes",
        method="From the first node that begins to the last that is connected to all others; two workers each.",
    )  # fmt: skip


_QUERIES_METHOD = (
    "The engine of examples/sql on {} processes, each with a part of all tables in memory: the same planner, rows, codecs and operators, Calcite's; "
    "the exchanges' carrier differs, and how often a broadcast travels, which the planner counts: over Faro once to each process, "
    "over sockets once to each worker. Over both a worker that waits sleeps at once (Faro: wait.yields = 0); Faro's rings hold 256 "
    "KiB, a socket's buffers 16 and 64 KiB beside those of the kernel, both with their own defaults else. Plans are made and "
    "compiled before; a point is the mean of {} runs after {} others in fresh processes. Both clusters stand at the same time and "
    "take turns: each runs all queries once while the other waits, so that both meet the same machine. CPU time is that of all "
    "processes of a cluster and all their threads but the JVM's compilers. The share of the shuffle is looked for in other runs, "
    "by the workers' stacks: what of their CPU time goes into exchanges, with codecs, hashing of rows to receivers and sockets, or "
    "with Faro its own threads. "
    "A stack is seen where the JVM lets it be seen, at safepoints: the share may be up to a third too large. "
    "All processors of the machine are used, and there are {}: more workers than these bring no speed-up, so that what can be "
    "compared is the CPU time of a query."
)


def _queries(name: str, title: str, tables: dict, workers: tuple, runs: tuple) -> Experiment:
    """`runs` of each query: those that warm up, those that are measured, those whose stacks are looked at."""
    counts = dict(zip(("warmup", "laps", "sampled"), runs))
    places = [{**tables, "workers": count, **counts} for count in workers]
    method = _QUERIES_METHOD.format(tables["processes"], counts["laps"], counts["warmup"], os.cpu_count())
    return Experiment(
        name, "queries", _points(("sql",), *places), laps=3, time_limit_s=600, title=title, method=method
    )


def _queries_tpcc(quick: bool) -> Experiment:
    title = "Three queries over TPC-C, by workers (Fig. 5 of the paper)"
    if quick:
        tables = {"processes": 2, "data": "tpcc", "scale": 0.1, "queries": "query 1,query 3"}
        return _queries("queries", title, tables, (1,), (1, 1, 1))
    return _queries("queries", title, {"processes": 4, "data": "tpcc", "scale": 2}, (1, 2, 4), (60, 20, 15))


def _queries_tpch(quick: bool) -> Experiment:
    title = "Queries of TPC-H, over Faro and over sockets"
    if quick:
        tables = {"processes": 2, "data": "tpch", "scale": 0.01, "queries": "q3"}
        return _queries("queries-tpch", title, tables, (1,), (1, 1, 1))
    return _queries("queries-tpch", title, {"processes": 4, "data": "tpch", "scale": 0.1}, (1, 2), (10, 4, 4))


def _peers(rows: dict) -> Experiment:
    cpp = ("shm", "tcp", "sockets", "mpi-isend", "mpi-isend-tcp", "mpi-alltoallv", "zeromq", "memcpy")
    java = ("java-shm", "java-shm-one", "java-tcp", "java-nio", "aeron-ipc", "aeron-udp")
    points = _points(cpp + java, {"processes": 4, "workers": 1, **rows})
    return Experiment(
        "peers", "two_stage", points, laps=7, pinned=True,
        title="Faro and what else could carry the rows",
        method="The job of Fig. 3 with four processes and a worker each, all on one processor: the same integers, hash, "
        "scatter (in C++) and frames of 16 KiB; what differs is who carries the frames. memcpy copies each frame once, "
        "within one process: no carrier that copies can take less.",
    )  # fmt: skip


ROW_WIDTHS = (8, 16, 24, 32, 64, 100, 128)  # that are compiled
LARGE_WIDTHS = (64 * KIB, 1024 * KIB)  # rows larger than a frame
TCP_SHAPES = ((4, 1, 8), (4, 1, 16), (4, 1, 32), (4, 1, 64), (4, 1, 100), (8, 1, 8), (8, 1, 100), (8, 4, 8))  # processes, workers, bytes of a row
SHAPES_ON_ALL = ((4, 2), (8, 1))


def _figures(quick: bool, rows: dict) -> Experiment:
    volume = 1_600_000 if quick else 160_000_000  # bytes of all rows, where the width is varied

    def wide(part: str, processes: int, workers: int, row_bytes: int) -> dict:
        count = volume // row_bytes // processes
        return {"part": part, "processes": processes, "workers": workers, "row_bytes": row_bytes, "rows": count}

    pinned = {"part": "pinned", "processes": 4, "workers": 1, **rows}
    widths = [wide("widths", 4, 1, row_bytes) for row_bytes in ((8, 100) if quick else ROW_WIDTHS)]
    large = [{**wide("large", 4, 1, row_bytes), "rows": (1_600_000 if quick else 800_000_000) // row_bytes // 4 + 1} for row_bytes in LARGE_WIDTHS]
    shapes = [wide("tcp", *shape) for shape in (TCP_SHAPES[:1] if quick else TCP_SHAPES)]
    on_all = [{"part": "unpinned", "processes": p, "workers": w, **rows} for p, w in (SHAPES_ON_ALL[:1] if quick else SHAPES_ON_ALL)]
    connect = [
        {"part": "connect", "processes": count, "workers": 2, "rows": 20_000, "secret": secret}
        for count in ((2,) if quick else (8, 2))
        for secret in ("no", "yes")
    ]
    ways = [
        {"part": "run-time-width", "row_bytes": row_bytes, "rows": volume // 10 // row_bytes, "rounds": 2 if quick else 7}
        for row_bytes in ((8,) if quick else ROW_WIDTHS)
    ]
    java = ("shm", "java-shm", "java-shm-one", "java-shm-codec", "java-tcp", "java-nio")
    points = _points((*FARO, "sockets", "plain-loop"), pinned)
    points += _points(("shm", "sockets"), {**pinned, "part": "cheap hash", "hash": "multiplicative"})
    points += _points(("shm", "plain-loop", "copies"), *widths)
    points += _points((*CPP, "plain-loop", "copies"), *large)
    points += _points(("tcp", "sockets"), *shapes)
    points += _points(java, {**pinned, "part": "java"})
    points += _of(_points(CPP, *on_all), pinned=False)
    points += _of(_points(("shm",), {"part": "variable-rows", "rows": 20_000 if quick else 2_000_000}), workload="variable_rows")
    points += _of(_points(("row-ways",), *ways), workload="row_ways")
    idle = {"part": "idle", "processes": 8, "workers": 1, "rows": 20_000, "idle_seconds": 1 if quick else 10}
    points += _of(_points(("shm",), idle), workload="idle", pinned=False)
    points += _of(_points(FARO, *connect), workload="connect", pinned=False)
    return Experiment(
        "figures", "two_stage", points, laps=7, pinned=True,
        title="Every figure that the project sets itself a goal for",
        method="The two-stage job in C++ and Java, beside tuned sockets, a loop written by hand for this job alone and the copies alone, "
        "on one processor; rows of every width that is compiled, 160 MB of them, and of 64 KiB and 1 MiB, 800 MB; on all processors 4 × 2 and 8 × 1; rows with a length each; "
        "rows whose width is given at run time, one at a time and many, beside those of a compiled type; what a session of 8 nodes takes while "
        "it waits for nothing; and connecting, without and with a secret. The goals above have what is wanted of each.",
    )  # fmt: skip


SKEWED_PART = 0.0056  # of the rows, that have one key: so 6 units have 2.8 % more than the mean, as in the paper
WORKERS = (1, 2, 3, 4)  # per process, where hybrid parallelism stands beside classic parallelism


def _multiplexer(quick: bool, rows: dict) -> Experiment:
    volume = 1_600_000 if quick else 160_000_000
    groups = [
        {"part": "groups", "row_bytes": row_bytes, "rows": volume // row_bytes, "rounds": 2 if quick else 13}
        for row_bytes in ((8,) if quick else (8, 16, 100))
    ]
    two_stage = [{"part": "two-stage", "processes": 4, "workers": count, **rows} for count in ((2,) if quick else WORKERS)]
    four_by_two = {"part": "two-stage", "processes": 4, "workers": 2, **rows}
    worked_on = {"processes": 2, "workers": 4, "rows": 40_000 if quick else 2_000_000}  # about 1 us of CPU each
    skewed = [{**worked_on, "part": "skewed", "workers": count} for count in ((4,) if quick else WORKERS)]
    slow = [
        {**worked_on, "part": "absent"},
        {**worked_on, "part": "holding", **({"hold_ns": 1_000_000} if quick else {"rows": 4_000_000})},
    ]
    wide = {"part": "wide", "processes": 2, "workers": 2, "ring_bytes": 512 * KIB, "rows": 200 if quick else 40_000}
    broadcast = {"part": "broadcast", "processes": 4, "workers": 4, "rows": 2_000 if quick else 400_000}
    memory = [{"part": "memory", "processes": p, "workers": w} for p, w in ((4, 1), (4, 8), (8, 8))]
    counted = {"part": "skew", "part_of_one_key": SKEWED_PART, "rows": 1_000_000 if quick else 24_000_000}
    of_the_paper = {"part": "plan", "processes": 6, "workers": 40}
    points = _points(("group-ways",), *groups)
    free = _of(_points(("shm", "shm-node"), *two_stage), workload="two_stage")
    free += _of(_points(("shm-node-32", "tcp", "tcp-node", "tcp-node-32"), four_by_two), workload="two_stage")
    broadcasts = [{**broadcast, "transport": transport} for transport in FARO]
    free += _of(_points(("delivery-ways",), *skewed, *slow, wide, *broadcasts), workload="delivery")
    free += _of(_points(("ends-workers", "ends-node"), *memory), workload="memory")
    free += _of(_points(("skew",), *({**counted, "units": units} for units in (240, 6))), workload="skew")
    free += _of(_points(("plan-workers", "plan-node"), of_the_paper), workload="memory")
    return Experiment(
        "multiplexer", "groups", points + _of(free, pinned=False), laps=5, pinned=True, time_limit_s=300,
        title="What the multiplexer of HyPer's paper has, in Faro",
        method="Groups: one worker sends each row to two of the workers of its node, one after the other to two groups, or always to "
        "one, or by a broadcast to both without a group; one thread has all workers, on one processor. CPU time is that per row and copy, "
        "sent and received. All else is on all processors. The two-stage job delivers to workers by lanes of their own, or to nodes, "
        "where any worker takes what comes, by rings that are twice as large by default, or as large. Skewed: three quarters of the rows have one key, and a receiver works about 1 µs on a row, by "
        "a loop of counted instructions. Absent: one worker sends its rows, and makes no call before the others of its node have "
        "received all. Holding: one worker sends nothing, and holds every batch for 20 ms, asleep. Wide: rows of 64 KiB are copied in and out; beside it "
        "as many threads make both copies alone, each of what another one has copied in, or of its own. Broadcast: rows of 64 bytes of each worker to all "
        "workers, by delivery to workers or replicated. At least: the CPU time of the busiest worker, or that of all shared by the processors, "
        "which is what time would be on a machine without other work. Memory: what all processes have grown by when "
        "the session is open; of that rings are what more it is with rings twice as large. Skew is counted by the hash and the function that Faro partitions by.",
    )  # fmt: skip


# Of 4 M rows; what the aggregation is measured with.
GROUPS = (16, 256, 4_096, 16_000, 40_000, 100_000, 200_000, 300_000, 600_000, 1_000_000, 2_500_000, 4_000_000)
GROUPS_BY_SHAPE = (16_000, 300_000, 4_000_000)  # where keys are not drawn evenly
JOIN_RATIOS = (1, 4)  # probe rows for each build row
OPERATOR_SHAPES = ((4, 1), (4, 2))  # the first on one processor, the second on all
DUCKDB_GROUPS = (16, 100_000, 1_000_000, 4_000_000)  # where DuckDB stands beside it
# An eighth of what the groups of 16 M rows (10 M states of 16 bytes), or as many build rows of 8 bytes, take at each of 4 nodes.
MIB = 1024 * KIB
AN_EIGHTH = {"aggregation": {"operator_bytes": 4 * MIB, "overflow_bytes": MIB}, "join": {"operator_bytes": 3 * MIB, "overflow_bytes": MIB}}
TUPLE_WIDTHS = (8, 32, 128)  # bytes, of which the cost is measured
KEY_SHAPES = ({"keys": "zipf", "exponent": 1.0}, {"keys": "sorted"}, {"keys": "changing"})
MOST_GROUPS_SHAPES = ({"keys": "frequent"}, {"keys": "zipf", "exponent": 1.2})  # of 4 M groups


def _operators(quick: bool) -> Experiment:
    points = ()
    for processes, workers in OPERATOR_SHAPES[:1] if quick else OPERATOR_SHAPES:
        of_shape = ()
        for transport in FARO:
            at = {"processes": processes, "workers": workers, "transport": transport, "rows": 50_000 if quick else 4_000_000}
            aggregation = {"part": "aggregation", **at}
            evenly = [{**aggregation, "keys": "uniform", "groups": count} for count in ((GROUPS[0], GROUPS[-1]) if quick else GROUPS)]
            by_shape = [{**aggregation, **shape, "groups": count} for shape in KEY_SHAPES for count in GROUPS_BY_SHAPE]
            most = [{**aggregation, **shape, "groups": GROUPS[-1]} for shape in MOST_GROUPS_SHAPES]
            joins = [{"part": "join", **at, "ratio": ratio} for ratio in (JOIN_RATIOS[:1] if quick else JOIN_RATIOS)]
            of_shape += _points(("aggregation-ways",), *evenly, *(by_shape[:1] if quick else by_shape + most))
            of_shape += _points(("join-ways",), *joins)
            if transport == FARO[0]:  # those without one stand beside both
                compared = [place for place in evenly if place["groups"] in DUCKDB_GROUPS]
                of_shape += _points((DUCKDB,), *compared, *joins) + _points((ARROW,), *joins)
        points += _of(of_shape, pinned=(processes, workers) == OPERATOR_SHAPES[0])
    many = {"processes": 4, "workers": 1, "transport": "shm", "rows": 50_000 if quick else 16_000_000}
    for part, limit in AN_EIGHTH.items():
        what = {"keys": "uniform", "groups": 16_000_000} if part == "aggregation" else {"ratio": 1}
        places = [{"part": f"memory of the {part}", **many, **what, "memory": memory} for memory in ("all", "an eighth")]
        points += _points((f"{part}-ways",), places[0], {**places[1], **limit})
    volume = 4_000_000 if quick else 256_000_000  # bytes
    for row_bytes in TUPLE_WIDTHS[:1] if quick else TUPLE_WIDTHS:
        width = {"part": "cost", "row_bytes": row_bytes}
        points += _of(_points((TUPLES,), {**width, "count": volume // row_bytes}), workload="tuples")
        sent = {**width, "processes": 4, "pattern": "repartition", "rows": volume // row_bytes // 16}
        points += _of(_points(FARO, sent), workload="receive")
    return Experiment(
        "operators", "operators", points, laps=7, pinned=True, time_limit_s=300,
        title="Aggregation and join over shuffles (Fig. 7 and 8 of The End of Slow Networks)",
        method="Rows of 4 + 4 bytes, key and value. Aggregation: 4 M rows of all workers, a sum by key, by the number of groups of which keys "
        "are drawn; a table chosen by itself beside fixed ones, none, and a tree (Dist. AGG), in which each worker aggregates all its rows by hand, "
        "and then pairs of workers merge their groups. Keys are drawn evenly; by Zipf's law; sorted, as each worker of a sorted table reads them; changing, "
        "evenly over all groups, and from the middle on over 1024; frequent, half of all rows one key. "
        "Join: 4 M build rows, each with a key of its own, and as many or four times as many probe rows; beside all rows received first and then partitioned "
        "and joined by hand, and beside one thread that has all rows, joins them by the same code, and sends nothing. All of a point run in turns over one session, each once to warm "
        "up. Beside them DuckDB and Arrow, the same rows in their own columns in the memory of one process, with as many threads as it may use processors: the CPU "
        "time is that of the process. Memory: the same of 16 M rows, with and without a limit of an eighth of what groups or build rows take, overflow's included; what has no room goes to "
        "a file in the page cache. 4 processes of a worker each share one processor, of two workers each they have all. Count and checksum of groups and of pairs are verified.",
    )  # fmt: skip


_PYTHON = ("python-shm", "python-tcp", "python-shm-256", "python-tcp-256", "python-flight", "python-pickle")


def _python(quick: bool) -> Experiment:
    place = {"batches": 5 if quick else 200, "rows": 64 * KIB}
    return Experiment(
        "python", "batches", _points(_PYTHON, place), laps=7,
        title="Arrow batches between two processes of Python",
        method=f"Two processes send each other {place['batches']} batches of 65 536 rows at the same time, an int64, a float64 and a string "
        "each, about 1.9 MB, made before the clock starts and meant for the other process: one thread sends, one receives. Over Faro, by ctypes, "
        "a batch is one row: Arrow's IPC as pieces, received into memory that Arrow reads. Flight's DoPut and the sockets go over loopback; "
        "pickle is protocol 5 with out-of-band buffers. In a round before, every batch is compared with what was sent; in the one that counts rows "
        "are counted and a column is added up. On all processors; CPU time is that of both processes.",
    )  # fmt: skip


def _of(points: tuple[Point, ...], **changes) -> tuple[Point, ...]:
    return tuple(replace(point, **changes) for point in points)


def _flink(quick: bool) -> Experiment:
    rounds = {"rounds": 2, "part": 0.02} if quick else {"rounds": 16, "part": 1}
    places = [
        {"shape": shape, "processors": count, **rounds}
        for count in ((2,) if quick else (1, 2))
        for shape in (("100 channels, 1 ms", "latency") if quick else SHAPES)
    ]
    points = _points(("flink-netty", "flink-shm", "flink-tcp"), *places)
    points += _points(("flink-local",), *(place for place in places if place["shape"] in THROUGHPUT))
    points += _points(
        ("flink-netty-ssl", "flink-shm-ssl", "flink-tcp-ssl"), *(place for place in places if place["shape"] in THROUGHPUT)
    )
    return Experiment(
        "flink", "flink", points, laps=3 if quick else 5,
        title="Exchanges of Apache Flink, over its Netty and over Faro",
        method="The network benchmarks that Flink publishes, StreamNetworkThroughputBenchmark (one writer, records of 12 bytes, "
        "buffers of 32 KiB) and StreamNetworkPointToPointBenchmark (one record at a time, sent at once), in one JVM with the shuffle "
        f"environments of two TaskManagers; {rounds['rounds']} rounds, of which the medians of the last {LAST_ROUNDS} count: Netty takes "
        "up to 14 until it is compiled. Faro has the settings that an operator gets, except for faro.transport. On one processor writer, reader "
        "and transport share it; on two there is little else for the second than the transport. The transport's threads are Netty's, "
        "or Faro's. Local is Flink's own exchange within a TaskManager, which no transport can beat by much. The bytes that "
        "arrive are counted in every round. With SSL all have internal SSL on: over shared memory Faro encrypts only control messages.",
    )  # fmt: skip


def _flink_jobs(quick: bool) -> Experiment:
    cluster = {"taskmanagers": 2, "slots": 2}
    tables = {**cluster, "scale": 0.01 if quick else 1}
    rounds = {"warmup": 0 if quick else 1, "rounds": 1 if quick else 3}
    few = {"queries": "q03,q12"} if quick else {}
    streams = {**cluster, "events": 50_000 if quick else 5_000_000}
    places = [{"mode": mode, **tables, **few, **rounds} for mode in (("pipelined",) if quick else ("pipelined", "blocking"))]
    places.append({"mode": "streams", **streams, **({"queries": "hot_items"} if quick else {}), **rounds})
    if not quick:
        places.append({"mode": "streams", **streams, "taskmanagers": 4, "slots": 1, **rounds})
    return Experiment(
        "flink-jobs", "flink_jobs", _points(("flink-jobs",), *places), laps=2, time_limit_s=3600,
        title="Queries on a cluster of Apache Flink, over its Netty and over Faro",
        method="A JobManager and TaskManagers as processes of this machine (./run flink), over Faro with its default settings. The 22 "
        f"queries of TPC-H, scale factor {tables['scale']}, as batches whose exchanges are all pipelined or all blocking, from CSV files; "
        f"and as streams {streams['events']:,} rows of datagen: an aggregation by key, and three queries in the manner of Nexmark. "
        "What a key has is added up behind the exchange alone, so that every row is carried. Two clusters stand at the same time; one "
        "runs a query while the other waits, then the other runs it. Time is that of the client until it has all rows, CPU time that of "
        "the TaskManagers without the JVM's compilers. The share of the network is that of Netty's threads over Netty, which is a lower "
        "bound. Rows and checksum of every round over both have to be the same.",
    )  # fmt: skip


def _guest() -> Experiment:
    return Experiment(
        "guest", "guest", laps=3, time_limit_s=2400,
        title="Fig. 3 over Soft-RoCE and Soft-iWARP",
        method="Four processes in an emulated machine, each with an RDMA device of its own, over a virtual switch. Such a device "
        "does in the kernel, packet by packet, what a real one does in hardware, and the processor is emulated: only "
        "ratios within this figure mean something.",
    )  # fmt: skip
