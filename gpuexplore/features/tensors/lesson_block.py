"""The quantities of the block `tensor` of a lesson: where its elements lie, whether it is a view, what it costs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import hypot
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import BANDWIDTH, PLAIN, SIZE, TIME, WRONG, Dimension, LessonFigure, QuantityRow, exact
from gpuexplore.analysis.verdict.times import Doubt, doubts_of, doubts_of_both
from gpuexplore.core import Device, Flag, InvalidInput, Origin, decode, widened
from gpuexplore.features.tensors.analysis.evaluate import StepRefused, evaluate
from gpuexplore.features.tensors.analysis.reading import ITEMSIZE_BYTES, LAYOUTS, WAYS, activity_of


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
    view = chain.result
    kind = "view" if chain.is_view else "copy"
    whole: dict[str, LessonFigure | str] = {
        "kind": "result" if chain.steps[-1].kind == "result" else kind,
        "index": exact(float(view.offset)),
        "bytes": exact(float(view.element_count * ITEMSIZE_BYTES), SIZE),
    }
    if values := chain.values_of(view):
        whole["figure"] = exact(values[0])
    yield QuantityRow({"of": block.id}, whole)
    for axis, (length, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        yield QuantityRow(
            {"of": block.id, "name": str(axis)}, {"stride": exact(float(stride)), "length": exact(float(length))}
        )


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
            rates = sorted(reading["bytes_per_s"] * reading["median_s"] / end for end in ends)
            figures = {
                "time": _figure(reading["median_s"], ends, TIME, doubts=doubts),
                "bandwidth": _figure(reading["bytes_per_s"], rates, BANDWIDTH, doubts=doubts),
            }
            yield QuantityRow(_labels(block, way, source), figures)
        ratio = payload["ratios"][way]
        ends = _widened(ratio["median"], ratio["ci95"], doubts_of_both(flags, flags))
        yield QuantityRow(_labels(block, way, "factor"), {"figure": _figure(ratio["median"], ends, doubts=doubts)})


def _labels(block: Any, way: str, source: str) -> Mapping[str, str]:
    return {"of": block.id, "name": way, "source": source}


def _widened(value: float, ends: Any, doubts: Sequence[Doubt]) -> tuple[float, float]:
    """Return an interval with what is doubted of it."""
    return widened(tuple(ends or (value, value)), value, hypot(*(doubt.deviation for doubt in doubts)))


def _figure(value: float, ends: Any, dimension: Dimension = PLAIN, *, doubts: Iterable[str]) -> LessonFigure:
    low, high = ends
    return LessonFigure(value, low, high, dimension, sources=frozenset({Origin.LIVE.label}), doubts=frozenset(doubts))


def rehearsed_rows(block: Any) -> Iterator[QuantityRow]:
    """Yield the rows that a reading has, with made-up figures."""
    for way in WAYS:
        for source in LAYOUTS:
            figures = {"time": exact(1.0, TIME), "bandwidth": exact(1.0, BANDWIDTH)}
            yield QuantityRow(_labels(block, way, source), figures)
        yield QuantityRow(_labels(block, way, "factor"), {"figure": exact(1.0)})
