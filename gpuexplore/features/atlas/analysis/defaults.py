"""The default part of the atlas: what most was measured of."""

from collections import Counter
from collections.abc import Collection, Sequence

from gpuexplore.analysis.prediction.calls import CALLS, USUAL_CALLS, Calls
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.core.model import Shape
from gpuexplore.core.once import once
from gpuexplore.features.atlas.analysis.points import AtlasPoint, points
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import OPERATIONS, operation_named

USUAL_GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb", "l4", "t4")  # of an operation without measurements
MOST_GPUS = 4
MUCH = 0.75  # of the shapes have less work


@once
def measured_operations() -> dict[str, int]:
    """Return how many points each operation has, the most measured first."""
    counts = Counter(point.operation for point in points())
    return {name: counts[name] for name in sorted(OPERATIONS, key=lambda name: -counts[name])}


@once
def measured_gpus(operation: str) -> dict[str, int]:
    """Return how many points of an operation each GPU of the table has, the most measured first."""
    counts = Counter(point.spec_key for point in points(operation))
    return {row.key: counts[row.key] for row in sorted(ACCELERATORS, key=lambda row: -counts[row.key])}


@once
def dtypes_of(operation: str) -> tuple[str, ...]:
    """Return the formats that an operation has a meaning in."""
    contract = operation_named(operation)
    return tuple(name for name in FORMATS if contract.unsupported(format_named(name)) is None)


@once
def usual_dtype(operation: str) -> str:
    """Return the dtype of which most was measured."""
    counts = Counter(point.dtype for point in points(operation))
    return max(counts, key=lambda name: counts[name], default="fp32")


@once
def usual_gpus(operation: str, dtypes: tuple[str, ...]) -> tuple[str, ...]:
    """Return the most measured GPU of each architecture, the newest architectures first."""
    counts = Counter(point.spec_key for point in points(operation, dtypes=dtypes))
    best: dict[str, str] = {}
    for row in sorted(ACCELERATORS, key=lambda row: (-counts[row.key], -(row.release_year or 0))):
        if counts[row.key]:
            best.setdefault(row.architecture, row.key)
    years = {row.key: row.release_year or 0 for row in ACCELERATORS}
    return tuple(sorted(best.values(), key=lambda key: -years[key])[:MOST_GPUS]) or USUAL_GPUS


def usual_shape(operation: str, of: Sequence[AtlasPoint]) -> Shape:
    """Return the shape that most of these points' GPUs have in common, of several one with much work."""
    gpus = Counter(shape for shape, *_ in {(point.shape, point.spec_key, point.dtype) for point in of})
    if not gpus:
        contract = operation_named(operation)
        return contract.shape_of_size(contract.default_sizes[-1])
    works = {point.shape: point.work for point in of}
    shared = sorted((shape for shape in gpus if gpus[shape] == max(gpus.values())), key=works.__getitem__)
    return shared[int(MUCH * len(shared))]


def usual_calls(of: Collection[AtlasPoint]) -> Calls:
    """Return how most of these points' calls followed one another."""
    counts = Counter(point.calls for point in of)
    return max(CALLS, key=lambda name: (counts[name], name == USUAL_CALLS))
