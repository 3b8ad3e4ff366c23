"""The page: one file, whose pictures are inside it, made of results.json alone."""

from collections import defaultdict
from html import escape
from pathlib import Path
from string import Template

import findings
import join_costs
import multiplexer
import operators
import plots
from goals import GOALS
from labels import label, number, size
from measurement import Measurement, Measurements, Spread

_NUMBER = ' class="number"'
_TEMPLATE = Path(__file__).with_name("report.html")

# Values of a measurement: name, unit, factor.
_COLUMNS = {
    "seconds": ("s", 1),
    "wall_ns_per_hop": ("ns/hop", 1),
    "cpu_ns_per_hop": ("CPU ns/hop", 1),
    "bytes_per_second": ("GB/s", 1e-9),
    "bytes_per_second_per_node": ("GB/s per node", 1e-9),
    "connect_seconds": ("ms to connect", 1e3),
    "cold_seconds": ("first round, s", 1),
    "cold_cpu_ns_per_hop": ("first round, CPU ns/hop", 1),
    "bytes_per_cpu_second": ("GB per CPU second", 1e-9),
    "idle_cpu_seconds": ("CPU ms while idle", 1e3),
    "send_cpu_ns_per_row": ("to send, CPU ns/row", 1),
    "receive_cpu_ns_per_row": ("to receive, CPU ns/row", 1),
    "cpu_ns_per_copy": ("CPU ns/copy", 1),
    "cpu_ns_per_row": ("CPU ns/row", 1),
    "send_cpu_ns_per_copy": ("to send, CPU ns/copy", 1),
    "rows_per_frame": ("rows/frame", 1),
    "least_seconds": ("at least, s", 1),
    "busiest_cpu_times_mean": ("busiest worker, CPU/mean", 1),
    "most_rows_times_mean": ("most loaded, rows/mean", 1),
    "bytes_to_others": ("MiB to other nodes", 2**-20),
    "ring_bytes": ("MiB of rings", 2**-20),
    "rings_of_planned": ("rings, of those planned", 1),
    "taken_bytes": ("MiB of all", 2**-20),
    "planned_bytes": ("MiB planned", 2**-20),
    "links": ("links", 1),
    "frames_to_others": ("frames to others", 1),
    "frames_to_own_node": ("frames to its own node", 1),
    "cpu_seconds_per_query": ("CPU ms", 1e3),
    "shuffle_share": ("share of the shuffle, %", 100),
    "cpu_ns_per_record": ("CPU ns/record", 1),
    "transport_ns_per_record": ("the transport's threads, CPU ns/record", 1),
    "records_per_second": ("M records/s", 1e-6),
    "p50_us": ("p50, us", 1),
    "p99_us": ("p99, us", 1),
}


def write(results: dict, folder: Path) -> None:
    """report.html, and each picture as a file of its own."""
    parts = []
    for experiment in results["experiments"]:
        measurements = measurements_of(experiment)
        picture = ""
        if measurements.all:
            picture = plots.svg(experiment["name"], measurements)
            (folder / f"{experiment['name']}.svg").write_text(picture, encoding="utf-8")
        parts.append(_experiment(experiment, measurements, picture))
    page = Template(_TEMPLATE.read_text(encoding="utf-8")).substitute(
        when=escape(_when(results)),
        notes="".join(f'<p class="note">{escape(note)}</p>' for note in _notes(results)),
        goals=_goals(results),
        machine=_table([], [[name.replace("_", " "), _plain(name, value)] for name, value in results["machine"].items()]),
        experiments="".join(parts),
        versions=_table([], results["versions"].items()),
        command=escape(results["command"]),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")


def measurements_of(experiment: dict) -> Measurements:
    return Measurements([Measurement(**one) for one in experiment["measurements"]])


def _when(results: dict) -> str:
    minutes = results["seconds"] / 60
    measured = f"{results['started']}, {minutes:.0f} minutes; commit {results['commit']}."
    return f"{measured} Points are medians, bars and brackets least and most."


def _notes(results: dict):
    if results["quick"]:
        yield "The quick form: few points, few rows. It shows that everything runs and is verified; its figures mean nothing."
    if not results["complete"]:
        yield "This evaluation was broken off: what follows is not all of it."
    failed = sum(len(experiment["failures"]) for experiment in results["experiments"])
    if failed:
        yield f"{failed} {'run' if failed == 1 else 'runs'} failed; the experiments list why."
    busy = max(results["machine"]["load"], results["load_at_end"])
    if busy > results["machine"]["processors"]:
        yield (
            f"The machine had other work: a load of {results['machine']['load']:.1f} at the beginning and of "
            f"{results['load_at_end']:.1f} at the end. Trust ratios more than figures, and CPU time more than time."
        )


def _judged(results: dict) -> list[list[str]]:
    by_name = {experiment["name"]: measurements_of(experiment) for experiment in results["experiments"]}
    return [[goal.what, *goal.judged(by_name.get(goal.experiment, Measurements([])))] for goal in GOALS]


def _goals(results: dict) -> str:
    return _table(["goal", "", "measured, median of the laps' ratios", "reached"], _judged(results))


def goals_text(results: dict) -> str:
    """A line for each goal whose experiment was measured."""
    names = {experiment["name"] for experiment in results["experiments"]}
    rows = [row for goal, row in zip(GOALS, _judged(results)) if goal.experiment in names]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _experiment(experiment: dict, measurements: Measurements, picture: str) -> str:
    parts = [f'<h2 id="{experiment["name"]}">{escape(experiment["title"])}</h2>']
    parts.append(f'<p class="method">{escape(experiment["method"])}</p>')
    if picture:
        parts.append(f"<figure>{picture[picture.index('<svg'):]}</figure>")
        parts.append(f"<p>{escape(findings.paragraph(experiment['name'], measurements))}</p>")
    if experiment["name"] == multiplexer.NAME and measurements.all:
        parts += [_table(multiplexer.HEAD, multiplexer.figures(measurements)), f"<p>{escape(multiplexer.HYBRID)}</p>"]
        parts.append(_table(multiplexer.HYBRID_HEAD, multiplexer.hybrid(measurements), range(1, 9)))
        parts.append(f"<p>{escape(multiplexer.NOT_SHOWN)}</p>")
    if experiment["name"] == operators.NAME and measurements.all:
        parts += [_table(operators.HEAD, operators.figures(measurements)), f"<p>{escape(operators.AGGREGATION)}</p>"]
        parts.append(_table(operators.AGGREGATION_HEAD, operators.aggregation(measurements), range(2, 14)))
        parts.append(f"<p>{escape(operators.JOIN_TEXT)}</p>")
        parts.append(_table(operators.JOIN_HEAD, operators.joins(measurements), range(2, 11)))
        parts.append(f"<p>{escape(join_costs.TEXT)}</p>")
        parts.append(_table(join_costs.HEAD, join_costs.figures(measurements, operators.TRANSPORTS), range(2, 11)))
        parts.append(f"<p>{escape(operators.NOT_SHOWN)}</p>")
    if experiment["left_out"]:
        missing = "; ".join(f"{label(name)}: {reason}" for name, reason in experiment["left_out"].items())
        parts.append(f'<p class="note">Left out: {escape(missing)}.</p>')
    if experiment["failures"]:
        rows = [
            [label(one["contestant"]), _parameters(one["parameters"]), one["reason"], one["command"]]
            for one in experiment["failures"]
        ]
        parts.append(f'<p class="note">Failed:</p>{_table(["contestant", "", "why", "command"], rows)}')
    if measurements.all:
        parts.append(f"<details><summary>Table</summary>{_measured(measurements)}</details>")
    return "".join(parts)


def _measured(measurements: Measurements) -> str:
    columns = [name for name in _COLUMNS if any(name in one.values for one in measurements.all)]
    places = defaultdict(list)
    for one in measurements.all:
        places[one.contestant, tuple(sorted(one.parameters.items()))].append(one)
    rows = []
    for (contestant, parameters), found in places.items():
        spreads = [_spread(Measurements(found).spread(name, contestant), _COLUMNS[name][1]) for name in columns]
        checked = "not checked" if found[0].verified is None else "verified"
        rows.append([label(contestant), _parameters(dict(parameters)), len(found), *spreads, checked])
    head = ["contestant", "", "laps", *(_COLUMNS[name][0] for name in columns), "result"]
    return _table(head, rows, range(2, 3 + len(columns)))


def _spread(spread: Spread | None, factor: float) -> str:
    if spread is None:
        return ""
    return f"{number(spread.median * factor)} ({number(spread.least * factor)} – {number(spread.most * factor)})"


def _parameters(parameters: dict) -> str:
    words = {name: name.removesuffix("_bytes").replace("_", " ") for name in parameters}
    return ", ".join(f"{words[name]} {_plain(name, value)}" for name, value in parameters.items())


def _plain(name: str, value) -> str:
    if name == "memory_bytes":
        return f"{value / 2**30:.1f} GiB"
    if name == "load":
        return f"{value:.1f}"
    if name.endswith("_bytes"):
        return size(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(head: list[str], rows, numbers=()) -> str:
    lines = [[f"<th>{escape(cell)}</th>" for cell in head]] if head else []
    for row in rows:
        lines.append([f"<td{_NUMBER if i in numbers else ''}>{escape(str(cell))}</td>" for i, cell in enumerate(row)])
    return f"<table>{''.join('<tr>' + ''.join(cells) + '</tr>' for cells in lines)}</table>"
