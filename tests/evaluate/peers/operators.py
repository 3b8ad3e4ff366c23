#!/usr/bin/env python3
"""The rows of `faro-lab bench operators` grouped or joined by DuckDB or Arrow: the same keys and values, in their own columns in memory.

    operators.py duckdb groups --rows N --groups N [--memory BYTES]
    operators.py duckdb|arrow join --rows N --ratio N [--memory BYTES]

Every round's result is counted and added up, and compared with what must come out. The first round warms up; the second one is timed:
CPU time is that of the process, threads are as many as processors it may use. Prints a line of JSON. Needs pyarrow, duckdb and numpy.
"""

import argparse
import json
import os
import resource
import time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

THREADS = len(os.sched_getaffinity(0))
MASK = 2**64 - 1


def drawn(numbers: np.ndarray) -> np.ndarray:
    """faro::FinalizerHash of each number + 1."""
    x = numbers + np.uint64(1)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def sold(rows: int, groups: int) -> pa.Table:
    """What an aggregation groups."""
    numbers = drawn(np.arange(rows, dtype=np.uint64))
    return table(numbers % np.uint64(groups), numbers % np.uint64(1000))


def key_of(numbers: np.ndarray) -> np.ndarray:
    return numbers * np.uint64(2_654_435_761) & np.uint64(0xFFFFFFFF)


def build_side(rows: int) -> pa.Table:
    numbers = np.arange(rows, dtype=np.uint64)
    return table(key_of(numbers), numbers % np.uint64(1000))


def probe_side(rows: int, build_rows: int) -> pa.Table:
    numbers = np.arange(rows, dtype=np.uint64)
    return table(key_of(drawn(numbers) % np.uint64(build_rows)), numbers % np.uint64(1000))


def table(keys: np.ndarray, values: np.ndarray) -> pa.Table:
    return pa.table({"key": keys.astype(np.uint32), "value": values.astype(np.uint32)})


# --- what must come out: how many, and a sum over all of them


def of_groups(rows: pa.Table) -> tuple[int, int]:
    keys, values = (rows[name].to_numpy().astype(np.uint64) for name in ("key", "value"))
    return len(np.unique(keys)), int(np.sum((keys % np.uint64(1000) + np.uint64(1)) * values))


def of_join(build_rows: int, probe: pa.Table) -> tuple[int, int]:
    numbers = drawn(np.arange(len(probe), dtype=np.uint64)) % np.uint64(build_rows)
    return len(probe), int(np.sum(numbers % np.uint64(1000) + np.uint64(2) * probe["value"].to_numpy()))


# --- who does it: a function that answers both


def by_duckdb(tables: dict[str, pa.Table], query: str, memory: int | None):
    import duckdb

    limit = {"memory_limit": f"{memory}B"} if memory else {}
    database = duckdb.connect(":memory:", config={"threads": THREADS, **limit})
    for name, rows in tables.items():
        database.register("given", rows)
        database.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        database.unregister("given")
    return lambda: database.execute(query).fetchone()


GROUPS = """SELECT count(*), sum((key % 1000 + 1) * total)
            FROM (SELECT key, sum(value) AS total FROM sold GROUP BY key)"""
JOIN = """SELECT count(*), sum(build.value::UBIGINT + 2 * probe.value::UBIGINT)
          FROM probe JOIN build ON probe.key = build.key"""


def by_arrow(build: pa.Table, probe: pa.Table):
    pa.set_cpu_count(THREADS)

    def join() -> tuple[int, int]:
        pairs = probe.join(build, "key", join_type="inner", right_suffix="_of_build")
        return len(pairs), pc.sum(pairs["value_of_build"]).as_py() + 2 * pc.sum(pairs["value"]).as_py()

    return join


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("by", choices=("duckdb", "arrow"))
    parser.add_argument("what", choices=("groups", "join"))
    for name in ("rows", "groups", "ratio", "memory"):
        parser.add_argument(f"--{name}", type=int)
    flags = parser.parse_args()
    if flags.what == "groups":
        rows = sold(flags.rows, flags.groups)
        expected, count = of_groups(rows), flags.rows
        if flags.by == "arrow":
            parser.error("arrow joins alone")
        run = by_duckdb({"sold": rows}, GROUPS, flags.memory)
    else:
        build, probe = build_side(flags.rows), probe_side(flags.rows * flags.ratio, flags.rows)
        expected, count = of_join(flags.rows, probe), len(build) + len(probe)
        run = by_arrow(build, probe) if flags.by == "arrow" else by_duckdb({"build": build, "probe": probe}, JOIN, flags.memory)
    verified = True
    for _ in range(2):
        began, cpu = time.monotonic(), cpu_seconds()
        result = tuple(map(int, run()))
        seconds, cpu = time.monotonic() - began, cpu_seconds() - cpu
        verified = verified and result == expected
    report = {"seconds": seconds, "cpu_seconds": cpu, "cpu_ns_per_row": cpu * 1e9 / count, "threads": THREADS}
    print(json.dumps({**report, "verified": verified, "count": result[0], "checksum": result[1] & MASK}))


if __name__ == "__main__":
    main()
