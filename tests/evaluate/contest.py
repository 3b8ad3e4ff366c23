"""Runs experiments: lap by lap, every point in each lap, in another order each time."""

import os
import time
from dataclasses import asdict, dataclass, field

import guest
import programs
from contestant import hops
from experiments import CONTESTANTS, Experiment, Point
from measurement import Measurement
from programs import Failed


@dataclass
class Outcome:
    """What came of one experiment."""

    experiment: Experiment
    measurements: list[Measurement] = field(default_factory=list)
    failures: list[dict] = field(default_factory=list)  # as _failure makes them
    left_out: dict[str, str] = field(default_factory=dict)  # why, by contestant

    def as_json(self) -> dict:
        outcome = asdict(self)
        experiment = outcome.pop("experiment")
        return {name: experiment[name] for name in ("name", "title", "method", "pinned")} | outcome


class Progress:
    """Says which step is next and how long the rest will take, by what steps were expected to take."""

    def __init__(self, expected_seconds: float, say=print):
        self._left = expected_seconds
        self._done = 0.0
        self._start = time.monotonic()
        self._say = say

    def step(self, experiment: str, number: int, count: int, what: str) -> None:
        spent = programs.seconds_since(self._start)
        pace = spent / self._done if self._done > 0 else 1.0
        self._say(f"[{experiment} {number}/{count}] {what}; about {_duration(self._left * pace)} left")

    def done(self, expected_seconds: float) -> None:
        self._done += expected_seconds
        self._left -= expected_seconds

    def skip(self, expected_seconds: float) -> None:
        self._left -= expected_seconds


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def expected_seconds(experiment: Experiment) -> float:
    return guest.EXPECTED_SECONDS if experiment.workload == "guest" else _seconds_of(experiment, experiment.points)


def _seconds_of(experiment: Experiment, points) -> float:
    return experiment.laps * sum(CONTESTANTS[point.contestant].expected_seconds for point in points)


def order(points: list, lap: int) -> list:
    """Of one lap: everyone is first, last and between, in turn."""
    if not points:
        return []
    first = lap * 7 % len(points)
    turned = points[first:] + points[:first]
    return turned if lap % 2 == 0 else turned[::-1]


def run(outcome: Outcome, progress: Progress) -> None:
    """Fills the outcome of its experiment. What fails is noted there, and the rest goes on. Blocks until all laps are
    over."""
    experiment = outcome.experiment
    if experiment.workload == "guest":
        progress.step(experiment.name, 1, 1, "in an emulated guest")
        _run_guest(outcome)
        progress.done(expected_seconds(experiment))
        return
    for name in dict.fromkeys(point.contestant for point in experiment.points):
        if reason := CONTESTANTS[name].missing():
            outcome.left_out[name] = reason
    points = [point for point in experiment.points if point.contestant not in outcome.left_out]
    progress.skip(_seconds_of(experiment, experiment.points) - _seconds_of(experiment, points))
    one_processor = min(os.sched_getaffinity(0))
    steps = experiment.laps * len(points)
    for lap in range(experiment.laps):
        for number, point in enumerate(order(points, lap)):
            text = f"lap {lap + 1} of {experiment.laps}: {point.contestant} {_text(point.parameters)}"
            progress.step(experiment.name, lap * len(points) + number + 1, steps, text)
            pinned = experiment.pinned if point.pinned is None else point.pinned
            measure(outcome, point, lap, one_processor if pinned else None)
            progress.done(CONTESTANTS[point.contestant].expected_seconds)


def _text(parameters: dict) -> str:
    return " ".join(f"{name}={value}" for name, value in parameters.items())


def measure(outcome: Outcome, point: Point, lap: int, processor: int | None) -> None:
    """Runs one point once; again if it fails and may."""
    failure = None
    for _ in range(CONTESTANTS[point.contestant].attempts):
        failure = _attempt(outcome, point, lap, processor)
        if failure is None:
            return
    outcome.failures.append(failure)


def _attempt(outcome: Outcome, point: Point, lap: int, processor: int | None) -> dict | None:
    """The failure, if it is one."""
    experiment, contestant = outcome.experiment, CONTESTANTS[point.contestant]
    workload = point.workload or experiment.workload
    command = contestant.command(workload, point.parameters)
    text = command.text() if processor is None else f"taskset -c {processor} {command.text()}"
    try:
        output = programs.run(command, experiment.time_limit_s, processor)
        results = contestant.results(workload, point.parameters, output)
        for parameters, result in results:
            if result.verified is False:
                where = f" of {parameters['query']}, {result.contestant}" if "query" in parameters else ""
                raise Failed(f"a wrong result{where}: {result.count} rows, checksum {result.checksum}")
    except (Failed, ValueError, KeyError, IndexError, TypeError) as problem:
        reason = str(problem) if isinstance(problem, Failed) else f"output not understood: {problem!r}"
        return _failure(point.contestant, point.parameters, lap, text, reason)
    for parameters, result in results:
        values = dict(result.values)
        if workload == "two_stage":
            values |= per_hop(values, hops(parameters))
        who = result.contestant or point.contestant
        measured = (values, result.count, result.checksum, result.verified)
        outcome.measurements.append(Measurement(who, parameters, lap, text, *measured))
    return None


def _failure(contestant: str, parameters: dict, lap: int, command: str, reason: str) -> dict:
    return {"contestant": contestant, "parameters": parameters, "lap": lap, "command": command, "reason": reason}


def per_hop(values: dict, hop_count: int) -> dict:
    return {
        "wall_ns_per_hop": values["seconds"] * 1e9 / hop_count,
        "cpu_ns_per_hop": values["cpu_seconds"] * 1e9 / hop_count,
    }


def _run_guest(outcome: Outcome) -> None:
    try:
        for measurement in guest.measure(outcome.experiment.time_limit_s):
            measurement.values |= per_hop(measurement.values, hops(measurement.parameters))
            outcome.measurements.append(measurement)
    except guest.Missing as problem:
        outcome.left_out["guest"] = str(problem)
    except (Failed, ValueError, KeyError, IndexError) as problem:
        outcome.failures.append(_failure("guest", {}, 0, guest.COMMAND.text(), str(problem)))
