"""Fig. 7 of The End of Slow Networks: what joins cost by its model, with the costs of a byte as they were measured here."""

from typing import NamedTuple

from copying import TUPLES
from experiments import TUPLE_WIDTHS
from labels import number
from measurement import Measurements

SELECTIVITIES = (0.25, 0.5, 0.75, 1.0)
FALSE_POSITIVES = 0.1  # of a Bloom filter: as in the paper, a selectivity of 0.5 selects 0.6


class Costs(NamedTuple):
    """Of a byte, in ns: to read or write it in memory, and to move it from one worker to another."""

    memory: float
    network: float

    def hash_join(self) -> float:
        """GHJ: read, sent, written; then read and written by partition, and read again with its table."""
        return 4 * self.memory + self.network

    def reduced(self, selectivity: float) -> float:
        """GHJ+Red: read once more for a Bloom filter; then what this lets pass."""
        passed = min(1.0, selectivity + FALSE_POSITIVES)
        return self.memory + passed * self.hash_join()

    def radix_join(self) -> float:
        """RRJ: the transfer itself partitions."""
        return 2 * self.memory

    def crossing(self) -> float:
        """The selectivity below which the filter pays off."""
        return (3 * self.memory + self.network) / self.hash_join() - FALSE_POSITIVES


def costs(ms: Measurements, row_bytes: int, transport: str) -> Costs | None:
    """A copy of a tuple is a read and a write. To receive one costs these two as well, and the rest is the network's."""
    place = {"part": "cost", "row_bytes": row_bytes}
    copied, received = ms.spread("bytes_per_second", TUPLES, **place), ms.spread("bytes_per_second_per_node", transport, **place)
    if copied is None or received is None:
        return None
    (nodes,) = {one.parameters["processes"] for one in ms.of(transport, **place)}
    memory, whole = 1e9 / copied.median / 2, 1e9 / received.median / nodes
    return Costs(memory, max(0.0, whole - 2 * memory))


TEXT = (
    "Fig. 7: ns per byte of both sides that joins cost by the paper's model, equal selectivities of both sides, a Bloom filter with 10 % false positives. c_mem is measured "
    "by copying tuples between areas larger than the caches, c_net by 4 nodes that repartition rows of that width on one processor, less the read and the write that a "
    "copy has. With c_mem = 1 ns and the networks of its day the paper finds that the filter nearly always pays off over Ethernet, below a selectivity of 0.7 over IPoIB, and only "
    "in corner cases beside RRJ. Without a filter in Faro's join the crossing is the model's alone."
)
HEAD = [
    "bytes of a tuple", "over", "c_mem", "c_net", "GHJ", *(f"GHJ+Red, {selectivity}" for selectivity in SELECTIVITIES), "RRJ", "filter pays off below",
]  # fmt: skip


def figures(ms: Measurements, transports: tuple[str, ...]) -> list[list[str]]:
    rows = []
    for row_bytes in TUPLE_WIDTHS:
        for transport in transports:
            if (found := costs(ms, row_bytes, transport)) is None:
                continue
            values = (*found, found.hash_join(), *map(found.reduced, SELECTIVITIES), found.radix_join(), found.crossing())
            rows.append([str(row_bytes), transport, *map(number, values)])
    return rows
