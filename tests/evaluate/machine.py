"""What was measured on: read from the kernel, and from the tools themselves."""

import os
import platform
import re
import subprocess
from pathlib import Path

import programs
from experiments import CONTESTANTS
from programs import ROOT


def describe() -> dict:
    return {
        "processor": _first(r"model name\s*: (.*)", "/proc/cpuinfo") or platform.processor() or "not known",
        "processors": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "system": _first(r'PRETTY_NAME="(.*)"', "/etc/os-release") or "not known",
        "memory_bytes": int(_first(r"MemTotal:\s*(\d+)", "/proc/meminfo") or 0) * 1024,
        "governor": _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not shown by the kernel",
        "load": os.getloadavg()[0],
    }


def commit() -> str:
    """With a + if the sources are not what was committed."""
    head = _output("git", "rev-parse", "HEAD")
    if head is None:
        return "not known"
    return head + ("+" if _output("git", "status", "--porcelain", "--untracked-files=no") else "")


def versions() -> dict:
    """Of all products that are there, and of what runs and draws them."""
    import matplotlib

    found = {}
    for contestant in CONTESTANTS.values():
        if contestant.product in found or contestant.missing() is not None:
            continue
        try:
            found[contestant.product] = contestant.version()
        except (programs.Failed, IndexError, KeyError, ValueError) as problem:
            found[contestant.product] = f"not known: {problem}"
    java = _output("sh", "-c", "java -version 2>&1")
    if java is not None:
        found["Java"] = java.splitlines()[0]
    return found | {"Python": platform.python_version(), "matplotlib": matplotlib.__version__}


def _output(*command: str) -> str | None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _first(pattern: str, path: str) -> str:
    match = re.search(pattern, _text(path))
    return match.group(1) if match else ""
