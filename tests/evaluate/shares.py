"""What a query over sockets and one over Faro have to do with each other."""

from measurement import Measurements, Spread

Place = dict  # the parameters of a query at one number of workers

FARO, SOCKETS = "sql-faro", "sql-sockets"


def place_of(ms: Measurements, value: str, query: str) -> Place | None:
    """Where the query takes least of the value over sockets; None if it was not measured over both."""
    found = [
        (sockets.median, workers)
        for workers, sockets in ms.spreads(value, SOCKETS, "workers", query=query).items()
        if ms.compare(value, FARO, SOCKETS, query=query, workers=workers)
    ]
    return {"query": query, "workers": min(found)[1]} if found else None


def share(ms: Measurements, contestant: str, place: Place) -> float | None:
    """The median of the shuffle's share in the query's CPU time; None if it was not seen."""
    spread = ms.spread("shuffle_share", contestant, **place)
    return spread.median if spread else None


def gain(ms: Measurements, value: str, place: Place) -> Spread:
    """Which part of what it takes over sockets a query does not take over Faro; negative: it takes more."""
    ratios = ms.compare(value, FARO, SOCKETS, **place)
    return Spread(1 - 1 / ratios.ratio, 1 - 1 / ratios.least, 1 - 1 / ratios.most, 0)


def most_shuffling(ms: Measurements) -> str | None:
    """The query with the largest share of the shuffle over sockets; None if a query's was not seen."""
    places = (place_of(ms, "cpu_seconds_per_query", query) for query in ms.parameter_values("query"))
    found = [(share(ms, SOCKETS, place), place["query"]) for place in places if place is not None]
    return max(found)[1] if found and all(part is not None for part, _ in found) else None
