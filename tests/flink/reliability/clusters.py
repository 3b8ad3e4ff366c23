#!/usr/bin/env python3
"""Many MiniClusters, opened and closed in one JVM, leave nothing behind."""
import argparse
import os
import re
import subprocess
import time

import cluster

WARM = 50  # clusters, after which Flink has loaded what it loads; or half of them
# What there may be more of at the end than when it was warm.
MORE = {"descriptors": 5, "threads": 5, "mappings": 100, "KiB": 64 << 10}


def run(arguments):
    folder = os.path.join(arguments.folder, f"clusters-{'netty' if arguments.netty else arguments.transport}")
    os.makedirs(folder, exist_ok=True)
    begun, step = time.monotonic(), max(1, arguments.count // 10)
    settings = [f"{key}={value}" for key, value in cluster.settings_of(arguments).items()]
    log = os.path.join(folder, "output.log")
    with open(log, "wb") as file:
        # One arena: else memory of malloc depends on which threads meet.
        code = subprocess.run(
            cluster.java(384, "io.faro.flink.reliability.MiniClusters", str(arguments.count), str(step), *settings), cwd=folder,
            stdin=subprocess.DEVNULL, stdout=file, stderr=file, env={**os.environ, "MALLOC_ARENA_MAX": "1"},
            preexec_fn=cluster.die_with_parent).returncode
    with open(log, encoding="utf-8", errors="replace") as file:
        seen = [dict(zip(line.split()[2::2], map(int, line.split()[3::2])))
                for line in file if re.match(r"after \d+: ", line)]
    if code or len(seen) < arguments.count // step:
        raise cluster.Wrong(f"exit code {code} after {len(seen) * step} clusters: {log}")
    warm = min(WARM, arguments.count // 2) // step * step
    first, last = seen[warm // step - 1], seen[-1]
    if not arguments.netty and last["requests"] < 2 * arguments.count:
        raise cluster.Wrong(f"only {last['requests']} subpartitions were requested over Faro")
    both = ", ".join(f"{name} {first[name]} to {last[name]}" for name in last if name != "requests")
    grown = [name for name, limit in MORE.items() if last[name] > first[name] + limit]
    if grown:
        raise cluster.Wrong(f"there are more {grown} after {arguments.count} MiniClusters than after {warm}: {both}")
    return (f"{arguments.count} MiniClusters in {time.monotonic() - begun:.0f} s; from after {warm} to the end {both}; "
            f"{last['requests']} requests over Faro")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/flink/reliability/run clusters")
    cluster.add_arguments(parser)
    parser.add_argument("--count", type=int, default=500, help="how many (%(default)s)")
    cluster.end(lambda: run(parser.parse_args()))
