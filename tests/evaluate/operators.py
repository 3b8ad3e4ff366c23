"""The figures of operators beside what their paper found: The End of Slow Networks: It's Time for a Redesign, by Binnig, Crotty,
Galakatos, Kraska and Zamanian (VLDB 2016)."""

from best_choice import VALUE, beside_best, keys_text, places
from experiments import FARO as TRANSPORTS
from goals import GOALS
from labels import label, number
from measurement import Comparison, Measurements
from operator_ways import ARROW, AUTOMATIC, BY_HAND, CHOICES, DUCKDB, JOIN, MATERIALISED

NAME = "operators"

# By the kind of figure: what the paper has.
_IN_THE_PAPER = {
    "aggregation": "one size of table, the cache's; no other to compare with",
    "Fig. 8b": "Fig. 8b: about as fast with few groups (0.17 ms); Dist. AGG grows with the groups, since its union has nodes · groups rows; "
    "RDMA AGG is robust. 4 servers of 10 threads, 128 M rows each, InfiniBand",
    "radix join": "Fig. 8a: RRJ beats GHJ at every selectivity; 4 servers of 8 threads, 128 M rows a side each, InfiniBand",
}

HEAD = ["figure", "wanted", "measured", "reached", "in the paper"]


def figures(ms: Measurements) -> list[list[str]]:
    """A line for each goal of the experiment."""
    return [
        [goal.what, *goal.judged(ms), next(text for name, text in _IN_THE_PAPER.items() if goal.what.startswith(name))]
        for goal in GOALS
        if goal.experiment == NAME
    ]


AGGREGATION = (
    "Fig. 8b: CPU ns per row, medians, and what the automatic table takes in times of the best other choice. The paper plots the time of its own "
    "and of Dist. AGG, which is the tree here."
)
AGGREGATION_HEAD = ["processes, workers, over", "keys", "groups", *(label(one) for one in (AUTOMATIC, *CHOICES)), "of the best", label(DUCKDB), "of DuckDB"]


def aggregation(ms: Measurements) -> list[list[str]]:
    """A line for each number of groups, keys and shape of the cluster."""
    rows = []
    for at in places(ms):
        found = beside_best(ms, **at)
        best = _times(found and found.times)
        costs = [_median(ms, one, at) for one in (AUTOMATIC, *CHOICES)]
        rows.append([_where(at), keys_text(at), f"{at['groups']:,}", *costs, best, _median(ms, DUCKDB, at), _times(ms.compare(VALUE, DUCKDB, AUTOMATIC, **at))])
    return rows


JOIN_TEXT = "Joins: CPU ns per row of either side, medians, and the radix join in times of the others. The paper's RRJ is the radix join, its GHJ the second one."
_JOINS = (JOIN, MATERIALISED, BY_HAND, DUCKDB, ARROW)
JOIN_HEAD = ["processes, workers, over", "build : probe", *(label(one) for one in _JOINS), *(f"of {name}" for name in ("received first", "by hand", "DuckDB", "Arrow"))]


def joins(ms: Measurements) -> list[list[str]]:
    rows = []
    for at in ms.places("processes", "workers", "transport", "ratio"):
        at["part"] = "join"
        if not ms.of(JOIN, **at):
            continue
        times = [_times(ms.compare(VALUE, other, JOIN, **at)) for other in _JOINS[1:]]
        rows.append([_where(at), f"1 : {at['ratio']}", *(_median(ms, one, at) for one in _JOINS), *times])
    return rows


def _where(at: dict) -> str:
    return f"{at['processes']} × {at['workers']}, {at['transport']}"


def _times(found: Comparison | None) -> str:
    return f"{number(found.ratio)} ({number(found.least)} to {number(found.most)})" if found else "–"


def _median(ms: Measurements, contestant: str, at: dict) -> str:
    found = ms.spread(VALUE, contestant, **at)
    return number(found.median) if found else "–"


NOT_SHOWN = (
    "Not there: Fig. 8a, joins by the selectivity of a Bloom filter, since joins have no filter. Not shown, for this machine cannot: InfiniBand and "
    "several servers; here all processes share the processors and caches of one machine, so that what costs CPU counts, and what a network costs does not."
)
