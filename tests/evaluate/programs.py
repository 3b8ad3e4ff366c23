"""Where what is measured stands, and how to run it."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FARO = ROOT / "build/release/bin/faro"
FARO_LAB = ROOT / "build/release/bin/faro-lab"
STANDARD = ROOT / "build/release/bin/faro-standard-bench"  # of faro-lab bench the two-stage shuffle alone
FARO_C = ROOT / "build/release/lib/libfaro_c.so"
PYARROW = ROOT / "build/evaluate-python/bin/python"
PEERS = ROOT / "build/release/tests/bin"
JAVA = ROOT / "java"
JAVA_JAR = JAVA / "lab/bench/target/faro-bench-0.1.0.jar"
JAVA_CLASS_PATH = f"{JAVA_JAR}:{JAVA}/lab/sockets/target/faro-sockets-0.1.0.jar:{JAVA}/faro/target/faro-0.1.0.jar"
SQL = ROOT / "examples/sql/target"
SQL_JAR = SQL / "faro-sql-0.1.0.jar"
SQL_CLASS_PATH = f"{SQL_JAR}:{SQL}/lib/*"

GRACE_S = 10  # to end when asked to


class Failed(Exception):
    """A run that gave no result; the text says why."""


@dataclass
class Command:
    """What is run, by words that become texts, and what has to run beside it (a server), which is ended afterwards. `held`
    lives as long as this."""

    arguments: Sequence
    environment: dict[str, str] = field(default_factory=dict)
    beside: list[str] | None = None
    held: object = None

    def __post_init__(self):
        self.arguments = [str(word) for word in self.arguments]

    def text(self) -> str:
        variables = [f"{name}={value}" for name, value in self.environment.items()]
        line = " ".join(variables + self.arguments)
        return line if self.beside is None else f"{' '.join(self.beside)} & {line}"


def found(program: str | Path, source: str) -> str | None:
    """None if there is such a program, else why not; `source` is what brings it."""
    if shutil.which(str(program)):
        return None
    return f"{Path(program).name} is not there ({source})"


def not_built(what: str, *files: Path) -> str | None:
    """None if all of them are there, else which one is not; `what` could not be had then."""
    absent = next((file for file in files if not file.exists()), None)
    return absent and f"{absent.relative_to(ROOT)} is not there: {what} could not be had"


def run(command: Command, time_limit_s: float, processor: int | None = None) -> str:
    """Its standard output. Blocks; nothing of it is left when it returns. Raises Failed."""
    with ExitStack() as ends:
        for arguments in filter(None, (command.beside, command.arguments)):
            process = _start(arguments, command, processor)
            ends.callback(_end, process)
        try:
            output, errors = process.communicate(timeout=time_limit_s)
        except subprocess.TimeoutExpired:
            raise Failed(f"took longer than {time_limit_s:.0f} s") from None
    if process.returncode != 0:
        said = (errors.strip() or output.strip()).splitlines()[-3:]
        raise Failed(f"exit code {process.returncode}: {' / '.join(said)}")
    return output


def _start(arguments: list[str], command: Command, processor: int | None) -> subprocess.Popen:
    # As long as this program lives, and no longer.
    words = ["setpriv", "--pdeathsig", "KILL"]
    if processor is not None:
        words += ["taskset", "-c", str(processor)]
    try:
        return subprocess.Popen(
            words + arguments,
            cwd=ROOT,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as problem:
        raise Failed(str(problem)) from None


def _end(process: subprocess.Popen) -> None:
    """If it still runs, with all that it has started: mpirun is asked first, as its ranks are no part of its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        try:
            process.communicate(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            pass


def seconds_since(start: float) -> float:
    return time.monotonic() - start
