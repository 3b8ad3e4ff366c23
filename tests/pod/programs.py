"""The four programs that run in pods, and the work that each has to do there."""

import contextlib
import os
import socket

import pods
from pods import BUILD, ROOT, HeldAddresses, Program, expect

BIN = BUILD / "release/bin"
PROGRAMS = BUILD / "release/tests/bin"
FRAMES = 5000


class Cluster:
    """Two programs of a kind that work together, each in a pod of its own; killed when the case is over."""

    def __init__(self, folder):
        self.folder = folder
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for each in self.programs:
            each.kill()

    def start(self, pod, words, name):
        name = f"{len(os.listdir(self.folder))}-{name}"
        self.programs.append(Program(pod, words, name, self.folder))
        return self.programs[-1]

    def dial_as_others(self):
        """Something that is no Faro calls both; they hang up on it, and log that."""
        for address in self.listening():
            host, port = address.split(":")
            with socket.create_connection((host, int(port)), timeout=pods.LIMIT_S) as other:
                other.sendall(b"GET / HTTP/1.0\r\n\r\n" * 10)
                with contextlib.suppress(ConnectionResetError):
                    while other.recv(4096):
                        pass


class Session(Cluster):
    """Two nodes of one worker each, and queries of two stages between them."""

    name = "session"

    def words(self, node):
        return [PROGRAMS / "pod_session", "PORT", str(node), self.addresses.text]

    def listening(self):
        return self.addresses.text.split(",")

    def open(self, *of_nodes):
        """of_nodes: the pods of nodes 0 and 1."""
        self.addresses = HeldAddresses(2)
        # A JVM takes long, and who waits for long warns.
        last_first = reversed(list(enumerate(of_nodes)))
        started = [self.start(pod, self.words(n), f"node{n}") for n, pod in last_first]
        self.nodes = started[::-1]
        for node in self.nodes:
            node.hear("open")

    def begin(self, rows, pauses=False):
        self.nodes[0].say("begin")
        query = self.nodes[0].hear("query")
        for number, node in enumerate(self.nodes):
            node.say(f"run {query} {rows}" + (" halfway" if pauses and number == 1 else ""))
        self.rows = rows
        return query

    def verify(self):
        found = [node.hear("verified").split() for node in self.nodes]
        count = sum(int(rows) for rows, _ in found)
        expect(count == 2 * self.rows, f"{count} rows have arrived, not {2 * self.rows}")

    def query(self, rows=200_000):
        self.begin(rows)
        self.verify()

    def close(self, log=""):
        """In order; the logs of both have to be as `log` says."""
        for node in self.nodes:
            node.say("close")
        for node in self.nodes:
            line = node.next_line()
            expect(line in ("peer left", "closed"), f"{node.name} says '{line}', not 'closed'")
            if line == "peer left":
                node.hear("closed")
            node.expect_end(log=log)
        self.addresses.close()

    def works(self, pod, rows=200_000, log=""):
        self.open(pod, pod)
        self.query(rows)
        self.close(log)

    def fails(self, pod, rows, *texts, log=""):
        """A query fails on both nodes, by a cause that says all this."""
        self.open(pod, pod)
        self.begin(rows)
        for node in self.nodes:
            node.hear("failed", *texts)
        self.close(log)

    def refuses(self, pod, *texts):
        """What it is to do there fails, and it says why."""
        self.addresses = HeldAddresses(2)
        program = self.start(pod, self.words(1), "refused")
        program.hear("failed", *texts)
        program.expect_end(1)


class Jvm(Session):
    """The same; node 1 is in a JVM, by the Java API."""

    name = "jvm"
    flags = ("-XX:+UseSerialGC", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
    jar = sorted((ROOT / "java/faro/target").glob("faro-?.?.?.jar"))

    def words(self, node):
        if node == 0:
            return super().words(0)
        path = ":".join(map(str, [BUILD / "pod/classes", *self.jar]))
        return ["java", *self.flags, "-cp", path, "Pod", "PORT", "1", self.addresses.text]


class Endpoint(Cluster):
    """Two endpoints with a channel between them, over which frames go both ways."""

    name = "endpoint"

    def open(self, *of_sides):
        words = [PROGRAMS / "pod_endpoint", "PORT"]
        self.nodes = [self.start(pod, words, f"side{n}") for n, pod in enumerate(of_sides)]
        self.addresses = [side.hear("open") for side in self.nodes]
        self.nodes[1].say(f"connect {self.addresses[0]}")
        for side in self.nodes:
            side.hear("opened")

    def listening(self):
        return self.addresses

    def exchange(self, frames=FRAMES):
        for side in self.nodes:
            side.say(f"frames {frames}")
        for side in self.nodes:
            side.hear("verified")

    def close(self, log=""):
        """The channel is drained first, so nothing may be lost."""
        self.nodes[1].say("drain")
        for side in self.nodes:
            said = side.hear("closed")
            expect(said == f"{FRAMES} ok", f"the channel of {side.name} has closed: {said}")
        for side in self.nodes:
            side.say("close")
            side.hear("closed")
            side.expect_end(log=log)

    def works(self, pod, log=""):
        self.open(pod, pod)
        self.exchange()
        self.close(log)

    def refuses(self, pod, *texts):
        program = self.start(pod, [PROGRAMS / "pod_endpoint", "PORT"], "refused")
        program.hear("failed", *texts)
        program.expect_end(1)


class Command(Cluster):
    """The command: what it says of the pod, and of a session that runs a query there."""

    name = "command"

    def run(self, pod, *words):
        """In a pod of its own: (exit code, stdout and stderr)."""
        return pods.run(pod.words([BIN / "faro", *words]), pod.environment())

    def expect(self, found, code, *texts):
        exit_code, said = found
        expect(exit_code == code, f"exit code {exit_code}, not {code}: {said}")
        for text in texts:
            expect(text in said, f"nothing of '{text}' in: {said}")

    def works(self, pod, doctor=(), setting="cluster.workers"):
        """doctor: what else `faro doctor` has to say there. setting: one that the pod's environment
        sets, or that has its default."""
        self.expect(self.run(pod, "doctor"), 0, "shm: works", "tcp: works", *doctor)
        variable = "FARO_" + setting.upper().replace(".", "_")
        source = "environment" if variable in pod.env else "default"
        code, said = self.run(pod, "config")
        row = next((line for line in said.splitlines() if line.split(" ")[0] == setting), "")
        expect(code == 0 and row.endswith(source), f"config ends with {code}, and says '{row}' in: {said}")
        with Session(self.folder) as session:
            # Node 1 does nothing for now, and node 0 waits for its rows.
            session.open(pod, pod)
            query = session.begin(1000, pauses=True)
            session.nodes[1].hear("halfway")
            number = ":".join(query.split(":")[:2])
            waiting = session.nodes[0]
            faro = str(BIN / "faro")
            self.expect(waiting.run(faro, "stat", "--once", "--interval", "0.1"), 0, number, "waits for")
            found = waiting.run(faro, "explain", "--interval", "0.1")
            for _ in range(600):  # until node 0 has sent its own rows
                if found[0] != 0:
                    break
                found = waiting.run(faro, "explain", "--interval", "0.1")
            self.expect(found, 4, number, "worker 1")
            session.nodes[1].say("go on")
            session.verify()
            session.close()

    def refuses(self, pod, *texts):
        self.expect(self.run(pod, "config"), 2, *texts)


KINDS = {kind.name: kind for kind in (Session, Endpoint, Command, Jvm)}
