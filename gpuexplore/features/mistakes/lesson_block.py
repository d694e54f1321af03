"""The quantities of the block `mistake` of a lesson: the wrong and the right figure, and their ratio."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import BANDWIDTH, PLAIN, RATE, TIME, Dimension, LessonFigure, QuantityRow, Style, exact
from gpuexplore.core import Device, decode
from gpuexplore.features.mistakes.catalog import MistakeObservation, Quantity, activity_of, mistake_named

# What a lesson calls the quantities of a mistake.
QUANTITY_OF: Mapping[Quantity, tuple[str, Dimension]] = {
    "time": ("time", TIME),
    "compute rate": ("rate", RATE),
    "memory rate": ("bandwidth", BANDWIDTH),
    "share": ("share", PLAIN),
    "error": ("error", PLAIN),
    "count": ("figure", PLAIN),
    "ratio": ("figure", PLAIN),
    "sum": ("figure", PLAIN),
}


def activity(block: Any, _devices: Sequence[Device]) -> Activity:
    """Return the work that makes the mistake of a block."""
    return activity_of(block.mistake)


def measured_rows(block: Any, payload: Payload) -> Iterator[QuantityRow]:
    """Yield the wrong and the right figure of a mistake, and their ratio, which was taken round by round."""
    seen = decode(MistakeObservation, payload)
    name, dimension = QUANTITY_OF[seen.quantity]
    style: Style = "percent" if seen.quantity == "share" else "number"
    sources = frozenset({seen.origin})
    for source, reading in (("wrong", seen.wrong), ("right", seen.right)):
        if reading.value is not None:
            low, high = reading.ci95 or (reading.value, reading.value)
            figure: LessonFigure | str = LessonFigure(reading.value, low, high, dimension, style, sources)
        else:
            figure = seen.words(reading)
        yield QuantityRow({"of": block.id, "source": source}, {name: figure})
    if seen.factor:
        low, high = seen.factor.ci95 or (seen.factor.ratio, seen.factor.ratio)
        yield QuantityRow(
            {"of": block.id, "source": "factor"},
            {"figure": LessonFigure(seen.factor.ratio, low, high, sources=sources)},
        )


def rehearsed_rows(block: Any) -> Iterable[QuantityRow]:
    """Yield the rows that a mistake has, with made-up figures."""
    name, dimension = QUANTITY_OF[mistake_named(block.mistake).quantity]
    for source in ("wrong", "right"):
        yield QuantityRow({"of": block.id, "source": source}, {name: exact(1.0, dimension)})
    yield QuantityRow({"of": block.id, "source": "factor"}, {"figure": exact(1.0)})
