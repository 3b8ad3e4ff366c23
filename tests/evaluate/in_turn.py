"""Runs programs in turn, round after round, so that what disturbs the machine disturbs all of them.

    in_turn.py NAME,NAME,... COMMAND WORD ...

Each is `COMMAND WORD ... NAME`. Whenever it could go on it prints the line `turn`, and waits for a line of its standard
input; in the end it prints a line of JSON. These are printed as one object, by name."""

import json
import subprocess
import sys
from contextlib import ExitStack

TURN = "turn\n"


def run(names: list[str], command: list[str]) -> dict:
    """What each has printed in the end. Blocks; raises RuntimeError if one says anything else, or ends before."""
    try:
        with ExitStack() as ends:  # a program that still waits ends when its input does
            programs, said = {}, {}
            for name in names:  # one after the other: at the same time they might find the same ports free
                programs[name] = ends.enter_context(_started([*command, name]))
                said[name] = programs[name].stdout.readline()
            waiting = names
            while waiting := [name for name in waiting if said[name] == TURN][::-1]:  # now this one first, now that one
                for name in waiting:
                    programs[name].stdin.write("\n")
                    programs[name].stdin.flush()
                    said[name] = programs[name].stdout.readline()
    except BrokenPipeError:
        raise RuntimeError("a program has ended before its turn") from None
    return {name: _result(name, said[name]) for name in names}


def _started(command: list[str]) -> subprocess.Popen:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _result(name: str, line: str) -> dict:
    try:
        return json.loads(line)
    except ValueError:
        raise RuntimeError(f"{name} has ended without a result: {line.strip()!r}") from None


def main() -> int:
    try:
        print(json.dumps(run(sys.argv[1].split(","), sys.argv[2:])))
    except RuntimeError as problem:
        print(f"in_turn: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
