"""The table that `./run bench` prints: the two-stage shuffle over Faro beside what sets the bar, lap by lap.

    bench.py [--json]     exit code 0 if all that ran was verified
"""

import json
import sys
from statistics import median

import contest
import machine
from experiments import PAPER_ROWS, Experiment, Point
from measurement import Measurements
from programs import STANDARD, Command, run

PROCESSES = 4
LAPS, FEW_LAPS = 7, 3
CPP = ("shm", "tcp", "sockets", "plain-loop", "copies")
JAVA = ("java-shm", "java-tcp", "java-nio")
# Those in the paper's form write every row by itself, so that fewer rows do.
FORMS_OF_THE_PAPER = {"sockets-paper": 100_000, "java-nio-paper": 20_000}
HEAD = ("", "seconds", "rows/s", "CPU ns/hop", "vs sockets", "cold s", "cold CPU", "result")
WIDE_BYTES, WIDE_ROWS = 100, 500_000  # where Faro loses
TEXT = f"""Two-stage shuffle: {PAPER_ROWS:,} integers per process, {WIDE_ROWS:,} in rows of {WIDE_BYTES} bytes, go to the worker of their hash, become
n*3/2, and go to the worker of that. Medians of {LAPS} interleaved runs, of {FEW_LAPS} in Java and of those with a *; a hop is a row
shuffled once; cold is the first run of new processes.
"""
NOTE = """* the sockets middleware as the paper describes it: a system call per row. Run with fewer rows, seconds scaled to those of
  the others. plain-loop: a loop over shared rings, written by hand for this job alone; copies: making, hashing and copying
  the rows alone, in one thread.
"""


def experiments(rows: int = PAPER_ROWS) -> list[Experiment]:
    """Those of one shape have its title."""
    made = []
    for workers, row_bytes in ((1, 8), (1, WIDE_BYTES), (2, 8)):
        title = f"{PROCESSES} processes × {workers} worker{'' if workers == 1 else 's'}, rows of {row_bytes} bytes"

        def add(names, laps: int, count: int, workers=workers, row_bytes=row_bytes, title=title):
            place = {"processes": PROCESSES, "workers": workers, "row_bytes": row_bytes, "rows": count}
            name = f"{title}: {', '.join(names)}"
            made.append(Experiment(name, "two_stage", tuple(Point(one, place) for one in names), laps=laps, title=title))

        add(CPP, LAPS, rows if row_bytes == 8 else min(rows, WIDE_ROWS))
        if row_bytes != 8:
            continue
        if workers == 1:
            add(JAVA, FEW_LAPS, rows)
        for name, count in FORMS_OF_THE_PAPER.items():
            if workers == 1 or name == "sockets-paper":
                add((name,), FEW_LAPS, min(rows, count))
    return made


def table(outcomes: list[contest.Outcome]) -> str:
    """All that was measured. Ratios are to the tuned sockets of the same shape."""
    rows = [HEAD]
    for title in dict.fromkeys(one.experiment.title for one in outcomes):
        of_shape = [one for one in outcomes if one.experiment.title == title]
        ms = Measurements([measurement for one in of_shape for measurement in one.measurements])
        most = max(ms.parameter_values("rows"), default=0)
        sockets = ms.spread("wall_ns_per_hop", "sockets")
        rows.append((title,) + ("",) * (len(HEAD) - 1))
        rows += [_row(ms, name, most, sockets and sockets.median) for name in ms.contestants()]
        rows += [_without(f"  {one['contestant']}", f"FAILED: {one['reason']}") for outcome in of_shape for one in outcome.failures]
        rows += [_without(f"  {name}", f"left out: {why}") for outcome in of_shape for name, why in outcome.left_out.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD) - 1)]
    return "".join(_aligned(row, widths) for row in rows)


def _aligned(row: tuple, widths: list[int]) -> str:
    cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), row[-1]]
    return "  ".join(cells).rstrip() + "\n"


def _without(name: str, result: str) -> tuple:
    return (name, *("-",) * (len(HEAD) - 2), result)


def _row(ms: Measurements, name: str, most: int, sockets_ns: float | None) -> tuple:
    def of(value: str) -> float:
        return median(one.values[value] for one in found)

    found = ms.of(name)
    parameters = found[0].parameters
    scale = most / parameters["rows"]
    rate = parameters["processes"] * parameters["rows"] / of("seconds")
    return (
        f"  {name}{' *' if scale > 1 else ''}", f"{of('seconds') * scale:.4f}", _scaled(rate), f"{of('cpu_ns_per_hop'):.2f}",
        _times(sockets_ns / of("wall_ns_per_hop")) if sockets_ns else "-", f"{of('cold_seconds') * scale:.4f}",
        f"{of('cold_cpu_ns_per_hop'):.2f}", "verified",
    )  # fmt: skip


def _times(ratio: float) -> str:
    """Two digits of one that is far below 1, too."""
    return f"{ratio:.2f} ×" if ratio >= 0.1 else f"{ratio:.2g} ×"


def _scaled(rate: float) -> str:
    """357 M: three digits and a unit."""
    for unit in ("", "k", "M"):
        if rate < 999.5:
            break
        rate /= 1000
    else:
        unit = "G"
    digits = 3 - sum(rate >= bound for bound in (0.9995, 9.995, 99.95))
    return f"{rate:.{digits}f} {unit}".rstrip()


def measure(made: list[Experiment]) -> list[contest.Outcome]:
    """Says on standard error what it does, a terminal permitting."""
    shown = sys.stderr.isatty()

    def say(text: str):
        if shown:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    progress = contest.Progress(sum(contest.expected_seconds(one) for one in made), say)
    outcomes = [contest.Outcome(one) for one in made]
    for outcome in outcomes:
        contest.run(outcome, progress)
    say("")
    return outcomes


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--json"]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    outcomes = measure(experiments())
    described, version = machine.describe(), run(Command([STANDARD, "--version"]), 20).strip()
    if arguments:
        results = {"version": version, "machine": described, "contests": [one.as_json() for one in outcomes]}
        print(json.dumps(results, indent=1))
    else:
        on = f"{described['processors']} × {described['processor']}, {described['kernel']}"
        print(f"{TEXT}\n{table(outcomes)}\n{NOTE}\n{on}\n{version}")
    return 1 if any(one.failures or not one.measurements and not one.left_out for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
