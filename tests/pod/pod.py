#!/usr/bin/env python3
"""pod.py [--nothing-skipped] [case[/program]...]: runs all cases, or these. The last line says how
many passed, and which were skipped, and why.

--nothing-skipped: a case that is skipped fails.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

from cases import CASES
from pods import BUILD, IN_GUEST, ROOT, Failed
from programs import KINDS

FOLDER = pathlib.Path(os.environ.get("POD_FOLDER", BUILD / "pod/runs"))
GUEST_LIMIT_S = 600


def failure_of(name, kind):
    """"": it has passed."""
    folder = FOLDER / name / kind.name
    folder.mkdir(parents=True)
    try:
        with kind(folder) as program:
            CASES[name][0](program)
    except (Failed, subprocess.TimeoutExpired) as failure:
        return str(failure)
    return ""


def run_here(name, kind):
    started = time.monotonic()
    failure = failure_of(name, kind)
    took = time.monotonic() - started
    print(f"{name + ' ' + kind.name:32} {'FAILED' if failure else 'passed'} in {took:.1f} s",
          flush=True)
    if failure:
        print(f"  {failure}", flush=True)
    return not failure


def run_in_guest(name, kinds, prepare):
    """How many have passed."""
    logs = BUILD / "pod/guests" / name
    shutil.rmtree(logs, ignore_errors=True)
    words = [f"{name}/{kind.name}" for kind in kinds]
    script = f"{prepare} && exec python3 -B tests/pod/pod.py --nothing-skipped {' '.join(words)}"
    done = subprocess.run(
        [ROOT / "tests/softroce/guest", "--limit", str(GUEST_LIMIT_S), "--logs", logs, "env",
         "POD_FOLDER=/run/share/runs", "sh", "-c", script], check=False)
    output = logs / "output.log"
    said = output.read_text(errors="replace").splitlines() if output.exists() else []
    print("\n".join(said[:-1] if done.returncode == 0 else said), flush=True)
    passed = sum(" passed in " in line for line in said)
    if done.returncode != 0:
        print(f"{name}: the guest has ended with {done.returncode} ({logs})", flush=True)
        return min(passed, len(kinds) - 1)
    return passed


def main(words):
    strict = "--nothing-skipped" in words
    asked = [word for word in words if not word.startswith("--")]
    known = [*CASES, *(f"{case}/{kind}" for case in CASES for kind in KINDS)]
    for word in asked:
        if word not in known:
            print(f"pod: no case {word}: {', '.join(CASES)}", file=sys.stderr)
            return 2
    shutil.rmtree(FOLDER, ignore_errors=True)
    passed, tried, skipped = 0, 0, []
    for name, (_, kinds, needs, guest) in CASES.items():
        wanted = [kind for kind in kinds
                  if not asked or name in asked or f"{name}/{kind.name}" in asked]
        why_not = next(filter(None, (need() for need in needs)), "") if wanted else ""
        if why_not and guest and not IN_GUEST and shutil.which("qemu-system-x86_64"):
            print(f"{name}: {why_not}; in a guest", flush=True)
            tried += len(wanted)
            passed += run_in_guest(name, wanted, guest)
        elif why_not:
            skipped.append(f"{name}: {why_not}")
        else:
            tried += len(wanted)
            passed += sum([run_here(name, kind) for kind in wanted])
    skips = "".join(f"; SKIPPED {each}" for each in skipped)
    print(f"{passed} of {tried} programs passed, each in its kind of pod{skips}")
    return 1 if passed < tried or (strict and skipped) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
