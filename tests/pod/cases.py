"""The cases: each is a kind of pod, and what the programs have to do in it (README.md)."""

import contextlib
import fcntl
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import pods
from pods import BUILD, IN_GUEST, Pod, expect, first_child
from programs import PROGRAMS, Command, Endpoint, Jvm, Session

CASES = {}


def case(*kinds, needs=(), guest=""):
    """kinds: of programs that it is for. needs: functions that say why it cannot run here, "" if it
    can. guest: if it cannot, it runs in a guest of softroce, once this shell line has been run there.
    """

    def add(function):
        CASES[function.__name__] = (function, kinds, needs, guest)
        return function

    return add


def own_namespaces():
    """What a container is made of; root may make them."""
    words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "none", "/tmp"]
    done = subprocess.run(words, capture_output=True, check=False)
    return "" if done.returncode == 0 else "namespaces for mounts and processes may not be made here"


def other_users():
    return "" if os.geteuid() == 0 else "only root can become another user"


GRACE_S = pods.LIMIT_S / 6  # terminationGracePeriodSeconds
ALL = (Session, Endpoint, Command, Jvm)
IN_CONTAINER = (own_namespaces,)
AS_USER = (own_namespaces, other_users)
OWN_TMP = ["mount -t tmpfs -o mode=1777,size=64m none /tmp"]
OWN_SHM = ["mount -t tmpfs -o mode=1777,size=64m none /dev/shm"]
OWN_FOLDERS = OWN_TMP + OWN_SHM


def work_of(program):
    return program.exchange if isinstance(program, Endpoint) else program.query


# ------------------------------------------------------------------------------------------ variables

def service(name, port, port_name="shuffle"):
    """The variables that Kubernetes puts into every pod of a namespace with that Service."""
    host, word, url = "10.96.0.7", name.upper().replace("-", "_"), f"tcp://10.96.0.7:{port}"
    one = f"{word}_PORT_{port}_TCP"
    return {f"{word}_SERVICE_HOST": host, f"{word}_SERVICE_PORT": str(port),
            f"{word}_SERVICE_PORT_{port_name.upper()}": str(port), f"{word}_PORT": url, one: url,
            f"{one}_PROTO": "tcp", f"{one}_PORT": str(port), f"{one}_ADDR": host}


@case(*ALL)
def service_variables(program):
    services = {**service("faro", 7000), **service("faro-ring", 7001), **service("faro-security", 443)}
    pod = Pod(is_own=False, env={**services, "FARO_CLUSTER_WORKERS": "1"})
    program.works(pod)
    program.refuses(pod.with_env(FARO_SECURITY_TLZ="on"), "FARO_SECURITY_TLZ")


# -------------------------------------------------------------------------------------- Secret volumes

USER, GROUP = 1000, 2000


def secret_volume(program, mode="0440"):
    """As kubelet lays out a volume: what a name leads to is replaced as a whole, by another ..data."""
    made = program.folder / "volume"
    files = "certificate.pem key.pem authority.pem secret"
    if not made.exists():
        made.mkdir()
        subprocess.run([PROGRAMS / "pod_certificates", made], check=True)
        (made / "secret").write_text("0123456789abcdef" * 2)
    return [*OWN_FOLDERS, "mount -t tmpfs none /mnt", "mkdir /mnt/..2026_11_27_08_00_00",
            "cd /mnt/..2026_11_27_08_00_00", f"for each in {files}; do cp {made}/$each .; done",
            f"chown root:{GROUP} *", f"chmod {mode} *", "ln -s ..2026_11_27_08_00_00 /mnt/..data",
            f"for each in {files}; do ln -s ..data/$each /mnt/$each; done", "cd /"]


SECRETS = {"FARO_SECURITY_SECRET_FILE": "/mnt/secret", "FARO_SECURITY_TLS": "on",
           "FARO_SECURITY_CERTIFICATE": "/mnt/certificate.pem", "FARO_SECURITY_KEY": "/mnt/key.pem",
           "FARO_SECURITY_AUTHORITY": "/mnt/authority.pem"}


@case(*ALL, needs=AS_USER)
def secret_volumes(program):
    pod = Pod(secret_volume(program), user=USER, groups=[GROUP], env=SECRETS)
    if isinstance(program, Command):
        program.works(pod, doctor=["/mnt/secret", "/mnt/certificate.pem"], setting="security.secret_file")
        public = pod.with_(setup=secret_volume(program, "0444"))
        program.expect(program.run(public, "doctor"), 1, "/mnt/secret", "mode 0444", "fsGroup")
        return
    program.works(pod)
    for mode, why in (("0444", "mode 0444"), ("0400", "fsGroup")):
        program.refuses(pod.with_(setup=secret_volume(program, mode)), "security.", "/mnt/", why)


# ------------------------------------------------------------------------------------ process number 1

FORGOTTEN = "libfaro-unpacked-1-42.so"  # of a JVM that was number 1, too, and was killed


def processes_beside(program):
    """In its pod, as (number, state)."""
    space = os.readlink(f"/proc/{program.pid()}/ns/pid")
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(folder / "ns/pid") == space and int(folder.name) != program.pid():
                found.append((folder.name, (folder / "stat").read_text().rsplit(")")[-1].split()[0]))
    return found


@case(*ALL, needs=IN_CONTAINER)
def process_number_one(program):
    """All share a /tmp and a /dev/shm, and all are number 1."""
    shared = program.folder / "shared"
    for name in ("tmp", "shm"):
        (shared / name).mkdir(parents=True)
    (shared / "tmp" / FORGOTTEN).write_bytes(b"forgotten")
    pod = Pod([f"mount --bind {shared}/tmp /tmp", f"mount --bind {shared}/shm /dev/shm"])
    if isinstance(program, Command):
        program.works(pod)
        return
    program.open(pod, pod)
    work_of(program)()
    for each in program.nodes:
        number = pathlib.Path(f"/proc/{each.pid()}/status").read_text()
        expect(re.search(r"^NSpid:.*\s1$", number, re.M), f"{each.name} is not number 1: {number}")
        expect(not processes_beside(each), f"{each.name} has left {processes_beside(each)}")
    files = sorted(path.name for path in (shared / "shm").iterdir())
    expect(files == ["faro-1-0.counters", "faro-1-1.counters"], f"/dev/shm has {files}")
    program.close()
    left = [path.name for path in shared.glob("*/*") if not path.name.startswith("hsperfdata")]
    expect(left == ([] if isinstance(program, Jvm) else [FORGOTTEN]), f"it has left {left}")


@case(*ALL, needs=IN_CONTAINER)
def termination(program):
    """SIGTERM in the middle: what is under way is brought to its end, nothing is lost, and the exit code tells."""
    pod = Pod(OWN_FOLDERS)
    if isinstance(program, Command):
        terminate_command(program)
        return
    program.open(pod, pod)
    first, second = program.nodes
    if isinstance(program, Endpoint):
        program.exchange()
        second.terminate()
        second.hear("terminate")
        program.close()
        return
    program.begin(100_000, pauses=True)
    second.hear("halfway")
    second.terminate()
    second.hear("terminate")
    second.say("go on")
    program.verify()
    second.say("close")
    second.hear("closed")
    second.expect_end(143 if isinstance(program, Jvm) else 0)
    first.hear("peer left")
    first.terminate()
    first.hear("terminate")
    first.say("close")
    first.hear("closed")
    first.expect_end()


def terminate_command(program):
    """A program without a handler that is number 1 does not notice SIGTERM: the kernel keeps it from it."""
    shared = program.folder / "shm"
    shared.mkdir()
    pod = Pod([*OWN_TMP, f"mount --bind {shared} /dev/shm"])
    words = pod.words([BUILD / "release/bin/faro", "stat", "--interval", "0.05", "--json"])
    with Session(program.folder) as session:
        session.open(pod, pod)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            process = subprocess.Popen(words, stdout=subprocess.PIPE, env=pod.environment(), cwd="/")
            expect(process.stdout.readline().startswith(b"{"), "faro stat shows nothing")
            os.kill(first_child(process.pid), number)
            try:
                code = process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                code = "nothing: it goes on"
            process.stdout.close()
            expect(code == 128 + number, f"faro stat as number 1, after signal {number}: {code}")
        session.close()


# -------------------------------------------------------------------------------------- memory groups

MIB = 1 << 20


class MemoryGroup:
    """A control group, seen by its processes as containers see it: as the root of the mounted hierarchy."""

    def __init__(self, version, limit_mib):
        self.version = version
        self.folder = hierarchy(version) / f"faro-pod-{os.getpid()}"
        self.limit = limit_mib * MIB

    def __enter__(self):
        if self.version == 2:
            (self.folder.parent / "cgroup.subtree_control").write_text("+memory")
        self.folder.mkdir()
        limit = "memory.max" if self.version == 2 else "memory.limit_in_bytes"
        (self.folder / limit).write_text(str(self.limit))
        return self

    def __exit__(self, *_):
        until = time.monotonic() + pods.LIMIT_S
        while self.folder.exists() and time.monotonic() < until:
            for process in (self.folder / "cgroup.procs").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)
            with contextlib.suppress(OSError):  # its last process has not gone yet
                self.folder.rmdir()

    def setup(self):
        join = f"echo 0 >{self.folder}/cgroup.procs"
        if self.version == 2:
            # Its view of the groups begins at its own only once it is in it. They may not be mounted twice at one place.
            mounts = "mount -t tmpfs none /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup"
            return [join, f"set -- unshare --cgroup sh -euc '{mounts}; exec \"$@\"' sh \"$@\""]
        return [join, f"mount --bind {self.folder} /sys/fs/cgroup/memory"]

    def killed(self):
        file = "memory.events" if self.version == 2 else "memory.oom_control"
        return int(re.search(r"^oom_kill (\d+)$", (self.folder / file).read_text(), re.M)[1])


def hierarchy(version):
    """Where the groups of memory of that version are; None: nowhere."""
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, folder, kind, options = line.split()[:4]
        path = pathlib.Path(folder)
        if version == 1 and kind == "cgroup" and "memory" in options.split(","):
            return path
        if version == 2 and kind == "cgroup2" and "memory" in (path / "cgroup.controllers").read_text().split():
            return path
    return None


def memory_groups(version):
    def why_not():
        if hierarchy(version) is None:
            return f"this kernel has no memory groups of version {version} mounted"
        try:
            with MemoryGroup(version, 64):
                return own_namespaces()
        except OSError as error:
            return f"no memory group of version {version} may be made here: {error.strerror}"

    return why_not


# Rows that find no room in memory wait in a file, of which a node warns.
TO_FILE = "rows of stage . go to the overflow file in"


def in_memory_group(version, program):
    # Its overflow goes to a disk, as in a pod without a volume. A guest has files in memory only,
    # which count: there fewer rows wait.
    on_disk, rows = program.folder / "disk", 3_000_000
    if IN_GUEST:
        on_disk, rows = pathlib.Path("/var/tmp/disk"), 300_000
    on_disk.mkdir(exist_ok=True)
    is_jvm = isinstance(program, Jvm)
    with MemoryGroup(version, 192 if is_jvm else 40) as group:
        pod = Pod([*OWN_FOLDERS, *group.setup()], env={"FARO_OVERFLOW_FOLDER": str(on_disk)})
        beyond = pod.with_env(FARO_OVERFLOW_MEMORY_BYTES="256MiB")
        within = pod.with_env(FARO_OVERFLOW_MEMORY_BYTES="1MiB")
        warns = "overflow may take 268435456 bytes .* the memory control group of this process"
        if isinstance(program, Command):
            found = program.run(beyond, "doctor")
            program.expect(found, 0, "memory control group")
            for line in (r"!   memory control group +3\d\.\d MiB", warns):
                expect(re.search(line, found[1]), f"nothing of '{line}' in: {found[1]}")
            program.works(within, setting="overflow.memory_bytes")
        elif isinstance(program, Endpoint):
            program.works(within)
            program.works(pod.with_env(FARO_MEMORY_LIMIT_BYTES="1GiB"),
                          log="may take 1073741824 bytes .*memory.limit_bytes")
        else:
            program.works(beyond, rows=1000, log=warns)
            program.works(within, rows=rows, log=TO_FILE)
            program.refuses(within.with_env(FARO_RING_BYTES="128MiB"), "rings of this node need",
                            "memory control group", "ring.bytes")
        expect(group.killed() == 0, "the kernel has killed a process of the group")


@case(*ALL, needs=(memory_groups(1),),
      guest="mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/memory && "
            "mount -t cgroup -o memory none /sys/fs/cgroup/memory")
def memory_group_1(program):
    in_memory_group(1, program)


@case(*ALL, needs=(memory_groups(2),), guest="mount -t cgroup2 none /sys/fs/cgroup")
def memory_group_2(program):
    in_memory_group(2, program)


# ---------------------------------------------------------------------------------------------- folders

READ_ONLY = ["mount -o remount,bind,ro /"]
SMALL_TMP = ["mount -t tmpfs -o mode=1777,size=16m none /tmp"]
FULL = "dd if=/dev/zero of={}/full bs=64k 2>/dev/null || true"


@case(*ALL, needs=IN_CONTAINER)
def read_only_root(program):
    pod = Pod([*OWN_SHM, *SMALL_TMP, *READ_ONLY], env={"FARO_OVERFLOW_MEMORY_BYTES": "1MiB"})
    full = pod.with_(setup=[*OWN_SHM, *SMALL_TMP, FULL.format("/tmp"), *READ_ONLY])
    if isinstance(program, Endpoint):
        program.works(pod)
        program.works(full)
    elif isinstance(program, Command):
        program.works(pod, doctor=["/tmp, 16 MiB free"], setting="overflow.memory_bytes")
        program.works(full, doctor=["/tmp, 0 bytes free"], setting="overflow.memory_bytes")
    else:
        program.works(pod, rows=400_000, log=TO_FILE)
        if isinstance(program, Jvm):
            program.refuses(full, "faro.native.folder", "No space left")
            # Whoever has no room for it names the library itself.
            program.flags += (f"-Dfaro.native.library={BUILD}/release/jni/linux-{os.uname().machine}/libfaro_jni.so",)
        program.fails(full, 400_000, "overflow.folder = /tmp", "No space left", log="overflow_exhausted")


# -------------------------------------------------------------------------------------------- /dev/shm


@case(*ALL, needs=IN_CONTAINER)
def small_shared_memory(program):
    pod = Pod([*OWN_TMP, *OWN_SHM], env={"FARO_RING_BYTES": "32MiB"})
    full = pod.with_(setup=[*OWN_TMP, *OWN_SHM, FULL.format("/dev/shm")])
    warns = "counters.*/dev/shm.*(No space left|is full)"
    if isinstance(program, Command):
        program.works(pod, doctor=["64 MiB free"], setting="ring.bytes")
        return
    program.works(pod)  # rings take four times as much, and are not there
    program.works(full, log=warns)


# ------------------------------------------------------------------------------------- descriptors, limits


@case(*ALL)
def no_right_to_lock_memory(program):
    pod = Pod(is_own=False, limits=["--memlock=0:0"])
    if isinstance(program, Command):
        program.works(pod, doctor=["memlock"])
    else:
        program.works(pod)


class FullPipe:
    """That nobody reads."""

    def __init__(self):
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(self.writer, b"x" * 4096)
        os.set_blocking(self.writer, True)

    def empty(self):
        found = b""
        while select.select([self.reader], [], [], 0)[0]:
            found += os.read(self.reader, 65536)
        return found.replace(b"x", b"").decode(errors="replace")

    def close(self):
        os.close(self.reader)
        os.close(self.writer)


@case(*ALL, needs=(other_users,))
def full_standard_error(program):
    """Nothing waits for a reader that is not there; lines are dropped, and counted. The pipe is the
    program's own, or root's."""
    flags = program.folder / "logging.properties"
    flags.write_text("handlers=java.util.logging.ConsoleHandler\n.level=ALL\n"
                     "java.util.logging.ConsoleHandler.level=ALL\n")
    if isinstance(program, Jvm):
        program.flags += (f"-Djava.util.logging.config.file={flags}",)
    for user in (0, USER):
        pipe = FullPipe()
        pod = Pod(is_own=False, user=user, env={"FARO_LOG_LEVEL": "debug"}, stderr=pipe.writer)
        if isinstance(program, Command):
            program.works(pod)
        else:
            program.open(pod, pod)
            work_of(program)()
            pipe.empty()
            if not isinstance(program, Jvm):  # so that both have something to say
                program.dial_as_others()
            program.close()
            said = pipe.empty()
            # Those of a JVM wait for its logger, in a queue.
            expected = "" if isinstance(program, Jvm) else "faro: \\d+ lines were dropped here"
            expect(re.search(expected, said), f"after what was dropped it logs: {said}")
        pipe.close()


@case(*ALL)
def closed_descriptors(program):
    """What the program writes to a number that is closed must not reach Faro's sockets and files."""
    pod = Pod(is_own=False, closed=(0, 1, 2))
    if isinstance(program, Command):
        program.works(pod.with_(closed=(0,)))
        code, said = program.run(pod, "doctor")
        expect((code, said) == (1, ""), f"with nowhere to print to it ends with {code}: {said}")
        return
    program.open(pod, pod)
    work_of(program)()
    for each in program.nodes:
        links = {fd: f"/proc/{each.pid()}/fd/{fd}" for fd in "012"}
        taken = {fd: os.readlink(link) for fd, link in links.items() if os.path.lexists(link)}
        standard = [f"{fd}: {what}" for fd, what in taken.items() if not what.startswith("/")]
        expect(not standard, f"{each.name} has {standard}")
    program.close()


# ------------------------------------------------------------------------------------------------ users

NOBODY = 424242  # no entry in passwd


@case(*ALL, needs=AS_USER)
def user_without_a_name(program):
    for home in (None, "/root", "/nowhere"):
        program.works(Pod(OWN_FOLDERS, user=NOBODY, env={"HOME": home}))


# ------------------------------------------------------------------------------------ all of it together


@case(*ALL, needs=AS_USER)
def all_together(program):
    """A restricted pod, as a cluster's policy asks for it."""
    services = service("faro", 7000)
    pod = Pod([*secret_volume(program), *READ_ONLY], user=USER, groups=[GROUP],
              env={**services, **SECRETS, "HOME": None}, limits=["--memlock=0:0"], closed=(0,))
    program.works(pod)
