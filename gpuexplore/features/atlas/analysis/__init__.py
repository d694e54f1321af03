"""The atlas: what GPUs were measured to do, published by others and recorded by gpuexplore, in one form.

A point belongs to a row of the table of accelerators, and is compared with that row's figures. Unknown is None.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Literal

from gpuexplore.analysis.prediction.calls import CALLS, USUAL_CALLS, Calls, Conditions, arithmetic, conditions_of
from gpuexplore.analysis.utilization import PUBLISHED, PublishedResult, cache_mode, is_ranked
from gpuexplore.core import Case, Device, InvalidInput, Peak, Result, Shape, once, require
from gpuexplore.core.dtypes import format_named
from gpuexplore.hardware import ACCELERATORS, table_device
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded import Recording, recorded_results, run_id
from gpuexplore.recorded.published import TIMINGS, PublishedMeasurement, Source, published_measurements, sources

# Who measured what the atlas shows, under which licence, and what to cite.


@dataclass(frozen=True, slots=True)
class Citation:
    """One collection of measurements.

    Attributes:
        name: what readers call it; several recordings of gpuexplore share one.
        url: where it is; None for what comes with gpuexplore.
        licence: SPDX identifier.
        text: what to cite.
        how: how its authors measured.
    """

    name: str
    url: str | None
    licence: str
    text: str
    how: str


@cache
def _of_source(source: Source) -> Citation:
    """Return the citation of a repository of measurements."""
    return Citation(source.title, source.url, source.licence, source.citation, source.how)


def _of_product(published: PublishedResult) -> Citation:
    """Return the citation of one of the best published products."""
    return _of_source(next(source for source in sources() if published.source.startswith(f"{source.url}/")))


PointOrigin = Literal["published", "recorded"]
PointBound = Literal["compute", "memory"]


@dataclass(frozen=True, eq=False)
class AtlasPoint:
    """One measured call on a GPU; each is equal to itself alone, and made once.

    Attributes:
        origin: `published` by others, or `recorded` by gpuexplore.
        device: its row of the table of accelerators.
        operation: its name.
        dtype: a format of FORMATS.
        shape: axes of the operation.
        time_s: seconds of a call.
        call: how calls followed one another, and what else is known of them.
        implementation: of gpuexplore; None where others measured: the vendor's library, or what `conditions` say.
        conditions: how it was timed, for a reader.
        citation: who measured it.
        url: the file it comes from; None for a recording.
        run_id: of the recorded run that it is in; None for others.
        cold: whether the caches were cleared between calls.
        peak: of the units that do the arithmetic; None where it is unknown, or the operation is no matrix product.
    """

    origin: PointOrigin
    device: Device
    operation: str
    dtype: str
    shape: Shape
    time_s: float
    call: Conditions
    implementation: str | None
    conditions: str
    citation: Citation
    url: str | None
    run_id: str | None
    cold: bool
    peak: Peak | None

    @property
    def calls(self) -> Calls:
        """The kind of calls, a key of CALLS."""
        return self.call.calls

    @property
    def spec_key(self) -> str:
        """The key of its row in the table of accelerators."""
        return self.device.id

    @property
    def is_product(self) -> bool:
        """True if its work is counted in FLOPs of matmuls; other operations are memory-bound."""
        return operation_named(self.operation).is_matrix_product

    @cached_property
    def flop_count(self) -> int:
        """FLOPs of a call, a multiply-add counted as 2."""
        return operation_named(self.operation).flop_count(self.shape)

    @cached_property
    def byte_count(self) -> int:
        """Bytes a call moves at least."""
        return operation_named(self.operation).byte_count(self.shape, format_named(self.dtype))

    @property
    def flop_per_s(self) -> float:
        """FLOP/s."""
        return self.flop_count / self.time_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes/s."""
        return self.byte_count / self.time_s

    @property
    def work(self) -> int:
        """The horizontal axis: FLOPs of a product, bytes of any other operation.

        Shapes of a network's layers stand for no one size. By their work they lie on one axis, and a constant rate is a
        straight line there.
        """
        return self.flop_count if self.is_product else self.byte_count

    @property
    def rate(self) -> float:
        """Work in a second: FLOP/s of a product, bytes/s of any other operation."""
        return self.work / self.time_s

    @property
    def mfu(self) -> float | None:
        """FLOP/s over `peak`, as a fraction; None for an operation that is no product."""
        return self.flop_per_s / self.peak.flop_per_s if self.peak else None

    @property
    def bandwidth_utilization(self) -> float | None:
        """Bytes/s over the memory bandwidth, as a fraction; None where a cache may have delivered the data."""
        device = self.device
        in_cache = not self.cold and device.cache_bytes is not None and self.byte_count <= device.cache_bytes
        return None if device.bandwidth is None or in_cache else self.bytes_per_s / device.bandwidth.bytes_per_s

    @property
    def bound(self) -> PointBound:
        """The limit that takes longer at its peak: arithmetic, for products alone, or memory."""
        if self.peak is None or self.device.bandwidth is None:
            return "compute" if self.is_product else "memory"
        compute_s = self.flop_count / self.peak.flop_per_s
        return "compute" if compute_s >= self.byte_count / self.device.bandwidth.bytes_per_s else "memory"

    @property
    def share(self) -> float | None:
        """Fraction reached of the peak that decides: `mfu` where arithmetic does, else `bandwidth_utilization`."""
        return self.mfu if self.bound == "compute" else self.bandwidth_utilization


def points(
    operation: str | None = None, spec_keys: Collection[str] = (), dtypes: Collection[str] = ()
) -> tuple[AtlasPoint, ...]:
    """Return what was measured: published points first, recorded ones last.

    Args:
        operation: its name; None for every one.
        spec_keys: rows of the table of accelerators; empty for every one.
        dtypes: formats of FORMATS; empty for every one.

    Raises:
        InvalidInput: there is no such operation, key or dtype; names those there are.
    """
    if operation is not None:
        operation_named(operation)
    known = {row.key for row in ACCELERATORS}
    for key in spec_keys:
        require(key in known, "gpu", key, "keys of `specs`")
    for name in dtypes:
        format_named(name)
    return tuple(
        point
        for point in _all()
        if (operation is None or point.operation == operation)
        and (not spec_keys or point.spec_key in spec_keys)
        and (not dtypes or point.dtype in dtypes)
    )


def citations(of: Iterable[AtlasPoint]) -> tuple[Citation, ...]:
    """Return who measured these points, each collection once."""
    return tuple(dict.fromkeys(point.citation for point in of))


@once
def _all() -> tuple[AtlasPoint, ...]:
    return (
        *map(_published, published_measurements()),
        *map(_product, PUBLISHED),
        *(
            _recorded(recording, result)
            for recording, result in recorded_results()
            if result.environment and result.environment.device.spec_key and is_ranked(result)
        ),
    )


def _peak(case: Case) -> Peak | None:
    """Return the peak of the units that do the arithmetic of a product; its device is a row's key."""
    is_product = operation_named(case.operation).is_matrix_product
    return arithmetic(case, table_device(case.device)).peak if is_product else None


def _case(operation: str, shape: Shape, dtype: str, spec_key: str) -> Case:
    """Return the case of whatever others measured: of the vendor's library."""
    return Case(operation, shape, dtype, operation_named(operation).vendor_library.name, spec_key)


def _published(row: PublishedMeasurement) -> AtlasPoint:
    return AtlasPoint(
        origin="published",
        device=table_device(row.spec_key),
        operation=row.operation,
        dtype=row.dtype,
        shape=row.shape,
        time_s=row.time_s,
        call=conditions_of(row),
        implementation=None,
        conditions=row.conditions or TIMINGS[row.timing],
        citation=_of_source(row.source),
        url=row.url,
        run_id=None,
        cold=row.timing == "do_bench",  # which clears the L2 cache between calls
        peak=_peak(_case(row.operation, row.shape, row.dtype, row.spec_key)),
    )


def _product(row: PublishedResult) -> AtlasPoint:
    return AtlasPoint(
        origin="published",
        device=table_device(row.spec_key),
        operation="matmul",
        dtype=row.dtype,
        shape=row.shape,
        time_s=row.time_s,
        call=Conditions(weight_sets=1, quantises=False),
        implementation=None,
        conditions=row.note,
        citation=_of_product(row),
        url=row.source,
        run_id=None,
        cold=False,
        peak=_peak(_case("matmul", row.shape, row.dtype, row.spec_key)),
    )


def _recorded(recording: Recording, result: Result) -> AtlasPoint:
    case = result.case
    mode = cache_mode(result)
    if result.measurement is None or result.environment is None or result.environment.device.spec_key is None:
        raise InvalidInput(f"{recording.name}: {case} has no time on a device of the table")
    spec_key = result.environment.device.spec_key
    flags = "".join(f", {flag.name}" for flag in result.flags if flag.name != mode)
    recorded = recording.provenance
    return AtlasPoint(
        origin="recorded",
        device=table_device(spec_key),
        operation=case.operation,
        dtype=case.dtype,
        shape=case.shape,
        time_s=result.measurement.median_s,
        call=Conditions(weight_sets=1, quantises=False),
        implementation=case.implementation,
        conditions=f"{case.implementation}, {mode}, the median{flags}",
        citation=Citation(
            "gpuexplore", None, "Apache-2.0", f"{recorded.recorded_by}: {recording.title}", recorded.method
        ),
        url=None,
        run_id=run_id(recording, result),
        cold=mode == "cold",
        peak=_peak(replace(case, device=spec_key)),
    )


USUAL_GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb", "l4", "t4")  # of an operation without measurements
MOST_GPUS = 4


@once
def measured_operations() -> dict[str, int]:
    """Return how many points each operation has, a linear layer first and then the most measured."""
    counts = Counter(point.operation for point in points())
    first = "linear"  # what links without an operation mean
    return {name: counts[name] for name in sorted(OPERATIONS, key=lambda name: (name != first, -counts[name]))}


@once
def measured_gpus(operation: str) -> dict[str, int]:
    """Return how many points of an operation each GPU of the table has, the most measured first."""
    counts = Counter(point.spec_key for point in points(operation))
    return {row.key: counts[row.key] for row in sorted(ACCELERATORS, key=lambda row: -counts[row.key])}


def usual_calls(of: Collection[AtlasPoint]) -> Calls:
    """Return how calls followed one another on most of these points' GPUs."""
    counts = Counter(calls for calls, _ in {(point.calls, point.spec_key) for point in of})
    return max(CALLS, key=lambda name: (counts[name], name == USUAL_CALLS))
