#!/usr/bin/env python3
"""TaskManagers are killed, stopped and cut off, by seed, under a job with exactly-once checkpoints, whose result is compared.

README.md says what is checked.
"""
import argparse
import os
import random
import statistics
import subprocess
import time

import cluster

TASK_MANAGERS, PARALLELISM = 4, 6  # one of eight slots' worth of TaskManagers is to spare
LIMIT_S = 240  # for a recovery; this machine may be busy
STEADY_S = 2
RATE = 1500  # records per second and subtask
WARM_RECOVERIES = 5  # before what a TaskManager has is first counted: until then its pools of threads grow
COUNTS = 4  # at the beginning and at the end, of which the least is taken: which tasks it runs, and so their threads, is chance
COLLECTIONS = 5  # at most: what a collection frees may hold more
# What one that was never killed may have more of at the end; and of its memory, the part. "links": bytes that links take. Nobody
# has it collected before its counts are taken; mappings are those at the end, when it was.
MORE = {"descriptors": 24, "threads": 16, "mappings": 120, "links": 1 << 20}
MORE_MEMORY = 0.25
# Of these modes: Faro's limit of silence, and for how long a TaskManager stands still, below and beyond what makes a loss.
LIVENESS = {"1s": ({"faro.liveness-timeout": "1 s", "heartbeat.interval": "500 ms"}, (0.05, 0.5), (2, 6)), "default": ({}, (0.5, 15), (65, 75))}


def mappings_without_garbage(pid):
    """Of a JVM: buffers keep the addresses of rings that are no more until they are collected."""
    least = cluster.has(pid)["mappings"]
    for _ in range(COLLECTIONS):
        subprocess.run(["jcmd", str(pid), "GC.run"], check=True, stdout=subprocess.DEVNULL)
        time.sleep(1)  # for what frees memory beside the collector
        now = cluster.has(pid)["mappings"]
        if now >= least:
            break
        least = now
    return least


def least(counts):
    return {name: min(each[name] for each in counts) for name in counts[0]}


class Churn:
    def __init__(self, arguments, flink):
        self.arguments, self.flink = arguments, flink
        self.random = random.Random(arguments.seed)
        self.over = "netty" if arguments.netty else arguments.transport
        _, self.short, self.long = LIVENESS[arguments.liveness]
        self.faults = []  # (ms since 1970 from, to, kind, victims)
        self.recoveries = {}  # {kind: [seconds]}
        self.counts = {}
        self.survivor_has = []  # counts of the TaskManager that is never killed, one after each recovery

    def run(self):
        seconds = self.arguments.minutes * 60
        self.flink.start(TASK_MANAGERS)
        self.job = self.flink.submit(records=int(seconds * RATE * PARALLELISM), rate=RATE, parallelism=PARALLELISM)
        self.flink.until("a checkpoint", LIMIT_S, lambda: self.job.runs() and self.job.checkpoints() >= 1)
        self.survivor = self.flink.task_managers[0]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.fault()
            time.sleep(self.random.uniform(0.5, 4))
        self.mappings_left = mappings_without_garbage(self.survivor.process.pid)
        self.job.finish(900)
        self.flink.check()
        self.check_causes()
        self.check_links()
        return self.report()

    def fault(self):
        kinds = ["kill"] * 4 + ["double kill"] + ["short stop"] * 3 + ["cut"] * 3 + ["long stop"] * (
            3 if self.arguments.liveness == "1s" else 1)
        kind = self.random.choice(kinds)
        busy = self.flink.with_tasks()
        victims = [self.random.choice([each for each in busy if each is not self.survivor] if "kill" in kind else busy)]
        before, checkpoints, begun = self.job.restarts(), self.job.checkpoints(), time.time()
        print(f"{time.strftime('%H:%M:%S')} {kind} of {victims[0].name}", end=" ", flush=True)
        if "kill" in kind:
            self.flink.kill(victims[0])
            if kind == "double kill":
                time.sleep(self.random.uniform(0, 3))
                victims.append(self.random.choice(self.flink.task_managers[1:]))
                self.flink.kill(victims[1])
            time.sleep(self.random.uniform(0, 2))
            for _ in victims:
                self.flink.add()
            self.flink.until("a TaskManager is missed", LIMIT_S, lambda: self.job.restarts() > before)
        elif kind == "cut":
            for _ in range(self.random.randint(1, 4)):
                self.counts["sockets"] = self.counts.get("sockets", 0) + self.flink.cut(victims[0])
                time.sleep(self.random.uniform(0, 0.5))
        else:
            self.flink.stop(victims[0], self.random.uniform(*(self.short if kind == "short stop" else self.long)))
        stopped = time.time()
        recovered = self.until_recovered(checkpoints)
        self.faults.append((begun * 1e3, time.time() * 1e3, kind, victims))
        self.counts[kind] = self.counts.get(kind, 0) + 1
        restarts = self.job.restarts() - before
        print(f"{restarts} restarts, {recovered - begun:.1f} s", flush=True)
        if restarts:
            self.recoveries.setdefault(kind, []).append(recovered - (begun if "kill" in kind else stopped))
            self.survivor_has.append(self.has_now())
        elif "kill" in kind:
            raise cluster.Wrong("a kill without a restart")
        if restarts and self.is_mended(kind):
            raise cluster.Wrong(f"a {kind} is a loss: {self.job.causes()[-1]}")

    def has_now(self):
        """What the survivor has, its garbage included."""
        links = None if self.arguments.netty else cluster.links_bytes(self.survivor.process.pid)
        return {**cluster.has(self.survivor.process.pid), "links": links or 0}

    def is_mended(self, kind):
        """Whether the job is to notice nothing. With 1 s a machine that is busy may lose a peer that stands still for half of it."""
        return not self.arguments.netty and self.arguments.liveness == "default" and kind in ("cut", "short stop")

    def until_recovered(self, checkpoints):
        """When all tasks ran again, for good, and a checkpoint has come since."""
        end, since = time.monotonic() + LIMIT_S, None
        while True:
            self.flink.check()
            if not self.job.runs():
                since = None
            elif since is None:
                since = time.time()
            if since and time.time() - since > STEADY_S and self.job.checkpoints() > checkpoints + 1:
                return since
            if time.monotonic() > end:
                raise cluster.Wrong(f"the job has not recovered in {LIMIT_S} s, it is {self.job.state()}: {self.job.causes()[-1:]}")
            time.sleep(cluster.POLL_S)

    def check_causes(self):
        """Each restart names whom it has lost, or was on one that was lost."""
        causes, unexplained = self.job.causes(), []
        if len(causes) < self.job.restarts():
            raise cluster.Wrong(f"only {len(causes)} causes of {self.job.restarts()} restarts are known")
        for at, texts in causes:
            victims = [victim for begun, ended, _, victims in self.faults if begun - 1000 <= at <= ended + 1000 for victim in victims]
            if not any(victim.is_named_in(text) for victim in victims for text in texts):
                unexplained.append(f"at {time.strftime('%H:%M:%S', time.localtime(at / 1e3))} "
                                   f"({', '.join(victim.name for victim in victims)}): {texts[0][:2000]}")
        if unexplained:
            raise cluster.Wrong(f"{len(unexplained)} restarts do not name whom they have lost:\n" + "\n".join(unexplained[:5]))

    def check_links(self):
        if not self.arguments.netty and set(self.flink.transports()) != {self.arguments.transport}:
            raise cluster.Wrong(f"links are {self.flink.transports()}")

    def report(self):
        more = "the restarts were too few to compare what a TaskManager has"
        counts = self.survivor_has[WARM_RECOVERIES:]
        if len(counts) >= 2 * COUNTS:
            first, last = least(counts[:COUNTS]), least(counts[-COUNTS:])
            last["mappings"] = self.mappings_left
            more = ", ".join(f"{name} {first[name]} to {last[name]}" for name in last)
            grown = [name for name, limit in MORE.items() if last[name] > first[name] + limit]
            if last["KiB"] > first["KiB"] * (1 + MORE_MEMORY):
                grown.append("KiB")
            if grown:
                raise cluster.Wrong(f"there are more {grown} in {self.survivor.name}: {more}")
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.counts.items()) if kind != "sockets")
        times = "; ".join(f"after {kind} median {statistics.median(each):.1f} s, at most {max(each):.1f} s ({len(each)})"
                          for kind, each in sorted(self.recoveries.items()))
        return (f"over {self.over}, liveness {self.arguments.liveness}, seed {self.arguments.seed}: {kinds} "
                f"({self.counts.get('sockets', 0)} sockets), {self.job.restarts()} restarts; recovered {times}; {more}; sums exact")


def run(arguments):
    name = f"churn-{'netty' if arguments.netty else arguments.transport}-{arguments.liveness}"
    more, *_ = LIVENESS[arguments.liveness]
    settings = {**cluster.settings_of(arguments), **more}
    with cluster.Cluster(os.path.join(arguments.folder, name), settings) as flink:
        said = Churn(arguments, flink).run()
    left = os.listdir("/dev/shm")
    if left:
        raise cluster.Wrong(f"left in /dev/shm: {left}")
    return said


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tests/flink/reliability/run churn")
    cluster.add_arguments(parser)
    parser.add_argument("--minutes", type=float, default=20, help="how long (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of what happens to whom (%(default)s)")
    parser.add_argument("--liveness", choices=sorted(LIVENESS), default="default",
                        help="a peer that is silent for 1 s is lost, or Flink's and Faro's defaults (%(default)s)")
    cluster.end(lambda: run(parser.parse_args()))
