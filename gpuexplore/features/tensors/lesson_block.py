"""The quantities of the block `tensor` of a lesson: where its elements lie, whether it is a view, what it costs."""

from collections.abc import Iterator, Mapping, Sequence
from math import hypot
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import BANDWIDTH, PLAIN, SIZE, TIME, WRONG, Dimension, LessonFigure, QuantityRow, exact
from gpuexplore.analysis.verdict.times import Doubt, doubts_of, doubts_of_both
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Device, Flag, Origin
from gpuexplore.core.serialization import decode
from gpuexplore.core.statistics import widened
from gpuexplore.features.tensors.analysis import Chain, StepRefused, evaluate
from gpuexplore.features.tensors.analysis.reading import activity_of

ITEMSIZE_BYTES = 4
LAYOUTS = ("contiguous", "strided")
WAYS = ("loop", "copy")  # as `gpuexplore.features.tensors.measure` names them, which loads torch


def rows(block: Any) -> Iterator[QuantityRow]:
    """Yield what arithmetic says of a tensor: of the whole, then of each axis by its number.

    Raises:
        InvalidInput: the expression is not of the grammar; a step that torch refuses is a figure, not an error.
    """
    try:
        chain = evaluate(block.expression)
    except StepRefused as error:
        yield QuantityRow({"of": block.id}, {"kind": "refused"}, str(error))
        return
    yield QuantityRow({"of": block.id}, _whole(chain))
    for axis, (length, stride) in enumerate(zip(chain.shape, chain.strides, strict=True)):
        yield QuantityRow(
            {"of": block.id, "name": str(axis)}, {"stride": exact(float(stride)), "length": exact(float(length))}
        )


def _whole(chain: Chain) -> Mapping[str, LessonFigure | str]:
    found: dict[str, LessonFigure | str] = {
        "kind": _kind(chain),
        "index": exact(float(chain.offset)),
        "bytes": exact(float(chain.result.element_count * ITEMSIZE_BYTES), SIZE),
    }
    values = chain.values
    return found | ({"figure": exact(values[0])} if values else {})


def _kind(chain: Chain) -> str:
    """Return whether the result looks at the storage its chain began with."""
    if chain.steps[-1].kind == "result":
        return "result"
    return "view" if chain.is_view else "copy"


def activity(block: Any, devices: Sequence[Device]) -> Activity:
    """Return the work that measures what reading a tensor costs.

    Raises:
        InvalidInput: it cannot be read: it is refused, has no axis, or is too large.
    """
    work = activity_of(evaluate(block.expression).result, devices[0].id)
    if work is None:
        raise InvalidInput.of("tensor to read", block.expression, "tensors of 1 to 4 axes and up to 2^25 elements")
    return work


def measured_rows(block: Any, payload: Payload) -> Iterator[QuantityRow]:
    """Yield the times of both ways to read, contiguous and strided, and their ratios, taken round by round."""
    for way in WAYS:
        doubts: set[str] = set()
        flags: list[Flag] = []
        for source in LAYOUTS:
            reading = payload["readings"][f"{way} {source}"]
            found = [decode(Flag, flag) for flag in reading["flags"]]
            flags += found
            doubts |= WRONG.intersection(flag.name for flag in found)
            ends = _widened(reading["median_s"], reading["ci95_s"], doubts_of(found))
            yield QuantityRow(_labels(block, way, source), _reading(reading, ends, frozenset(doubts)))
        ratio = payload["ratios"][way]
        ends = _widened(ratio["median"], ratio["ci95"], doubts_of_both(flags, flags))
        factor = _figure(ratio["median"], ends, doubts=frozenset(doubts))
        yield QuantityRow(_labels(block, way, "factor"), {"figure": factor})


def _labels(block: Any, way: str, source: str) -> Mapping[str, str]:
    return {"of": block.id, "name": way, "source": source}


def _widened(value: float, ends: Any, doubts: Sequence[Doubt]) -> tuple[float, float]:
    """Return an interval with what is doubted of it."""
    return widened(tuple(ends or (value, value)), value, hypot(*(doubt.deviation for doubt in doubts)))


def _reading(
    reading: Mapping[str, Any], ends: tuple[float, float], doubts: frozenset[str]
) -> Mapping[str, LessonFigure | str]:
    moved = reading["bytes_per_s"] * reading["median_s"]
    rates = sorted(moved / end for end in ends)
    return {
        "time": _figure(reading["median_s"], ends, TIME, doubts=doubts),
        "bandwidth": _figure(reading["bytes_per_s"], rates, BANDWIDTH, doubts=doubts),
    }


def _figure(value: float, ends: Any, dimension: Dimension = PLAIN, *, doubts: frozenset[str]) -> LessonFigure:
    low, high = ends or (value, value)
    return LessonFigure(value, low, high, dimension, sources=frozenset({Origin.LIVE.label}), doubts=doubts)


def rehearsed_rows(block: Any) -> Iterator[QuantityRow]:
    """Yield the rows that a reading has, with made-up figures."""
    for way in WAYS:
        for source in LAYOUTS:
            figures = {"time": exact(1.0, TIME), "bandwidth": exact(1.0, BANDWIDTH)}
            yield QuantityRow({"of": block.id, "name": way, "source": source}, figures)
        yield QuantityRow({"of": block.id, "name": way, "source": "factor"}, {"figure": exact(1.0)})
