"""One measurement, and what several of them say together."""

from dataclasses import dataclass, field
from itertools import product
from statistics import median


@dataclass
class Measurement:
    """What one run of one contestant took. `verified` is None where a tool checks nothing itself."""

    contestant: str
    parameters: dict
    lap: int
    command: str
    values: dict = field(default_factory=dict)  # by name, with the unit in it: cpu_ns_per_hop
    count: int | None = None
    checksum: str | None = None
    verified: bool | None = None


@dataclass(frozen=True)
class Spread:
    """The median of a few values, and the least and the greatest."""

    median: float
    least: float
    most: float
    count: int

    @staticmethod
    def of(values: list[float]) -> "Spread":
        if not values:
            raise ValueError("no values")
        return Spread(median(values), min(values), max(values), len(values))


@dataclass(frozen=True)
class Comparison:
    """How many times more `other` takes than `one`: the median of the laps' ratios, and their range.

    The laps are interleaved, so that what disturbs the machine disturbs both."""

    ratio: float
    least: float
    most: float

    @property
    def clear(self) -> bool:
        """All laps agree on who takes less."""
        return self.least > 1 or self.most < 1


class Measurements:
    """Those of one experiment."""

    def __init__(self, measurements: list[Measurement]):
        self.all = measurements

    def contestants(self) -> list[str]:
        return list(dict.fromkeys(one.contestant for one in self.all))

    def of(self, contestant: str, **parameters) -> list[Measurement]:
        """Those with these values of the parameters, whatever the others are."""
        return [
            one
            for one in self.all
            if one.contestant == contestant
            and all(one.parameters.get(name) == value for name, value in parameters.items())
        ]

    def parameter_values(self, name: str) -> list:
        return sorted({one.parameters[name] for one in self.all if name in one.parameters})

    def places(self, *names: str) -> list[dict]:
        """Each value of the first parameter with each of the next."""
        return [dict(zip(names, values)) for values in product(*map(self.parameter_values, names))]

    def spread(self, value: str, contestant: str, **parameters) -> Spread | None:
        """None if there is no such measurement."""
        values = [one.values[value] for one in self.of(contestant, **parameters) if value in one.values]
        return Spread.of(values) if values else None

    def spreads(self, value: str, contestant: str, by: str, **parameters) -> dict:
        """By each value of the parameter `by` at which there is such a measurement, from least to most."""
        found = {at: self.spread(value, contestant, **parameters, **{by: at}) for at in self.parameter_values(by)}
        return {at: spread for at, spread in found.items() if spread}

    def compare(self, value: str, one: str, other: str, **parameters) -> Comparison | None:
        """Of the same lap, and the same round where a run has several. None if one of them was not measured."""
        by_round = {_round(m): m.values[value] for m in self.of(one, **parameters) if m.values.get(value)}
        ratios = [
            m.values[value] / by_round[_round(m)]
            for m in self.of(other, **parameters)
            if _round(m) in by_round and value in m.values
        ]
        if not ratios:
            return None
        return Comparison(median(ratios), min(ratios), max(ratios))


def _round(measurement: Measurement) -> tuple:
    return measurement.lap, measurement.parameters.get("round", 0)
