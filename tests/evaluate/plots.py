"""The pictures: SVG by matplotlib, one for each experiment."""

import io

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

import flink_jobs  # noqa: E402
from flink import LATENCY, THROUGHPUT  # noqa: E402
from labels import is_java, label, number, shape, size  # noqa: E402
from measurement import Measurements  # noqa: E402
from operator_ways import ARROW, AUTOMATIC, BY_HAND, CHOICES, DUCKDB, JOIN, MATERIALISED, TREE  # noqa: E402

# The same colour for the same carrier everywhere; what runs in Java is dashed.
_COLOURS = {
    "shm": "#0b6e4f", "tcp": "#2878b5", "sockets": "#c8374a", "rxe": "#0b6e4f", "siw": "#8a5fb0",
    "mpi-isend": "#7a4fa3", "mpi-isend-tcp": "#a98bc9", "mpi-alltoallv": "#c3aedb", "zeromq": "#e08a1e",
    "java-shm": "#0b6e4f", "java-shm-one": "#58a88b", "java-tcp": "#2878b5", "java-nio": "#c8374a", "java-rxe": "#0b6e4f",
    "java-siw": "#8a5fb0", "aeron-ipc": "#8c5a2b", "aeron-udp": "#c09a6b",
    "ucx-shm": "#e08a1e", "ucx-tcp": "#f0bd7a", "memcpy": "#777777",
    "plain-loop": "#777777", "java-shm-codec": "#9cc9b6",
    "sql-faro": "#0b6e4f", "sql-sockets": "#c8374a",
    "python-shm": "#0b6e4f", "python-shm-256": "#58a88b", "python-tcp": "#2878b5", "python-tcp-256": "#7fb0d6",
    "python-flight": "#e08a1e", "python-pickle": "#c8374a",
    AUTOMATIC: "#0b6e4f", TREE: "#c8374a", **dict(zip(CHOICES[1:], ("#555555", "#e9c46a", "#e08a1e", "#b5651d", "#8a5fb0", "#c3aedb"))),
    JOIN: "#0b6e4f", MATERIALISED: "#c8374a", BY_HAND: "#777777", DUCKDB: "#2878b5", ARROW: "#e08a1e",
    "flink-shm": "#0b6e4f", "flink-tcp": "#2878b5", "flink-local": "#999999",
}  # fmt: skip
_ERROR_BARS = {"capsize": 2, "linewidth": 1, "ecolor": "#333333"}
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
# Values of a measurement: name, factor, label.
_CPU = ("cpu_ns_per_hop", 1, "CPU ns per hop")
_TIME = ("wall_ns_per_hop", 1, "time, ns per hop")
_RATE_OF_NODE = ("bytes_per_second_per_node", 1e-9, "GB/s that a node receives")
_CONNECT = ("connect_seconds", 1e3, "ms until all are connected")
_QUERY_VALUES = (
    ("cpu_seconds_per_query", 1e3, "CPU ms"),
    ("seconds", 1e3, "ms"),
    ("shuffle_share", 100, "share of the shuffle, %"),
)


def svg(name: str, measurements: Measurements) -> str:
    """The picture of the experiment called so; the same measurements give the same bytes."""
    with plt.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = _PICTURES[name](measurements)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None}, bbox_inches="tight", facecolor="white")
        plt.close(figure)
    return text.getvalue()


def _colour(contestant: str) -> str:
    return _COLOURS.get(contestant, "#000000")


def _axes(columns: int, rows: int = 1, width: float = 4.4, height: float = 3.1):
    size_of_all = (width * columns, height * rows)
    return plt.subplots(rows, columns, figsize=size_of_all, squeeze=False, layout="constrained")


def _points(spreads, scale: float) -> tuple[list, list]:
    """The medians, and how far down and up what was measured reaches from them."""
    low = [(spread.median - spread.least) * scale for spread in spreads]
    high = [(spread.most - spread.median) * scale for spread in spreads]
    return [spread.median * scale for spread in spreads], [low, high]


def _lines(axes, ms: Measurements, value: str, scale: float, x: str, series=None, **place) -> None:
    """A line for each contestant, by the values of `x`, from least to most; `series`: (parameter, its values)."""
    parameter, variants = series or (None, (None,))
    for contestant in ms.contestants():
        for place_of_variant, variant in enumerate(variants):
            at = {**place, **({parameter: variant} if parameter else {})}
            found = ms.spreads(value, contestant, x, **at)
            if not found:
                continue
            medians, errors = _points(found.values(), scale)
            dashed = is_java(contestant) or place_of_variant > 0
            axes.errorbar(
                list(found), medians, yerr=errors,
                label=label(contestant) + (f", {variant}" if variant else ""), color=_colour(contestant),
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


def _log_y(axes) -> None:
    _log(axes.yaxis)


def _from_zero(axes) -> None:
    axes.set_ylim(bottom=0)


def _grid(columns: list, heading: str, x_label: str, rows: tuple, draw, legend_columns: int = 3, **size_of_one):
    """A column for each number of processes, of workers or query, with its heading; a row for each of the values (name,
    factor, label). Each is drawn by draw(axes, name, factor, of the column)."""
    figure, axes = _axes(len(columns), len(rows), **size_of_one)
    for column, of_column in enumerate(columns):
        for row, (value, scale, name) in enumerate(rows):
            one = axes[row][column]
            draw(one, value, scale, of_column)
            one.set_title(heading.format(of_column) if row == 0 else "")
            one.set_ylabel(name if column == 0 else "")
            one.set_xlabel(x_label if row == len(rows) - 1 else "")
    found = {}
    for one in axes.flat:
        handles, names = one.get_legend_handles_labels()
        found |= dict(zip(names, handles))
    figure.legend(found.values(), found.keys(), loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=legend_columns)
    return figure


def _by_processes(x: str, x_label: str, heading: str, values: tuple, scale_x):
    def picture(ms: Measurements):
        def draw(axes, value, scale, processes):
            _lines(axes, ms, value, scale, x, processes=processes)
            _log_y(axes)
            scale_x(axes, ms.parameter_values(x))

        return _grid(ms.parameter_values("processes"), heading, x_label, values, draw)

    return picture


def _kib_from_zero(axes, values) -> None:
    """Logarithmic, with a place for 0."""
    axes.set_xscale("symlog", base=2, linthresh=1024)
    axes.set_xticks(values, [f"{value // 1024}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())


def _single(x: str, x_label: str, value: tuple, scale_y, series=None, height: float = 3.4, legend_columns: int = 2):
    """One pair of axes; that of `x` is logarithmic."""

    def picture(ms: Measurements):
        def draw(axes, name, scale, _):
            _lines(axes, ms, name, scale, x, series)
            _log(axes.xaxis, ms.parameter_values(x), size if x.endswith("bytes") else None)
            scale_y(axes)

        return _grid([""], "", x_label, (value,), draw, legend_columns, width=6.4, height=height)

    return picture


def _bars(ms: Measurements, values=(_CPU, _TIME)):
    names = sorted(ms.contestants(), key=lambda name: ms.spread(values[0][0], name).median, reverse=True)
    hatched = " (hatched: in Java)" if any(map(is_java, names)) else ""
    figure, axes = _axes(2, width=5.0, height=0.9 + 0.3 * len(names))
    for one, (value, _, title) in zip(axes[0], values):
        spreads = [ms.spread(value, name) for name in names]
        medians, errors = _points(spreads, 1)
        bars = one.barh(
            [label(name) for name in names], medians, xerr=errors, color=[_colour(name) for name in names],
            error_kw=_ERROR_BARS, height=0.7,
        )  # fmt: skip
        for name, bar in zip(names, bars):
            if is_java(name):
                bar.set_hatch("///")
                bar.set_edgecolor("white")
        most = max(spread.most for spread in spreads)
        for row, spread in enumerate(spreads):
            one.text(spread.most + most * 0.02, row, number(spread.median), va="center", fontsize=8)
        one.set_xlim(0, most * 1.15)
        one.set_xlabel(title + hatched)
        one.grid(axis="y", visible=False)
        if one is not axes[0][0]:
            one.set_yticklabels([])
    return figure


def _bars_of_figures(ms: Measurements):
    return _bars(Measurements([one for one in ms.all if one.parameters["part"] == "pinned" or is_java(one.contestant)]))


def _groups_by_width(everything: Measurements):
    ms = Measurements([one for one in everything.all if one.parameters["part"] == "groups"])

    def draw(axes, value, scale, _):
        _lines(axes, ms, value, scale, "row_bytes")
        _from_zero(axes)

    values = (("cpu_ns_per_copy", 1, "CPU ns per row and copy"), ("rows_per_frame", 1, "rows per frame"))
    return _grid(("groups",), "{}", "width of a row", values, draw, width=4, height=2.6)


def _operators(everything: Measurements):
    """Fig. 8b: by groups, a column for each shape of the cluster and transport; below it joins, by probe rows for each build row."""
    evenly = Measurements([one for one in everything.all if one.parameters["part"] == "aggregation" and one.parameters["keys"] == "uniform"])
    joins = Measurements([one for one in everything.all if one.parameters["part"] == "join"])
    names = ("processes", "workers", "transport")
    columns = {f"{shape(at)}, {at['transport']}": at for at in everything.places(*names) if any(one.parameters.items() >= at.items() for one in everything.all)}

    def draw(axes, value, scale, column):
        if value == "ratio":
            _lines(axes, joins, "cpu_ns_per_row", scale, "ratio", **columns[column])
            axes.set_xticks(joins.parameter_values("ratio"), [f"1 : {ratio}" for ratio in joins.parameter_values("ratio")])
            _from_zero(axes)
            return
        _lines(axes, evenly, value, scale, "groups", **columns[column])
        groups = evenly.parameter_values("groups")
        _log(axes.xaxis, groups[:: max(1, len(groups) // 3)], "{:,}".format)
        _log_y(axes)

    values = (("cpu_ns_per_row", 1, "aggregation, CPU ns per row"), ("seconds", 1, "aggregation, s"), ("ratio", 1, "join, CPU ns per row"))
    x_label = "groups, in joins build rows : probe rows"
    return _grid(list(columns), "{}", x_label, values, draw, width=3.6, height=2.6)


def _bars_of_python(ms: Measurements):
    return _bars(ms, (("cpu_seconds", 1, "CPU seconds of both processes"), ("seconds", 1, "seconds")))


def _queries_by_workers(ms: Measurements):
    def draw(axes, value, scale, query):
        _lines(axes, ms, value, scale, "workers", query=query)
        axes.set_xticks(ms.parameter_values("workers"))
        _from_zero(axes)

    return _grid(ms.parameter_values("query"), "{}", "workers per process", _QUERY_VALUES, draw, width=3.2, height=2.3)


def _queries_side_by_side(ms: Measurements):
    """Bars: the queries of TPC-H, a column for each number of workers."""
    queries = sorted(ms.parameter_values("query"), key=lambda query: int(query.lstrip("q")))
    names = ms.contestants()
    width = 0.8 / max(1, len(names))

    def draw(axes, value, scale, workers):
        for place, name in enumerate(names):
            spreads = ms.spreads(value, name, "query", workers=workers)
            found = {i + (place + 0.5) * width - 0.4: spreads[q] for i, q in enumerate(queries) if q in spreads}
            medians, errors = _points(found.values(), scale)
            axes.bar(
                list(found), medians, width, yerr=errors, label=label(name), color=_colour(name), error_kw=_ERROR_BARS
            )
        axes.set_xticks(range(len(queries)), queries)
        axes.grid(axis="x", visible=False)

    return _grid(ms.parameter_values("workers"), "{} per process", "", _QUERY_VALUES, draw, width=5.2, height=2.3)


def _flink(ms: Measurements):
    """Bars: in times of Netty's, by shape; a column for each number of processors."""
    without = [(shape.replace(", ", ",\n"), shape, "") for shape in THROUGHPUT]
    with_ssl = [(f"{text},\nSSL", shape, "-ssl") for text, shape, _ in without]
    rows = (
        ("cpu_ns_per_record", [*without, (LATENCY, LATENCY, ""), *with_ssl], "CPU"),
        ("transport_ns_per_record", [*without, (LATENCY, LATENCY, ""), *with_ssl], "CPU of its threads"),
        ("records_per_second", [*without, *with_ssl], "records per second"),
        ("p50_us", [(LATENCY, LATENCY, "")], "p50 of the latency"),
    )

    def draw(axes, value, groups, processors):
        for place, carrier in enumerate(("shm", "tcp", "local")):
            found = {}
            for i, (_, shape, ssl) in enumerate(groups):
                where = {"shape": shape, "processors": processors}
                one = ms.compare(value, f"flink-netty{ssl}", f"flink-{carrier}{ssl}", **where)
                if one:
                    found[i + place * 0.27 - 0.27] = one
            if not found:
                continue
            ratios = [one.ratio for one in found.values()]
            errors = [[one.ratio - one.least for one in found.values()], [one.most - one.ratio for one in found.values()]]
            name = f"flink-{carrier}"
            bars = axes.bar(
                list(found), ratios, 0.25, yerr=errors, label=label(name), color=_colour(name), error_kw=_ERROR_BARS
            )
            axes.bar_label(bars, [f"{ratio:.2f}" for ratio in ratios], fontsize=6, padding=1)
        axes.axhline(1, color="#c8374a", linewidth=1)
        axes.set_xticks(range(len(groups)), [text for text, _, _ in groups], fontsize=6)
        axes.grid(axis="x", visible=False)

    heading = "{} of the machine's processors; 1 is Netty"
    return _grid(ms.parameter_values("processors"), heading, "", rows, draw, width=5.6, height=2.2)


def _flink_jobs(ms: Measurements):
    """Bars: in times of Netty's, by query; a column for each mode."""
    places = flink_jobs.places(ms)
    values = (
        ("cpu_seconds_per_query", None, "CPU time"),
        ("seconds", None, "time"),
        ("transport_share", None, "share of Netty's threads"),
    )

    def draw(axes, value, _, mode):
        queries = [place for place in places if place["mode"] == mode]
        if value == "transport_share":
            axes.bar(range(len(queries)), [flink_jobs.transport_share(ms, one) for one in queries], color="#c8374a")
        else:
            found = [flink_jobs.beside_netty(ms, value, one) for one in queries]
            errors = [[one.ratio - one.least for one in found], [one.most - one.ratio for one in found]]
            ratios = [one.ratio for one in found]
            axes.bar(range(len(queries)), ratios, yerr=errors, color=_colour("flink-shm"), error_kw=_ERROR_BARS)
            axes.axhline(1, color="#c8374a", linewidth=1)
        axes.set_xticks(range(len(queries)), [flink_jobs.name(one) for one in queries], fontsize=6, rotation=60)
        axes.grid(axis="x", visible=False)

    modes = list(dict.fromkeys(place["mode"] for place in places))
    return _grid(modes, "{}; query on TaskManagers; 1 is Netty", "", values, draw, width=5.6, height=2.2)


def _by_workers(*values):
    return _by_processes("workers", "workers per process", "{} processes", values, Axes.set_xticks)


_PICTURES = {
    "workers": _by_workers(("seconds", 1, "seconds"), _CPU),
    "guest": _by_workers(_TIME, _CPU),  # in Java with more rows
    "threshold": _by_processes(
        "threshold_bytes", "threshold in KiB", "{} processes × 2 workers", (_TIME, _CPU), _kib_from_zero
    ),
    "row-width": _single("row_bytes", "width of a row", _RATE_OF_NODE, _log_y),
    "messages": _single("message_bytes", "size of a message", ("bytes_per_second", 1e-9, "GB/s"), _log_y),
    "patterns": _single("processes", "nodes", _RATE_OF_NODE, _log_y, ("pattern", ("repartition", "broadcast"))),
    "connect": _single("processes", "nodes of two workers", _CONNECT, _from_zero, height=3.2, legend_columns=3),
    "queries": _queries_by_workers,
    "queries-tpch": _queries_side_by_side,
    "peers": _bars,
    "figures": _bars_of_figures,
    "multiplexer": _groups_by_width,
    "operators": _operators,
    "python": _bars_of_python,
    "flink": _flink,
    "flink-jobs": _flink_jobs,
}
