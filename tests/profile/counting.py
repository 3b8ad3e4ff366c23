#!/usr/bin/env python3
"""What counting costs: the share of the two-stage benchmark's instructions that update counters.

Runs four nodes of a worker each over shared memory under callgrind, and looks up, of every instruction that ran, in which
inlined functions it stands. Those of native/counters/ count. Node 0 is left out: it also computes what must come out.

    tests/profile/counting.py build/profile/bin/faro-lab [--limit PERCENT]

Prints the table; exit code 1 if the share is above the limit, or a run failed.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

NODES = [f"127.0.0.1:{port}" for port in range(17400, 17440, 10)]
ROWS = 5_000_000  # of each node and round: what opening a session takes is lost among them
TIME_LIMIT_S = 600


def run_nodes(faro: str, folder: pathlib.Path) -> list[pathlib.Path]:
    """A callgrind profile of each node; the program itself verifies rows and checksum."""
    job = ["bench", "two-stage", "--transport", "shm", "--nodes", ",".join(NODES), "--repetitions", "1", "--rows", str(ROWS)]
    profiles = [folder / f"node{node}.out" for node in range(len(NODES))]
    logs = [profile.with_suffix(".log") for profile in profiles]
    running = []
    for node, profile in enumerate(profiles):
        valgrind = ["valgrind", "--tool=callgrind", "--dump-instr=yes", f"--callgrind-out-file={profile}"]
        with logs[node].open("w") as log:
            command = [*valgrind, faro, *job, "--node", str(node)]
            running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
    try:
        codes = [process.wait(TIME_LIMIT_S) for process in running]
    finally:
        for process in running:
            process.kill()
    for node, code in enumerate(codes):
        if code != 0 or (node == 0 and "verified" not in logs[0].read_text()):
            raise SystemExit(f"node {node} ended with {code}:\n{logs[node].read_text()}")
    return profiles


class Profile:
    """Instructions executed, by address, of a callgrind output file with --dump-instr=yes."""

    def __init__(self, path: pathlib.Path, program: str):
        self.total = 0
        self.by_address: collections.Counter[int] = collections.Counter()  # in the program, as loaded
        self.main_address = 0
        names: dict[str, str] = {}  # "ob(3)" to what it was called first
        of_program = in_main = is_call = False
        address = 0
        for line in path.read_text().splitlines():
            if match := re.match(r"(ob|fn)=(\(\d+\))(?: (.*))?$", line):
                kind, number, name = match.groups()
                name = names.setdefault(kind + number, name or "")
                if kind == "ob":
                    of_program = name.endswith(program)
                else:
                    in_main = name == "main"
            elif match := re.match(r"c(ob|fn)=(\(\d+\)) (.*)$", line):
                names.setdefault(match[1] + match[2], match[3])
            elif line.startswith("calls="):
                is_call = True
            elif match := re.match(r"(0x[0-9a-f]+|\+\d+|-\d+|\*) \S+ (\d+)$", line):
                position, cost = match.groups()
                if position.startswith("0x"):
                    address = int(position, 16)
                elif position != "*":
                    address += int(position)
                if is_call:  # the callee's instructions, which have lines of their own
                    is_call = False
                    continue
                self.total += int(cost)
                if of_program:
                    self.by_address[address] += int(cost)
                    if in_main:
                        self.main_address = min(self.main_address or address, address)


def inlined_functions(faro: str, addresses: list[int]) -> list[list[str]]:
    """Of each address in the file: "function at file:line", the innermost first."""
    command = ["addr2line", "--inlines", "--functions", "--demangle", "--addresses", "--exe", faro]
    asked = "".join(f"{address:#x}\n" for address in addresses)
    answer = subprocess.run(command, input=asked, capture_output=True, text=True, check=True).stdout
    frames: list[list[str]] = []
    lines = iter(answer.splitlines())
    for line in lines:
        if re.fullmatch("0x[0-9a-f]+", line):
            frames.append([])
        else:
            frames[-1].append(f"{line} at {next(lines)}")
    return frames


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faro", help="the program, of the preset profile")
    parser.add_argument("--limit", type=float, default=1.0, help="percent of all instructions")
    options = parser.parse_args()

    symbols = subprocess.run(["nm", options.faro], capture_output=True, text=True, check=True).stdout
    main_in_file = int(re.search(r"^([0-9a-f]+) T main$", symbols, re.MULTILINE)[1], 16)
    total = counting = 0
    places: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for path in run_nodes(options.faro, pathlib.Path(folder))[1:]:
            profile = Profile(path, pathlib.Path(options.faro).name)
            total += profile.total
            loaded_at = profile.main_address - main_in_file
            addresses = [address - loaded_at for address in profile.by_address]
            frames = inlined_functions(options.faro, addresses)
            for inlined, cost in zip(frames, profile.by_address.values(), strict=True):
                inside = [i for i, frame in enumerate(inlined) if "/counters/" in frame.split(" at ")[1]]
                if inside:
                    counting += cost
                    place = inlined[min(inside[-1] + 1, len(inlined) - 1)].split(" at ")[1]
                    places[re.sub(r".*/(native|module_includes/\w+)/| \(.*", "", place)] += cost
    if counting == 0:
        raise SystemExit("no instruction counts: does the program have line numbers (preset profile)?")

    rows = 2 * 2 * ROWS * (len(NODES) - 1)  # rounds, hops
    share = 100 * counting / total
    print(f"{total / rows:8.2f} instructions per row and hop, of nodes 1 to {len(NODES) - 1}")
    print(f"{counting / rows:8.4f} of them count: {share:.3f} % (at most {options.limit:g} %)")
    for place, cost in places.most_common(8):
        print(f"{cost / rows:8.4f}   {place}")
    return 0 if share <= options.limit else 1


if __name__ == "__main__":
    sys.exit(main())
