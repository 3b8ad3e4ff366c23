"""An aggregation whose table is chosen by itself, beside the best choice that could have been made: every fixed table, none, a tree."""

from statistics import median
from typing import NamedTuple

from measurement import Comparison, Measurements
from operator_ways import AUTOMATIC, CHOICES

VALUE = "cpu_ns_per_row"


class BesideBest(NamedTuple):
    """How many times what the `best` choice takes the automatic table does."""

    best: str
    times: Comparison


def beside_best(ms: Measurements, **place) -> BesideBest | None:
    """Even laps say which choice is the best, and odd ones how it compares: who happened to be fast is not chosen for it. A single
    lap says both. None if the place was not measured."""
    laps = sorted({one.lap for one in ms.of(AUTOMATIC, **place)})
    choosing, comparing = [lap for lap in laps if lap % 2 == 0], [lap for lap in laps if lap % 2 == 1]
    of_choices = {}
    for choice in CHOICES:
        found = [one.values[VALUE] for one in ms.of(choice, **place) if one.lap in choosing]
        if found:
            of_choices[choice] = median(found)
    if not of_choices:
        return None
    best = min(of_choices, key=of_choices.get)
    compared = Measurements([one for one in ms.all if one.lap in (comparing or choosing)])
    times = compared.compare(VALUE, best, AUTOMATIC, **place)
    return times and BesideBest(best, times)


_OF_A_PLACE = ("processes", "workers", "transport", "keys", "exponent", "groups")


def places(ms: Measurements) -> list[dict]:
    """Each at which the automatic table was measured, by shape of the cluster, transport, keys and number of groups."""
    found = {}
    for one in ms.of(AUTOMATIC, part="aggregation"):
        at = {name: one.parameters[name] for name in _OF_A_PLACE if name in one.parameters}
        found[tuple(at.items())] = at
    return sorted(found.values(), key=_order)


def _order(at: dict) -> tuple:
    return at["processes"], at["workers"], at["transport"], at["keys"] != "uniform", at["keys"], at.get("exponent", 0), at["groups"]


def keys_text(at: dict) -> str:
    return f"{at['keys']} {at.get('exponent', '')}".strip()
