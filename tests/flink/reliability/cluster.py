"""A cluster of Flink as processes on this machine, whose TaskManagers can be stopped, killed and cut off.

`tests/flink/reliability/run` gives it a network and a /dev/shm of its own, and FARO_FLINK_CLASS_PATH.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
OPENED = ("lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent",
          "util.concurrent.atomic", "util.concurrent.locks")
JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
REST_PORT, RPC_PORT, DATA_PORTS = 18081, 16123, 20000
SLOTS = 2
FIRST_KEYS, SECOND_KEYS, LAST_KEYS = 101, 97, 50  # as in SumsJob.java
JOB_SETTINGS = {
    "execution.checkpointing.interval": "2 s", "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.timeout": "60 s", "execution.checkpointing.tolerable-failed-checkpoints": "1000000",
    "execution.checkpointing.unaligned.enabled": "true", "execution.checkpointing.aligned-checkpoint-timeout": "1 s"}
START_S = 180
POLL_S = 0.1


class Wrong(Exception):
    """What a check has found."""


def add_arguments(parser):
    parser.add_argument("--folder", required=True, help="where logs go")
    parser.add_argument("--netty", action="store_true", help="over Flink's own shuffle service, to compare")
    parser.add_argument("--transport", default="shm", choices=("shm", "tcp"))


def settings_of(arguments):
    """What says over what the exchanges go."""
    if arguments.netty:
        return {}
    return {"shuffle-service-factory.class": "io.faro.flink.FaroShuffleServiceFactory", "faro.transport": arguments.transport}


def java(heap_mb, main, *arguments, flags=()):
    """A command. A crash in native code leaves hs_err_<pid>.log where it is started."""
    return ["java", f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m", "-XX:+AlwaysPreTouch", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-XX:-CreateCoredumpOnCrash", "-XX:ErrorFile=hs_err_%p.log", *flags,
            f"-Dlog4j.configurationFile={HERE}/log4j2.properties",
            *(f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in OPENED),
            "-cp", os.environ["FARO_FLINK_CLASS_PATH"], main, *arguments]


def die_with_parent():
    """In a child: it is killed when this process ends, however it does."""
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class TaskManager:
    def __init__(self, number, process):
        self.number, self.process = number, process
        self.name = f"taskmanager-{number}"
        self.port = DATA_PORTS + number

    def is_named_in(self, text):
        return re.search(rf"{self.name}\b|:{self.port}\b", text) is not None


class Cluster:
    """Ends its processes when it is closed."""

    def __init__(self, folder, settings, flags=()):
        """`flags`: of the JVMs of TaskManagers."""
        self.folder, self.flags = folder, flags
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "tmp"))
        self.settings = {
            "jobmanager.rpc.port": RPC_PORT, "rest.port": REST_PORT, "rest.bind-port": REST_PORT,
            "taskmanager.numberOfTaskSlots": SLOTS, "io.tmp.dirs": os.path.join(folder, "tmp"),
            "execution.checkpointing.dir": f"file://{folder}/checkpoints", **settings}
        self.job_manager = None
        self.task_managers = []  # that live
        self.gone = []  # that were killed here
        self.started = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def start(self, count):
        self.job_manager = self._start("jobmanager", java(256, JOB_MANAGER, *self._configured()))
        for _ in range(count):
            self.add()
        self.until("all TaskManagers have registered", START_S,
                   lambda: self.get("/overview").get("taskmanagers") == count)

    def add(self):
        """One more TaskManager, with a name of its own. Does not wait for it."""
        self.started += 1
        number = self.started
        process = self._start(f"taskmanager-{number}", java(256, TASK_MANAGER, *self._configured(), "-D",
            f"taskmanager.resource-id=taskmanager-{number}", "-D", f"taskmanager.data.port={DATA_PORTS + number}",
            flags=("-XX:MaxDirectMemorySize=256m", *self.flags)))
        self.task_managers.append(TaskManager(number, process))

    def _configured(self):
        words = ["--configDir", HERE]
        for key, value in self.settings.items():
            words += ["-D", f"{key}={value}"]
        return words

    def _start(self, name, command):
        with open(self.log(name), "wb") as log:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    preexec_fn=die_with_parent, env={**os.environ, "FLINK_CONF_DIR": HERE})

    def log(self, name):
        return os.path.join(self.folder, f"{name}.log")

    def logged(self, name):
        with open(self.log(name), encoding="utf-8", errors="replace") as file:
            return file.read()

    def run(self, main, *arguments):
        """A program of Java's, beside the cluster: what it prints."""
        done = subprocess.run(java(128, main, *arguments), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=START_S)
        if done.returncode:
            raise Wrong(f"{main} has failed:\n{done.stdout[-3000:]}")
        return done.stdout

    def get(self, path):
        """What the JobManager answers; nothing while it does not."""
        try:
            with urllib.request.urlopen(f"http://localhost:{REST_PORT}{path}", timeout=20) as answer:
                return json.load(answer)
        except OSError:
            return {}

    def until(self, what, limit_s, is_so):
        end = time.monotonic() + limit_s
        while not is_so():
            self.check()
            if time.monotonic() > end:
                raise Wrong(f"it takes longer than {limit_s} s until {what}")
            time.sleep(POLL_S)

    def check(self):
        """Nobody has ended by himself."""
        named = [("jobmanager", self.job_manager)] + [(each.name, each.process) for each in self.task_managers]
        for name, process in named:
            if process.poll() is not None:
                raise Wrong(f"{name} has ended with {process.returncode}: {self.logged(name)[-2000:]}")
        crashed = [name for name in os.listdir(self.folder) if name.startswith("hs_err")]
        if crashed:
            raise Wrong(f"a crash: {self.folder}/{crashed[0]}")

    def with_tasks(self):
        """Those of the TaskManagers whose slots are not all free."""
        used = {each["id"] for each in self.get("/taskmanagers").get("taskmanagers", [])
                if each["freeSlots"] < each["slotsNumber"]}
        return [each for each in self.task_managers if each.name in used]

    def kill(self, victim):
        self.task_managers.remove(victim)
        self.gone.append(victim)
        victim.process.kill()
        victim.process.wait()

    def stop(self, victim, seconds):
        """As a pause of its garbage collection would, for that long."""
        victim.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            victim.process.send_signal(signal.SIGCONT)

    def cut(self, victim):
        """All connections to and from its data port are reset. Returns how many sockets that were."""
        done = subprocess.run(["ss", "-HKtn", f"( sport = :{victim.port} or dport = :{victim.port} )"], check=True,
                              stdout=subprocess.PIPE, text=True)
        return len(done.stdout.splitlines())

    def submit(self, records, rate, parallelism, more=()):
        """Submits SumsJob: its id."""
        settings = {"rest.address": "localhost", "parallelism.default": parallelism, **JOB_SETTINGS, **self.settings}
        printed = self.run("io.faro.flink.reliability.SumsJob", str(records), str(rate), os.path.join(self.folder, "hurry"),
                           f"file://{self.folder}/out", *(f"{key}={value}" for key, value in settings.items()), *more)
        return Job(self, re.search(r"^job (\w+)$", printed, re.M).group(1), records)

    def transports(self):
        """{transport: how many links the logs speak of}"""
        found = {}
        for number in range(1, self.started + 1):
            for each in re.findall(r"Consumes from .* over (\w+)", self.logged(f"taskmanager-{number}")):
                found[each] = found.get(each, 0) + 1
        return found

    def close(self):
        processes = [each.process for each in self.task_managers] + [self.job_manager]
        for process in filter(None, processes):
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in filter(None, processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(os.path.join(self.folder, "tmp"), ignore_errors=True)


class Job:
    def __init__(self, cluster, id, records):
        self.cluster, self.id, self.records = cluster, id, records

    def state(self):
        return self.cluster.get(f"/jobs/{self.id}").get("state", "unknown")

    def runs(self):
        """Whether all of its tasks do."""
        answer = self.cluster.get(f"/jobs/{self.id}")
        vertices = answer.get("vertices", [])
        return answer.get("state") == "RUNNING" and vertices != [] and all(
            each["tasks"]["RUNNING"] == each["parallelism"] for each in vertices)

    def checkpoints(self):
        return self.cluster.get(f"/jobs/{self.id}/checkpoints").get("counts", {}).get("completed", 0)

    def restarts(self):
        return len(re.findall(rf"Job sums \({self.id}\) switched from state \w+ to RESTARTING", self.cluster.logged("jobmanager")))

    def causes(self):
        """Why it was restarted: (ms since 1970, text), the oldest first."""
        history = self.cluster.get(f"/jobs/{self.id}/exceptions?maxExceptions=10000").get("exceptionHistory", {})
        found = []
        for each in history.get("entries", []):
            texts = [f"{one.get('taskManagerId')} {one.get('endpoint')}\n{one.get('stacktrace', '')}"
                     for one in [each] + each.get("concurrentExceptions", [])]
            found.append((each["timestamp"], texts))
        return sorted(found)

    def finish(self, limit_s):
        """Lets it run as fast as it can, to its end."""
        with open(os.path.join(self.cluster.folder, "hurry"), "w", encoding="utf-8"):
            pass
        self.cluster.until("the job ends", limit_s, lambda: self.state() in ("FINISHED", "FAILED", "CANCELED"))
        if self.state() != "FINISHED":
            raise Wrong(f"the job is {self.state()}: {self.causes()[-1:]}")
        self.compare()

    def compare(self):
        """What the sink has committed is what had to come."""
        lines, folder = [], os.path.join(self.cluster.folder, "out")
        for name in os.listdir(folder):
            if not name.startswith("."):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    lines += [[int(word) for word in line.split()] for line in file]
        found = difference(self.records, lines)
        if found:
            raise Wrong(found)


def sizes(records, keys):
    """How many of the numbers below `records` have each key."""
    return [records // keys + (key < records % keys) for key in range(keys)]


def difference(records, lines):
    """Between what SumsJob has to give and lines [key, count, numbers, first, second]; None: there is none."""
    wanted = [records, records * (records - 1) // 2]
    wanted += [sum(size * (size - 1) // 2 for size in sizes(records, keys)) for keys in (FIRST_KEYS, SECOND_KEYS)]
    got = [sum(line[i] for line in lines) for i in range(1, 5)]
    if wanted != got:
        return f"sums are {got}, not {wanted}"
    for key, size in enumerate(sizes(records, LAST_KEYS)):
        wanted = [size, size * key + LAST_KEYS * size * (size - 1) // 2]
        got = [sum(line[i] for line in lines if line[0] == key) for i in (1, 2)]
        if wanted != got:
            return f"sums of {key} are {got}, not {wanted}"
    return None


def links_bytes(pid):
    """What the links of a TaskManager take, by its counter file: as the metric memoryUsed, which the JobManager learns late. None: no file yet."""
    stat = subprocess.run([os.environ["FARO_COMMAND"], "stat", "--once", "--json", "--interval", "0.01", "--pid", str(pid)],
                          check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    endpoints = json.loads(stat.stdout)["endpoints"] if stat.returncode == 0 else []
    return sum(each["counters"]["memory_bytes"] for each in endpoints) if endpoints else None


def has(pid):
    """What a process has, by /proc."""
    def count(name):
        return len(os.listdir(f"/proc/{pid}/{name}"))
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/status", encoding="utf-8") as status:
        resident = next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
        return {"descriptors": count("fd"), "threads": count("task"), "mappings": sum(1 for _ in maps), "KiB": resident}


def collected(pid):
    """How often the old generation of a JVM was collected."""
    head, values = subprocess.run(["jstat", "-gc", str(pid)], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return int(float(values.split()[head.split().index("FGC")]))


def on_heap(pid, *classes):
    """{class: how many objects there are}. Collects what is garbage."""
    histogram = subprocess.run(["jcmd", str(pid), "GC.class_histogram"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return objects(histogram, *classes)


def objects(histogram, *classes):
    """The same of what jcmd has printed."""
    found = dict.fromkeys(classes, 0)
    for line in histogram.splitlines():
        words = line.split()
        if len(words) >= 4 and words[3] in found:
            found[words[3]] = int(words[1])
    return found


def end(program):
    """Runs it, and says in the last line whether it was well."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        print(program(), flush=True)
    except Wrong as wrong:
        sys.exit(f"run: reliability: {wrong}")
