"""Pods: what a container runtime makes around a process, and processes in them that are told what to do."""

import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
IN_GUEST = "POD_FOLDER" in os.environ  # of softroce, whose processor is slow (pod.py)
LIMIT_S = 300 if IN_GUEST else 60  # of every wait
JAVA = os.path.dirname(shutil.which("java") or "/usr/bin/java")
PATH = f"{JAVA}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"


class Failed(Exception):
    """A check that does not hold."""


def expect(holds, what):
    if not holds:
        raise Failed(what)


class Pod:
    """How a process is started. Each start makes the same anew, as each pod of a deployment does.

    setup: lines of a shell, run as root within the namespaces before the program starts.
    user, groups: of the program; it has no capability, as with `drop: ["ALL"]`, whoever it is.
    env: beside PATH and HOME; None takes a variable away.
    limits: of prlimit(1). closed: of the descriptors 0 to 2.
    stderr: a descriptor in place of a file that has to stay empty.
    is_own: it has namespaces of its own for mounts and processes, so the program is number 1.
    """

    def __init__(self, setup=(), user=0, groups=(), env=None, limits=(), closed=(), stderr=None,
                 is_own=True):
        self.setup = list(setup)
        self.user = user
        self.groups = list(groups)
        self.env = dict(env or {})
        self.limits = list(limits)
        self.closed = list(closed)
        self.stderr = stderr
        self.is_own = is_own

    def with_(self, **changes):
        """Another one, which differs in these."""
        return Pod(**{**vars(self), **changes})

    def with_env(self, **more):
        return self.with_(env={**self.env, **more})

    def environment(self):
        found = {"PATH": PATH, "HOME": "/", **self.env}
        return {name: value for name, value in found.items() if value is not None}

    def become(self):
        """The words that turn root into the program's user."""
        if os.geteuid() != 0:
            return []
        groups = ["--groups", ",".join(map(str, self.groups))] if self.groups else ["--clear-groups"]
        return ["setpriv", "--reuid", str(self.user), "--regid", str(self.user), *groups,
                "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"]

    def words(self, program):
        words = self.become() + [str(word) for word in program]
        if self.limits:
            words = ["prlimit", *self.limits, *words]
        if self.closed:
            closing = " ".join(f"{fd}>&-" for fd in self.closed)
            words = ["sh", "-c", f'exec "$@" {closing}', "sh", *words]
        if not self.is_own:
            return ["setpriv", "--pdeathsig", "KILL", *words]
        script = "\n".join(self.setup + ['exec "$@"'])
        return ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork",
                "--kill-child", "--mount-proc", "sh", "-euc", script, "pod", *words]


class Program:
    """A process in a pod. It is told what to do, and says what has come of it, by lines over a socket."""

    def __init__(self, pod, words, name, folder):
        self.pod = pod
        self.name = name
        self.log = folder / f"{name}.err"
        self.heard = b""
        self.connection = None
        with socket.create_server(("127.0.0.1", 0)) as server, open(self.log, "wb") as log:
            port = server.getsockname()[1]
            filled = [str(port) if word == "PORT" else word for word in words]
            self.process = subprocess.Popen(
                pod.words(filled), env=pod.environment(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log if pod.stderr is None else pod.stderr, cwd="/")
            until = time.monotonic() + LIMIT_S
            while not select.select([server], [], [], 0.2)[0]:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise Failed(f"{name} has not started: {self.said()}")
            self.connection, _ = server.accept()

    def said(self):
        """On stderr (and stdout), so far."""
        return self.log.read_text(errors="replace").strip()

    def say(self, line):
        self.connection.sendall(f"{line}\n".encode())

    def next_line(self):
        """None: it has ended."""
        until = time.monotonic() + LIMIT_S
        while b"\n" not in self.heard:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.connection], [], [], left)[0]:
                raise Failed(f"{self.name} says nothing: {self.said()}")
            try:
                more = self.connection.recv(65536)
            except ConnectionResetError:
                more = b""
            if not more:
                return None
            self.heard += more
        line, self.heard = self.heard.split(b"\n", 1)
        return line.decode()

    def hear(self, beginning, *texts):
        """The rest of the next line, which has to begin so. texts: what else has to stand there."""
        line = self.next_line()
        if line is None:
            raise Failed(f"{self.name} has ended with {self.process.wait()}, and not said "
                         f"'{beginning}': {self.said()}")
        expect(line.startswith(beginning), f"{self.name} says '{line}', not '{beginning}'")
        rest = line[len(beginning):].strip()
        for text in texts:
            expect(text in rest, f"{self.name} says '{rest}', and nothing of '{text}'")
        return rest

    def pid(self):
        """Of the program itself, as seen from here."""
        if not self.pod.is_own:
            return self.process.pid
        return first_child(self.process.pid)

    def terminate(self):
        os.kill(self.pid(), signal.SIGTERM)

    def expect_end(self, code=0, log=""):
        """It ends by itself, with that code. log: what has to stand on its stderr; "": nothing may."""
        try:
            ended = self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.name} does not end: {self.said()}") from None
        expect(ended == code, f"{self.name} ends with {ended}, not {code}: {self.said()}")
        if self.pod.stderr is None:
            said = self.said()
            expect(re.search(log, said) if log else not said,
                   f"{self.name} logs '{said}', expected '{log}'")

    def run(self, *words):
        """Another program in its pod, as `kubectl exec` does: (exit code, stdout and stderr)."""
        words = self.pod.become() + [str(word) for word in words]
        if self.pod.is_own:
            words = ["nsenter", "--target", str(self.pid()), "--mount", "--root", "--pid", *words]
        return run(words, self.pod.environment())

    def kill(self):
        if self.connection:
            self.connection.close()
        if self.process.poll() is None:
            self.process.kill()  # of unshare, with which its child is killed
        self.process.wait()


def first_child(pid):
    """Of unshare: the program in the pod, as seen from here."""
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def run(words, env, **more):
    """(exit code, stdout and stderr)"""
    done = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, capture_output=True, cwd="/",
                          timeout=LIMIT_S, check=False, **more)
    return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


class HeldAddresses:
    """Addresses of this host that are given to nobody else: a socket each is bound, and does not listen."""

    def __init__(self, count):
        self.sockets = []
        for _ in range(count):
            held = socket.socket()
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            held.bind(("127.0.0.1", 0))
            self.sockets.append(held)
        self.text = ",".join(f"127.0.0.1:{held.getsockname()[1]}" for held in self.sockets)

    def close(self):
        for held in self.sockets:
            held.close()
