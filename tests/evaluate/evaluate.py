"""Measures Faro and its peers on this machine, and writes results.json and report.html.

`./run evaluate` builds what it needs and calls this. One failed run does not end the others; the exit code is 0 if
nothing failed, 1 if something did, 2 if the arguments are wrong."""

import argparse
import json
import os
import shlex
import signal
import sys
import time
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

from programs import ROOT, seconds_since


def main(arguments: list[str]) -> int:
    flags = _parse(arguments)
    try:
        import matplotlib  # noqa: F401: before an hour of measuring, not after it
    except ImportError:
        print("evaluate: the pictures need matplotlib (Debian package python3-matplotlib)", file=sys.stderr)
        return 1
    flags.out.mkdir(parents=True, exist_ok=True)
    results = json.loads((flags.out / "results.json").read_text(encoding="utf-8")) if flags.again else _measure(flags)
    import report

    report.write(results, flags.out)
    if flags.prints_goals:
        print(report.goals_text(results))
    return _summary(results, flags.out)


def _parse(arguments: list[str]) -> argparse.Namespace:
    from experiments import PAPER_ROWS, experiments

    parser = argparse.ArgumentParser(prog="./run evaluate", description=__doc__.splitlines()[0])
    all_names = ", ".join(e.name for e in experiments(False))
    add = parser.add_argument
    add("--quick", action="store_true", help="few points and rows: that all runs and verifies, in minutes")
    add("--only", metavar="NAME,...", help=f"only these experiments: {all_names}; goals: those with a goal, and the table of all goals is printed")
    add("--rows", metavar="N", type=int, default=PAPER_ROWS, help="of each process, instead of 5 M")
    add("--laps", metavar="N", type=int, help="instead of those of each experiment (not the guest's)")
    add("--out", metavar="FOLDER", type=Path, default=ROOT / "build/evaluate", help="default: build/evaluate")
    add("--again", action="store_true", help="measure nothing; make the report of FOLDER/results.json again")
    flags = parser.parse_args(arguments)
    flags.arguments = arguments
    flags.prints_goals = False
    if flags.rows < 1 or (flags.laps is not None and flags.laps < 1):
        parser.error("--rows, --laps: at least one")
    flags.experiments = [replace(e, laps=flags.laps or e.laps) for e in experiments(flags.quick, flags.rows)]
    if flags.only:
        names = flags.only.split(",")
        known = [e.name for e in flags.experiments]
        if "goals" in names:
            names = [name for name in names if name != "goals"] + ["figures", "multiplexer", "operators", "python"]
            flags.prints_goals = True
        for name in names:
            if name not in known:
                parser.error(f"--only: '{name}' is none of {', '.join(known)}")
        flags.experiments = [e for e in flags.experiments if e.name in names]
    return flags


def _measure(flags: argparse.Namespace) -> dict:
    """Writes results.json after each experiment: what was measured is not lost."""
    import contest
    import machine

    started = time.monotonic()
    # However it is broken off, what was measured is reported; also where a shell had SIGINT ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    results = {
        "started": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex.join(["./run", "evaluate", *flags.arguments]),
        "quick": flags.quick,
        "complete": False,
        "commit": machine.commit(),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "experiments": [],
    }
    expected = sum(contest.expected_seconds(e) for e in flags.experiments)
    progress = contest.Progress(expected, say=lambda text: print(text, flush=True))
    try:
        for experiment in flags.experiments:
            outcome = contest.Outcome(experiment)
            try:
                contest.run(outcome, progress)
            finally:
                results["experiments"].append(outcome.as_json())
                _save(results, started, flags.out)
        results["complete"] = True
    except KeyboardInterrupt:
        print("evaluate: broken off; the report has what was measured", file=sys.stderr)
    _save(results, started, flags.out)
    return results


def _save(results: dict, started: float, folder: Path) -> None:
    results["seconds"] = seconds_since(started)
    results["load_at_end"] = os.getloadavg()[0]
    (folder / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


def _summary(results: dict, folder: Path) -> int:
    failed = 0
    for experiment in results["experiments"]:
        measured, failures = len(experiment["measurements"]), experiment["failures"]
        print(f"{experiment['name']:<10} {measured} measurements, {len(failures)} failed")
        for name, reason in experiment["left_out"].items():
            print(f"           left out: {name}: {reason}")
        for one in failures:
            print(f"           failed: {one['contestant']} {one['parameters']}: {one['reason']}")
            print(f"             {one['command']}")
        failed += len(failures)
    print(f"{folder / 'report.html'}\n{folder / 'results.json'}")
    return 1 if failed or not results["complete"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
