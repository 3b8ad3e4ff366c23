#!/usr/bin/env python3
"""TaskManagers that leave while no job runs leave nothing on the one that stays, which nobody's collector helps."""
import argparse
import os
import shutil

import cluster

PEERS, TOGETHER = 4, 2  # beside the one that stays; half of them leave at once
PARALLELISM = (PEERS + 1) * cluster.SLOTS
RECORDS = 5_000
LIMIT_S = 240
# Room for the eight links of the one that stays, and for half of one more. And a heap whose old generation has room for all.
SETTINGS = {"faro.links.expected": 2 * PEERS, "faro.memory.limit": "4900kb"}
FLAGS = ("-XX:+DisableExplicitGC", "-XX:MetaspaceSize=192m")
CLASSES = ("ConsumerLink", "ProducerLink", "FaroPartitionRequestClient", "MessageWriter")


def settled(flink, survivor, wanted, what):
    """Waits until the links of the survivor take what they are to."""
    pid = survivor.process.pid
    flink.until(f"{survivor.name} has {wanted} bytes of links, {what}; it has {cluster.links_bytes(pid)}", LIMIT_S,
                lambda: cluster.links_bytes(pid) == wanted)


def run_job(flink):
    shutil.rmtree(os.path.join(flink.folder, "out"), ignore_errors=True)
    flink.submit(records=RECORDS, rate=1_000_000, parallelism=PARALLELISM).finish(LIMIT_S)


def replace_half(flink, survivor, full):
    """Those that have been there for longest go, and others come."""
    for victim in [each for each in flink.task_managers if each is not survivor][:TOGETHER]:
        flink.kill(victim)
    settled(flink, survivor, full * (PEERS - TOGETHER) // PEERS, "when half of the peers have gone")
    for _ in range(TOGETHER):
        flink.add()
    names = {each.name for each in flink.task_managers}
    flink.until("the new TaskManagers have registered", LIMIT_S,
                lambda: names <= {each["id"] for each in flink.get("/taskmanagers").get("taskmanagers", [])})


def run(arguments):
    settings = {**cluster.settings_of(arguments), **SETTINGS}
    with cluster.Cluster(os.path.join(arguments.folder, f"departures-{arguments.transport}"), settings, FLAGS) as flink:
        flink.start(PEERS + 1)
        survivor = flink.task_managers[0]
        pid = survivor.process.pid
        run_job(flink)
        full, collections, first = cluster.links_bytes(pid), cluster.collected(pid), cluster.has(pid)
        if not full:
            raise cluster.Wrong(f"no counter file of {survivor.name} tells of links")
        departed = 0
        while departed < arguments.count:
            replace_half(flink, survivor, full)
            departed += TOGETHER
            run_job(flink)
            settled(flink, survivor, full, "after the job")
            print(f"{departed} have left, links take {full} bytes", flush=True)
        last, collections = cluster.has(pid), cluster.collected(pid) - collections
        flink.check()
        found = cluster.on_heap(pid, *(f"io.faro.flink.{each}" for each in CLASSES))
        left = {name: count for name, count in found.items() if count > 2 * PEERS}
        if left:
            raise cluster.Wrong(f"on the heap of {survivor.name}, which has {2 * PEERS} links: {left}")
        if collections:
            raise cluster.Wrong(f"the old generation was collected {collections} times: this says nothing")
        if set(flink.transports()) != {arguments.transport}:
            raise cluster.Wrong(f"links are {flink.transports()}")
        return (f"{departed} TaskManagers have left, {TOGETHER} at a time of {PEERS}, while no job ran, and {departed // TOGETHER} jobs gave exact "
                f"sums over {arguments.transport}; links take {full} bytes before and after, without a collection of the old "
                f"generation; descriptors {first['descriptors']} to {last['descriptors']}; on the heap {sorted(found.values())}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/flink/reliability/run departures")
    cluster.add_arguments(parser)
    parser.add_argument("--count", type=int, default=300, help="how many leave (%(default)s)")
    cluster.end(lambda: run(parser.parse_args()))
