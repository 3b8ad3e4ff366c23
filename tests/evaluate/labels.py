"""How contestants and values are called in text and pictures."""

from delivery import LABELS as DELIVERY_LABELS
from experiments import CONTESTANTS
from faro import LABELS as ROW_LABELS
from flink_jobs import LABELS as FLINK_JOBS_LABELS
from guest import LABELS as GUEST_LABELS
from operator_ways import LABELS as OPERATOR_LABELS
from queries import LABELS as QUERIES_LABELS

_LABELS = {**ROW_LABELS, **DELIVERY_LABELS, **GUEST_LABELS, **OPERATOR_LABELS, **QUERIES_LABELS, **FLINK_JOBS_LABELS}  # of those that are measured in one run with others


def label(contestant: str) -> str:
    if contestant in CONTESTANTS:
        return CONTESTANTS[contestant].label
    return _LABELS.get(contestant, contestant)


def is_java(contestant: str) -> bool:
    return contestant.startswith(("java-", "aeron-"))


def number(value: float) -> str:
    """With three digits that mean something."""
    if value == 0:
        return "0"
    digits = 3 - sum(abs(value) >= bound for bound in (1, 10, 100))
    return f"{value:,.{digits}f}"


def shape(parameters: dict) -> str:
    """4 × 2: processes, workers of each."""
    return f"{parameters['processes']} × {parameters['workers']}"


def size(count: int) -> str:
    """Bytes, in the largest unit that divides them."""
    if count > 0 and count % 2**20 == 0:
        return f"{count // 2**20} MiB"
    return f"{count // 1024} KiB" if count > 0 and count % 1024 == 0 else f"{count} B"
