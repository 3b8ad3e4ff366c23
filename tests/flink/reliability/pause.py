#!/usr/bin/env python3
"""A TaskManager that stands still for as long as a long garbage collection is no loss, with Flink's and Faro's defaults."""
import argparse
import os
import time

import cluster


def run(arguments):
    folder = os.path.join(arguments.folder, f"pause-{'netty' if arguments.netty else arguments.transport}")
    with cluster.Cluster(folder, cluster.settings_of(arguments)) as flink:
        flink.start(2)
        job = flink.submit(records=arguments.seconds * 16_000, rate=4_000, parallelism=4)
        flink.until("a checkpoint", 120, lambda: job.checkpoints() >= 1)
        flink.stop(flink.task_managers[0], arguments.seconds)
        since = job.checkpoints()
        flink.until("two more checkpoints", 120, lambda: job.checkpoints() >= since + 2)
        job.finish(600)
        if job.restarts():
            raise cluster.Wrong(f"the job was restarted: {job.causes()}")
        return (f"a TaskManager stood still for {arguments.seconds} s: no restart, sums exact, "
                f"{'over Netty' if arguments.netty else f'links {flink.transports()}'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/flink/reliability/run pause")
    cluster.add_arguments(parser)
    parser.add_argument("--seconds", type=int, default=20, help="how long it stands still (%(default)s)")
    cluster.end(lambda: run(parser.parse_args()))
