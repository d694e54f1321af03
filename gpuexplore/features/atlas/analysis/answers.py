"""The answers of the atlas to Python: points, or GPUs ranked for a call, as values and as data frames.

The predicted lines of the atlas: one shape, smaller and larger in the axes that its operation grows in.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.prediction.request import PredictionRequest, calls_named
from gpuexplore.analysis.what_if.summary import named_numbers
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.core import Device, InvalidInput, Result, Shape
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.features.atlas.analysis import AtlasPoint, Citation, citations, points
from gpuexplore.features.atlas.analysis.which_gpu import GpuChoice, ranked, usual_devices, which_gpu
from gpuexplore.hardware import ACCELERATORS, target_named
from gpuexplore.operations import operation_named
from gpuexplore.recorded import recorded_results
from gpuexplore.request import Request, shapes_of
from gpuexplore.shapes import split

if TYPE_CHECKING:
    import pandas as pd
from collections.abc import Callable
from functools import cache

from gpuexplore.analysis.prediction import Prediction
from gpuexplore.core import Case


@dataclass(frozen=True, slots=True)
class LinePoint:
    """A predicted call on a line; its prediction has a time.

    Attributes:
        prediction: of the call.
        work: as of a measured point.
    """

    prediction: Prediction
    work: int

    def rate(self, time_s: float) -> float:
        """Return the work a second where a call takes `time_s`."""
        return self.work / time_s

    def share(self, time_s: float) -> float | None:
        """Return the fraction of the peak that decides where a call takes `time_s`, as of a measured point."""
        case = self.prediction.case
        device = self.prediction.device
        peak = self.prediction.peak
        contract = operation_named(case.operation)
        byte_count = contract.byte_count(case.shape, format_named(case.dtype))
        compute_s = contract.flop_count(case.shape) / peak.flop_per_s if contract.is_matrix_product and peak else 0.0
        memory_s = byte_count / device.bandwidth.bytes_per_s if device.bandwidth else 0.0
        in_cache = device.cache_bytes is not None and byte_count <= device.cache_bytes
        if in_cache and compute_s < memory_s:
            return None
        return max(compute_s, memory_s) / time_s or None


def work_of(operation: str, dtype: str) -> Callable[[Shape], int]:
    """Return what gives a shape's work: FLOPs of a product, bytes of any other operation."""
    contract = operation_named(operation)
    if contract.is_matrix_product:
        return contract.flop_count
    row = format_named(dtype)
    return lambda shape: contract.byte_count(shape, row)


def line(predictions: Iterable[Prediction]) -> tuple[LinePoint, ...]:
    """Return a point for each prediction, without those of which nothing can be said."""
    return tuple(
        LinePoint(each, work_of(each.case.operation, each.case.dtype)(each.case.shape))
        for each in predictions
        if each.time_s
    )


def case_of(operation: str, shape: Shape, dtype: str, device: Device) -> Case:
    """Return a call as the device's vendor's library makes it: what is predicted."""
    return Case(operation, shape, dtype, operation_named(operation).vendor_library.name, device.id)


@cache
def _growing_axes(operation: str) -> frozenset[str]:
    """Return the axes that follow the size of an operation, such as ``s`` of an attention."""
    small, large = (dict(operation_named(operation).shape_of_size(size).axes) for size in (64, 128))  # any two sizes do
    return frozenset(axis for axis, length in large.items() if length != small[axis])


def _grown(operation: str, shape: Shape, factor: float) -> Shape:
    """Return `shape` with its growing axes multiplied by `factor`, each from 1 to the operation's limit."""
    limits = operation_named(operation).limits
    growing = _growing_axes(operation)
    return Shape(
        tuple(
            (axis, min(limits[axis], max(1, round(length * factor))) if axis in growing else length)
            for axis, length in shape.axes
        )
    )


def shapes_between(
    operation: str, shape: Shape, dtype: str, ends: tuple[float, float], *, count: int
) -> tuple[Shape, ...]:
    """Return at most `count` shapes, each once, from the work `ends[0]` to `ends[1]`, in the proportions of `shape`.

    Args:
        operation: its name.
        shape: any of the line.
        dtype: of its arrays.
        ends: work at the ends of the line; it ends before where an axis reaches the limit of the operation.
        count: at least 2.
    """
    contract = operation_named(operation)
    work = work_of(operation, dtype)
    most = min(contract.limits[axis] / shape[axis] for axis in _growing_axes(operation))
    low, high = (_factor(lambda factor: work(_grown(operation, shape, factor)), end, most) for end in ends)
    steps = (low * (high / low) ** (i / (count - 1)) for i in range(count))
    found = dict.fromkeys(_grown(operation, shape, step) for step in steps)
    return tuple(each for each in found if contract.problem(each) is None)


def _factor(work_at: Callable[[float], float], work: float, most: float) -> float:
    """Return the factor at which the work is reached, `most` at the most."""
    low = 2.0**-24
    high = most
    for _ in range(40):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if work_at(middle) < work else (low, middle)
    return high


EXAMPLE = "t4=0.35"  # of a price

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Atlas:
    """The measurements of the atlas, as a sequence of points."""

    points: tuple[AtlasPoint, ...]

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The sources of the points, each collection once."""
        return citations(self.points)

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per point, SI base units; unknown is missing."""
        return _frame([point_row(point) for point in self.points])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `gpuexplore atlas OPERATION --json` prints."""
        return {
            "points": [point_row(point) | {"shape": dict(point.shape.axes)} for point in self.points],
            "sources": [citation_row(citation) for citation in self.citations],
        }

    def __iter__(self) -> Iterator[AtlasPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        gpus = {point.spec_key for point in self.points}
        return f"<{len(self)} measurements on {len(gpus)} GPUs from {len(self.citations)} sources>"


@dataclass(frozen=True, slots=True, repr=False)
class Ranking:
    """GPUs for one call, from the best to the worst: its choices, one after the other."""

    choices: tuple[GpuChoice, ...]

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per GPU and dtype, SI base units; unknown is missing."""
        return _frame([choice_row(choice) for choice in self.choices])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `gpuexplore atlas OPERATION --which --json` prints."""
        return {"choices": [choice_row(choice) | {"shape": dict(choice.layer.shape.axes)} for choice in self.choices]}

    def __iter__(self) -> Iterator[GpuChoice]:
        return iter(self.choices)

    def __len__(self) -> int:
        return len(self.choices)

    def __repr__(self) -> str:
        best = self.choices[0].device.title if self.choices else "none"
        return f"<{len(self)} GPUs ranked, the first is {best}>"


def _frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows).convert_dtypes()


# Points and choices as flat rows for JSON, CSV and data frames: units in the columns' names, unknown is None.


def point_row(point: AtlasPoint) -> Row:
    """Return a point as a row; its shape as text."""
    return {
        "gpu": point.device.title,
        "spec_key": point.spec_key,
        "operation": point.operation,
        "shape": str(point.shape),
        "dtype": point.dtype,
        "implementation": point.implementation,
        "time_s": point.time_s,
        "calls": point.calls,
        "flop_count": point.flop_count,
        "byte_count": point.byte_count,
        "flop_per_s": point.flop_per_s,
        "bytes_per_s": point.bytes_per_s,
        "bound": point.bound,
        "mfu": point.mfu,
        "bandwidth_utilization": point.bandwidth_utilization,
        "origin": point.origin,
        "conditions": point.conditions,
        "source": point.citation.name,
        "licence": point.citation.licence,
        "url": point.url,
        "run": point.run_id,
    }


def choice_row(choice: GpuChoice) -> Row:
    """Return a choice as a row; its shape as text."""
    found = choice.found
    listed = choice.listed
    time = choice.time
    return {
        "gpu": choice.device.title,
        "spec_key": choice.device.spec_key,
        "operation": choice.layer.operation,
        "shape": str(choice.layer.shape),
        "dtype": found.dtype,
        "support": found.support,
        "reason": found.reason,
        "time_s": time and time.value,
        "low_s": time and time.low,
        "high_s": time and time.high,
        "origin": found.origin and found.origin.value,
        "basis": found.basis or None,
        "url": choice.point and choice.point.url,
        "flop_per_s": choice.flop_per_s,
        "bytes_per_s": choice.bytes_per_s,
        "mfu": found.mfu,
        "energy_j": found.energy_j,
        "memory_needed_bytes": found.memory_bytes,
        "memory_bytes": choice.device.memory_bytes,
        "fits": found.fits,
        "price_per_hour": choice.price_per_hour,
        "price_source": listed and f"{listed.provider}, {listed.read_on}, {listed.page}",
        "cost_of_million": choice.cost_of_million,
    }


def citation_row(citation: Citation) -> Row:
    """Return a citation as a row."""
    return {
        "source": citation.name,
        "licence": citation.licence,
        "citation": citation.text,
        "how": citation.how,
        "url": citation.url,
    }


# What a person asks of the atlas, in the texts they type, on the command line and from Python.


def points_asked(operation: str | None, gpus: str = "", dtypes: str = "", source: str = "") -> tuple[AtlasPoint, ...]:
    """Return the points that are asked for; an empty text stands for all.

    Args:
        operation: its name; None for every one.
        gpus: names or keys of the table of accelerators, separated by commas.
        dtypes: formats of FORMATS, separated by commas.
        source: the name of a collection, as `citations` has it.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    keys = [target_named(name, ()).id for name in _some("gpu", gpus, "names and keys of `specs`")]
    found = points(operation, keys, [format_named(name).name for name in _some("dtype", dtypes, FORMATS)])
    if not source:
        return found
    names = {citation.name.casefold(): citation.name for citation in citations(points())}
    if source.strip().casefold() not in names:
        raise InvalidInput.of("source", source, names.values())
    return tuple(point for point in found if point.citation.name == names[source.strip().casefold()])


def choices_asked(
    question: PredictionRequest,
    here: Iterable[Device],
    own: Sequence[Result] = (),
    *,
    by: str = "time",
    prices: str = "",
) -> tuple[GpuChoice, ...]:
    """Return what one call takes on the GPUs that are asked for, from the best to the worst.

    Args:
        question: one shape, in one or several dtypes; no GPU stands for those that were measured or have a price.
        here: this machine's devices, a CPU with its ceilings.
        own: results of this machine, which come before all others.
        by: a key of ORDERS.
        prices: of an hour, by a device's key or id, like ``t4=0.35,l4=0.8``; they replace those of the lists.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    operation = operation_named(question.operation)
    known_here = tuple(here)
    dtypes = list(dict.fromkeys(format_named(name).name for name in _some("dtype", question.dtypes, FORMATS)))
    asked = _some("gpu", question.gpus, "names and keys of `specs`")
    devices = tuple(dict.fromkeys(target_named(name, known_here) for name in asked)) or usual_devices()
    names = {row.key for row in ACCELERATORS} | {device.id for device in devices}
    entered, problems = named_numbers("price", prices, names, EXAMPLE)
    if problems:
        raise InvalidInput("\n".join(problems))
    recorded = tuple(result for _, result in recorded_results())
    calls = calls_named(question.calls)
    known = Known(calibrate(own), measured=own, recorded=recorded, prices_per_hour=entered, calls=calls)
    shape = _shape(question)
    found = (which_gpu(operation.name, shape, dtype, devices=devices, known=known) for dtype in dtypes)
    return ranked((choice for choices in found for choice in choices), by)


def _some(what: str, text: str, accepted: Iterable[str] | str) -> tuple[str, ...]:
    """Return the values of a list; none for an empty text.

    Raises:
        InvalidInput: the text is not empty and has no value.
    """
    words = split(text)
    if text and not words:
        raise InvalidInput.of(what, text, accepted)
    return words


def _shape(question: PredictionRequest) -> Shape:
    if not question.sizes and not question.shapes:
        raise InvalidInput("no size and no shape: give a size like 4096, or exact axes")
    operation = operation_named(question.operation)
    shapes = shapes_of(Request(operation.name, sizes=question.sizes, shapes=question.shapes), operation, measured=False)
    if len(shapes) > 1:
        raise InvalidInput(f"{len(shapes)} shapes: GPUs are ranked for one")
    return shapes[0]
