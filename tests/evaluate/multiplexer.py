"""The figures of the multiplexer beside what its paper found: High-Speed Query Processing over High-Speed Networks, by Rödiger,
Mühlbauer, Kemper and Neumann (VLDB 2015)."""

from goals import GOALS
from labels import number
from measurement import Comparison, Measurements

NAME = "multiplexer"

# By the part of the experiment: what carries it here, and what the paper has.
_BESIDE = {
    "groups": ("shared memory within a node", "a broadcast fills one message, which a retain count keeps until it was sent to all; no figure of its own"),
    "two-stage": ("as named, between processes of one machine", "hybrid parallelism scales better with the cores of a server (Fig. 2: TPC-H, scale 300, 6 servers); no figure of its own"),
    "skewed": ("shared memory", "any available worker takes any message, which greatly alleviates skew; no time of its own"),
    "absent": ("shared memory", "no worker waits for another one of its server: work is stolen; no figure of its own"),
    "holding": ("shared memory", "no figure of its own"),
    "wide": ("shared memory", "messages of 512 KiB over InfiniBand, 4 GB/s, received at 4 % of a CPU where TCP takes 100 to 190 %"),
    "broadcast": ("as named, between processes of one machine", "a broadcast goes once to each server, not to each of its exchange operators; a broadcast join then pays from inputs that differ 5 times on, not 239"),
    "memory": ("shared memory; counted by the kernel, with rings of two sizes", "a buffer for each of n·t − 1 others without a multiplexer, of n − 1 with it"),
    "skew": ("counted", "Zipf 0.84: more than twice the input for the most loaded of 240 units, 2.8 % more of 6"),
    "plan": ("faro plan", "57,560 connections and 239 buffers per operator by exchange operators; 30, one each way, and 5 by the multiplexer"),
}  # fmt: skip

HEAD = ["figure", "wanted", "measured", "reached", "carried by", "in the paper"]


def figures(ms: Measurements) -> list[list[str]]:
    """A line for each goal of the experiment."""
    return [
        [goal.what, *goal.judged(ms), *_BESIDE[goal.place["part"]]] for goal in GOALS if goal.experiment == NAME
    ]


HYBRID = (
    "Hybrid parallelism (delivery to nodes) beside classic parallelism (delivery to workers), by workers per process; in the paper "
    "(Fig. 2) it scales better with cores. Here all workers share the processors of one machine, so that more of them are no more cores: "
    "what they show is what sharing an end costs, and what it saves where rows fall on few workers. Each is hybrid in times of "
    "classic, and, of the skewed job, the most rows of a worker in times of the mean, classic and hybrid."
)
HYBRID_HEAD = ["workers", "two-stage: time", "CPU", "skewed: time", "CPU", "at least, by CPU", "most rows, classic", "most rows, hybrid"]


def hybrid(ms: Measurements) -> list[list[str]]:
    def times(value: str, classic: str, hybrid: str, part: str, workers: int) -> str:
        return _times(ms.compare(value, classic, hybrid, part=part, workers=workers))

    def most(contestant: str, workers: int) -> str:
        found = ms.spread("most_rows_times_mean", contestant, part="skewed", workers=workers)
        return number(found.median) if found else "–"

    rows = []
    for workers in ms.parameter_values("workers"):
        both = ("delivery-worker", "delivery-node")
        if not any(ms.of(one, part=part, workers=workers) for one, part in (("shm", "two-stage"), (both[0], "skewed"))):
            continue
        of_two_stage = [times(value, "shm", "shm-node", "two-stage", workers) for value in ("seconds", "cpu_seconds")]
        of_skewed = [times(value, *both, "skewed", workers) for value in ("seconds", "cpu_seconds", "least_seconds")]
        rows.append([str(workers), *of_two_stage, *of_skewed, *(most(one, workers) for one in both)])
    return rows


def _times(found: Comparison | None) -> str:
    return f"{number(found.ratio)} ({number(found.least)} to {number(found.most)})" if found else "–"


NOT_SHOWN = (
    "Not shown, for this machine cannot: what buffers cost that lie in the memory of another processor (the paper: 17 % less with interleaved memory, "
    "52 % less with all of it on one of four sockets); queries of TPC-H on six servers, and the times of other systems (Spark SQL, Impala, "
    "MemSQL, Vectorwise Vortex). Not there: a retain count at the sender, since rings mirror bytes, so that each member of a group, or node of a "
    "broadcast, gets a copy. The network schedule (network.schedule = phases) has no figure here, for what it gains it gains on a switch: 40 % more "
    "throughput on 8 nodes over InfiniBand and 230 % over Ethernet, and 12 % of TPC-H, in the paper; faro-lab simulate --network has a model of one."
)
