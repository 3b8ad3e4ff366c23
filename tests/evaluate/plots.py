"""The pictures: SVG by matplotlib, one for each experiment."""

import io

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

from labels import is_java, label, number, size  # noqa: E402
from measurement import Measurements  # noqa: E402

# The same colour for the same carrier everywhere; what runs in Java is dashed.
_COLOURS = {
    "shm": "#0b6e4f", "tcp": "#2878b5", "sockets": "#c8374a", "rxe": "#0b6e4f", "siw": "#8a5fb0",
    "mpi-isend": "#7a4fa3", "mpi-isend-tcp": "#a98bc9", "mpi-alltoallv": "#c3aedb", "zeromq": "#e08a1e",
    "java-shm": "#0b6e4f", "java-shm-one": "#58a88b", "java-tcp": "#2878b5", "java-nio": "#c8374a", "java-rxe": "#0b6e4f",
    "java-siw": "#8a5fb0", "aeron-ipc": "#8c5a2b", "aeron-udp": "#c09a6b",
    "ucx-shm": "#e08a1e", "ucx-tcp": "#f0bd7a", "memcpy": "#777777",
    "sql-faro": "#0b6e4f", "sql-sockets": "#c8374a",
}  # fmt: skip
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.handlelength": 3,
}


def svg(name: str, measurements: Measurements) -> str:
    """The picture of the experiment called so; the same measurements give the same bytes."""
    with plt.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = _PICTURES[name](measurements)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight", facecolor="white")
        plt.close(figure)
    return text.getvalue()


def _axes(columns: int, rows: int = 1, width: float = 4.4, height: float = 3.1):
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), squeeze=False, layout="constrained"
    )
    return figure, axes


def _lines(axes, ms: Measurements, value: str, scale: float, x: str, series=None, **place) -> None:
    """A line for each contestant, by the values of `x`, from least to most; `series`: (parameter, its values)."""
    parameter, variants = series or (None, (None,))
    for contestant in ms.contestants():
        for place_of_variant, variant in enumerate(variants):
            at = {**place, **({parameter: variant} if parameter else {})}
            found = [(v, ms.spread(value, contestant, **{x: v}, **at)) for v in ms.parameter_values(x)]
            found = [(v, spread) for v, spread in found if spread]
            if not found:
                continue
            medians = [spread.median * scale for _, spread in found]
            low = [(spread.median - spread.least) * scale for _, spread in found]
            high = [(spread.most - spread.median) * scale for _, spread in found]
            dashed = is_java(contestant) or place_of_variant > 0
            axes.errorbar(
                [v for v, _ in found], medians, yerr=[low, high],
                label=label(contestant) + (f", {variant}" if variant else ""), color=_COLOURS.get(contestant, "#000000"),
                linestyle="--" if dashed else "-", marker="o", markersize=4, capsize=2, linewidth=1.4,
                markerfacecolor="white" if dashed else None,
            )  # fmt: skip


def _log(axis, values=None, text=None) -> None:
    """A logarithmic axis with plain numbers."""
    axes = axis.axes
    (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log", base=2 if values else 10)
    if values:
        axis.set_ticks(values, [text(v) if text else f"{v:g}" for v in values])
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda v, _: f"{v:g}" if f"{v:e}"[0] in "25" else ""))
        axis.set_tick_params(which="minor", labelsize=7)


def _legend(figure, axes, columns: int = 3) -> None:
    found = {}
    for one in axes.flat:
        handles, names = one.get_legend_handles_labels()
        found |= dict(zip(names, handles))
    figure.legend(found.values(), found.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=columns)


def _by_processes(x: str, x_label: str, title: str, values: tuple[tuple[str, str], ...], scale_x):
    """A column for each number of processes, a row for each of the values (name, label)."""

    def draw(ms: Measurements):
        processes = ms.parameter_values("processes")
        figure, axes = _axes(len(processes), len(values))
        for column, count in enumerate(processes):
            for row, (value, name) in enumerate(values):
                one = axes[row][column]
                _lines(one, ms, value, 1, x, processes=count)
                one.set_title(title.format(count) if row == 0 else "")
                one.set_ylabel(name if column == 0 else "")
                one.set_xlabel(x_label if row == len(values) - 1 else "")
                _log(one.yaxis)
                scale_x(one, ms.parameter_values(x))
        _legend(figure, axes)
        return figure

    return draw


def _kib_from_zero(axes, values) -> None:
    """Logarithmic, with a place for 0."""
    axes.set_xscale("symlog", base=2, linthresh=1024)
    axes.set_xticks(values, [f"{value // 1024}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def _rate(value: str, x: str, x_label: str, y_label: str, series=None):
    def draw(ms: Measurements):
        figure, axes = _axes(1, width=6.4, height=3.4)
        one = axes[0][0]
        _lines(one, ms, value, 1e-9, x, series)
        values = ms.parameter_values(x)
        _log(one.xaxis, values, size if x.endswith("bytes") else None)
        one.set_xlabel(x_label)
        one.set_ylabel(y_label)
        _log(one.yaxis)
        _legend(figure, axes, 2)
        return figure

    return draw


def _connect(ms: Measurements):
    figure, axes = _axes(1, width=6.4, height=3.2)
    one = axes[0][0]
    _lines(one, ms, "connect_seconds", 1e3, "processes")
    _log(one.xaxis, ms.parameter_values("processes"))
    one.set_ylim(bottom=0)
    one.set_xlabel("nodes of two workers")
    one.set_ylabel("ms until all are connected")
    _legend(figure, axes)
    return figure


def _bars(ms: Measurements):
    names = sorted(ms.contestants(), key=lambda name: ms.spread("cpu_ns_per_hop", name).median, reverse=True)
    figure, axes = _axes(2, width=5.0, height=0.9 + 0.3 * len(names))
    for one, (value, title) in zip(
        axes[0], (("cpu_ns_per_hop", "CPU ns per hop"), ("wall_ns_per_hop", "time, ns per hop"))
    ):
        spreads = [ms.spread(value, name) for name in names]
        medians = [spread.median for spread in spreads]
        errors = [[s.median - s.least for s in spreads], [s.most - s.median for s in spreads]]
        bars = one.barh(
            [label(name) for name in names], medians, xerr=errors, color=[_COLOURS.get(name, "#000000") for name in names],
            error_kw={"capsize": 2, "linewidth": 1, "ecolor": "#333333"}, height=0.7,
        )  # fmt: skip
        for name, bar in zip(names, bars):
            if is_java(name):
                bar.set_hatch("///")
                bar.set_edgecolor("white")
        most = max(spread.most for spread in spreads)
        for row, spread in enumerate(spreads):
            one.text(spread.most + most * 0.02, row, number(spread.median), va="center", fontsize=8)
        one.set_xlim(0, most * 1.15)
        one.set_xlabel(f"{title} (hatched: in Java)")
        one.grid(axis="y", visible=False)
        if one is not axes[0][0]:
            one.set_yticklabels([])
    return figure


_QUERY_VALUES = (
    ("cpu_seconds_per_query", 1e3, "CPU ms"),
    ("seconds", 1e3, "ms"),
    ("shuffle_share", 100, "share of the shuffle, %"),
)


def _queries_by_workers(ms: Measurements):
    queries = ms.parameter_values("query")
    figure, axes = _axes(len(queries), len(_QUERY_VALUES), width=3.2, height=2.3)
    for column, query in enumerate(queries):
        for row, (value, scale, name) in enumerate(_QUERY_VALUES):
            one = axes[row][column]
            _lines(one, ms, value, scale, "workers", query=query)
            one.set_title(query if row == 0 else "")
            one.set_ylabel(name if column == 0 else "")
            one.set_xlabel("workers per process" if row == len(_QUERY_VALUES) - 1 else "")
            one.set_xticks(ms.parameter_values("workers"))
            one.set_ylim(bottom=0)
    _legend(figure, axes)
    return figure


def _queries_side_by_side(ms: Measurements):
    """Bars: the queries of TPC-H, a column for each number of workers."""
    queries = sorted(ms.parameter_values("query"), key=lambda query: int(query.lstrip("q")))
    workers = ms.parameter_values("workers")
    names = ms.contestants()
    width = 0.8 / max(1, len(names))
    figure, axes = _axes(len(workers), len(_QUERY_VALUES), width=5.2, height=2.3)
    for column, count in enumerate(workers):
        for row, (value, scale, text) in enumerate(_QUERY_VALUES):
            one = axes[row][column]
            for place, name in enumerate(names):
                found = [(i, ms.spread(value, name, query=query, workers=count)) for i, query in enumerate(queries)]
                found = [(i + (place + 0.5) * width - 0.4, spread) for i, spread in found if spread]
                medians = [spread.median * scale for _, spread in found]
                errors = [
                    [(spread.median - spread.least) * scale for _, spread in found],
                    [(spread.most - spread.median) * scale for _, spread in found],
                ]
                one.bar(
                    [x for x, _ in found], medians, width, yerr=errors, label=label(name), color=_COLOURS.get(name, "#000000"),
                    error_kw={"capsize": 2, "linewidth": 1, "ecolor": "#333333"},
                )  # fmt: skip
            one.set_title(f"{count} per process" if row == 0 else "")
            one.set_ylabel(text if column == 0 else "")
            one.set_xticks(range(len(queries)), queries)
            one.grid(axis="x", visible=False)
    _legend(figure, axes)
    return figure


def _by_workers(*values: tuple[str, str]):
    return _by_processes(
        "workers", "workers per process", "{} processes", values, lambda axes, ticks: axes.set_xticks(ticks)
    )


_CPU = ("cpu_ns_per_hop", "CPU ns per hop")
_TIME = ("wall_ns_per_hop", "time, ns per hop")
_PICTURES = {
    "workers": _by_workers(("seconds", "seconds"), _CPU),
    "guest": _by_workers(_TIME, _CPU),  # in Java with more rows
    "threshold": _by_processes(
        "threshold_bytes",
        "threshold in KiB",
        "{} processes × 2 workers",
        (_TIME, _CPU),
        _kib_from_zero,
    ),
    "row-width": _rate("bytes_per_second_per_node", "row_bytes", "width of a row", "GB/s that a node receives"),
    "messages": _rate("bytes_per_second", "message_bytes", "size of a message", "GB/s"),
    "patterns": _rate(
        "bytes_per_second_per_node",
        "processes",
        "nodes",
        "GB/s that a node receives",
        ("pattern", ("repartition", "broadcast")),
    ),
    "connect": _connect,
    "queries": _queries_by_workers,
    "queries-tpch": _queries_side_by_side,
    "peers": _bars,
}
