"""The order of calls where a time is taken: what of a launch is in the time of one of them, and in a measured one.

The ideal time of a case on a device: the largest of its compute, memory and launch terms.

compute = FLOPs / (peak · useful share of the tiles and waves), memory = bytes / bandwidth, launch = one call's cost.
What libraries lose against this ideal is learned from measurements (`gpuexplore.analysis.prediction.priors`).

Libraries do not document their tiles. Assumed are those of CUTLASS's default kernels, each with the share of the peak
that its reuse of data allows, and a split of long sums over several blocks where the output is small:
https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from gpuexplore.analysis.model import Bound
from gpuexplore.analysis.utilization.utilization import cache_mode, device_of, smallest_cache
from gpuexplore.core.dtypes import DType, format_named
from gpuexplore.core.model import CacheState, Case, Device, Flag, Measurement, Peak, Result, Unit
from gpuexplore.hardware import CAPABILITIES, TORCH_KINDS
from gpuexplore.operations import Implementation, Product, operation_named
from gpuexplore.recorded.published import PublishedMeasurement, Timing

Calls = Literal["graph", "queued", "single", "cold"]
USUAL_CALLS: Calls = "queued"

CALLS: Mapping[Calls, str] = {
    "graph": "replayed in a CUDA graph: the smallest launch overhead",
    "queued": "one call after another from Python or C++: a launch overlaps with the previous call",
    "single": "one call on an idle device, then a wait for it: the launch is part of the time",
    "cold": "the kernel's own time by a profiler, with cold caches on a GPU that was idle before",
}

CALLS_WORDS: Mapping[Calls, str] = {
    "graph": "calls in a CUDA graph",
    "queued": "queued calls",
    "single": "single calls",
    "cold": "kernels on an idle GPU with cold caches",
}
REPLAYED = Flag("warm", "replayed in a CUDA graph, without a flush")

# The kind of call each way of timing stands for.
CALLS_OF_TIMING: Mapping[Timing, Calls] = {
    "graph": "graph",
    "device": "graph",
    "queued": "queued",
    "do_bench": "queued",
    "best_of_many": "queued",
    "event": "single",
    "event_after_synchronize": "single",
}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Facts about a call apart from its case.

    Attributes:
        calls: how calls follow one another.
        searched: the shape is the best of a search, as published ones often are.
        weight_sets: how many right-hand matrices alternate, as the layers of a network do: few stay in a cache; None
            is as usual for the operation, ROTATING_SETS for a linear layer and one for others.
        quantises: the left-hand matrix is quantised in a kernel before; None is as usual, for a linear layer in fp8.
        source: a way of taking times that has launches of its own; empty is as `calls` say.
        team: the repository of who measures; empty where it is none whose measurements are known.
    """

    calls: Calls = USUAL_CALLS
    searched: bool = False
    weight_sets: int | None = None
    quantises: bool | None = None
    source: str = ""
    team: str = ""


USUAL = Conditions()
ROTATING_SETS = 6


def conditions_of(measured: PublishedMeasurement) -> Conditions:
    """Return the conditions of a published measurement, which its text states."""
    return conditions_stated(measured.timing, measured.conditions, measured.source.repository)


def conditions_stated(timing: Timing, text: str, team: str = "") -> Conditions:
    """Return the conditions of a time that was taken in a known way, with what its text says of weights and caches."""
    is_cold = timing == "device" and "cold" in text
    return Conditions(
        "cold" if is_cold else CALLS_OF_TIMING[timing],
        weight_sets=ROTATING_SETS if "weights of 6 layers in turn" in text else 1,
        quantises="includes quantising the activations" in text,
        source="" if timing in CALLS or is_cold else timing,
        team=team,
    )


# The kind of calls of a measurement, so that it is compared with a prediction of the same kind.
#
# On a GPU a pair of events times each call, behind others that the host has enqueued meanwhile: launches are hidden,
# and the calls are queued (`gpuexplore.backends`). Where a device's events have no timestamps, the host waits
# for each call that follows a flush: those are single. A short call is replayed in a CUDA graph as well.
#
# On a CPU a call returns when its work is done: its time is the same in every kind.


def calls_of(result: Result) -> Calls:
    """Return the kind of calls that the samples of a result stand for; on a CPU the default."""
    if REPLAYED in result.flags:
        return "graph"
    device = device_of(result)
    return USUAL_CALLS if device is None else calls_on(device, cache_mode(result))


def calls_on(device: Device, cache: CacheState) -> Calls:
    """Return the kind of calls that samples on `device` stand for, with the cache flushed before each or not."""
    kind = TORCH_KINDS.get(device.kind)
    return "single" if kind and kind.timed_by == "host" and cache == "cold" else USUAL_CALLS


def in_calls(result: Result, calls: Calls) -> Result | None:
    """Return a result with its time in one kind of calls; None where it was not measured in it.

    On a CPU kinds do not differ. The samples of a replayed graph, which are warm, replace the result's own.
    """
    device = device_of(result)
    if (device is not None and device.kind == "cpu") or calls_of(result) == calls:
        return result
    contrasts = result.measurement.contrasts if result.measurement else ()
    replayed = next((other for other in contrasts if other.condition == calls and other.samples_s), None)
    if result.measurement is None or replayed is None:
        return None
    measurement = Measurement(
        replayed.samples_s,
        result.measurement.first_call_s,
        between_processes=result.measurement.between_processes,
        between_ratios=result.measurement.between_ratios,
    )
    of_own_samples = frozenset({"cold", "launch_bound"})  # flags that are not true of the replay of a graph
    kept = (flag for flag in result.flags if flag.name not in of_own_samples)
    return replace(result, measurement=measurement, flags=(*kept, REPLAYED))


# Which units would do a case's arithmetic on a device: its own, another format's, or none.


Support = Literal["native", "emulated", "unsupported"]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """The arithmetic of a case.

    Attributes:
        support: whether the device has units for the dtype.
        reason: why it has none, or why no peak is known; None for native arithmetic with a known peak.
        peak: of the units that do the work; None where it is unknown, or there are none.
    """

    support: Support
    reason: str | None = None
    peak: Peak | None = None


def arithmetic(case: Case, device: Device) -> Arithmetic:
    """Return which units of `device` would compute `case`."""
    operation = operation_named(case.operation)
    dtype = format_named(case.dtype)
    implementation = operation.implementation_named(case.implementation)
    if reason := operation.unsupported(dtype) or _elsewhere(implementation, device):
        return Arithmetic("unsupported", reason)
    if not operation.is_matrix_product:
        return _element_wise(dtype, device)
    computed, unit = implementation.computes_in(dtype.name, device)
    if computed != dtype.name:
        reason = f"{implementation.name} computes {dtype.name} in {computed}"
        return _with_peak(Arithmetic("emulated", reason, device.peak(computed, unit)), device)
    return _product(dtype, unit, device)


def _elsewhere(implementation: Implementation, device: Device) -> str | None:
    """Return why a CUDA kernel of ours has nothing to run on, or None."""
    if implementation.geometry is None or device.compute_capability in CAPABILITIES or device.kind == "cuda":
        return None
    return f"{implementation.name} is a CUDA kernel, and {device.name} has no compute capability that CUDA compiles for"


def _element_wise(dtype: DType, device: Device) -> Arithmetic:
    """Return the arithmetic of an operation without products: narrow formats are widened for it, which costs little.

    Its roof is the faster of the two: what computes narrow formats at a fraction of fp32's rate is passed by.
    """
    known = filter(None, (device.peak(name, "vector") for name in (dtype.name, dtype.accumulate)))
    peak = max(known, key=lambda each: each.flop_per_s, default=None)
    if peak is None and device.native and dtype.accumulate not in device.native:
        return Arithmetic("unsupported", f"{device.name} has no {dtype.accumulate} units")
    return _with_peak(Arithmetic("native", None, peak), device)


def _product(dtype: DType, unit: Unit, device: Device) -> Arithmetic:
    wider = device.peak(dtype.accumulate, "matrix") or device.peak(dtype.accumulate, "vector")
    if not device.native or dtype.name in device.native:  # a driver that lists no units does not exclude any
        own = device.peak(dtype.name, unit) or device.peak(dtype.name, "vector")
        if own is None or wider is None or own.flop_per_s >= wider.flop_per_s:
            return _with_peak(Arithmetic("native", None, own), device)
        slow = f"{device.name} is slower in {dtype.name} than in {dtype.accumulate}, so libraries compute in that"
        return Arithmetic("emulated", slow, wider)
    if dtype.matrix_only:
        return Arithmetic(
            "unsupported", f"{dtype.name} exists only inside matrix units, and {device.name} has none for it"
        )
    missing = f"{device.name} has no {dtype.name} units"
    if dtype.accumulate == dtype.name:
        return Arithmetic("unsupported", missing)
    return _with_peak(Arithmetic("emulated", f"{missing}: {dtype.accumulate} does the arithmetic", wider), device)


def _with_peak(found: Arithmetic, device: Device) -> Arithmetic:
    if found.peak is not None:
        return found
    unknown = f"no peak is known for it on {device.name}"
    return Arithmetic(found.support, f"{found.reason}; {unknown}" if found.reason else unknown)


Processor = Literal["cpu", "gpu"]
CALL_S: dict[Processor, float] = {"gpu": 5e-6, "cpu": 2e-6}  # one call of a library; assumed, corrected by measurements


@dataclass(frozen=True, slots=True)
class Ideal:
    """The best a case could do on a device.

    Attributes:
        time_s: the largest term; on a CPU a call's cost comes on top of the others, as nothing hides it.
        floor_s: what launch-bound calls cannot undercut: the compute and the memory term.
        bound: which term is the largest.
    """

    time_s: float
    floor_s: float
    bound: Bound


def processor_of(device: Device) -> Processor:
    """Return whether a device is a CPU or a GPU, of this machine or of the table."""
    return "cpu" if device.kind == "cpu" else "gpu"


def ideal(case: Case, device: Device, units: Arithmetic) -> Ideal | None:
    """Return the best time of `case` on `device`; None where a peak that decides it is unknown."""
    operation = operation_named(case.operation)
    flop_count = operation.flop_count(case.shape)
    if device.bandwidth is None or (flop_count and units.peak is None):
        return None
    products = operation.products(case.shape) if operation.products and processor_of(device) == "gpu" else ()
    compute_s = flop_count / units.peak.flop_per_s / _useful_share(products, device.cores) if units.peak else 0.0
    memory_s, cached = _memory_s(operation.byte_count(case.shape, format_named(case.dtype)), case, device)
    call_s = CALL_S[processor_of(device)] * operation.calls(case.shape)
    terms: dict[Bound, float] = {
        "compute": compute_s,
        "cache" if cached else "memory": memory_s,
        "overhead": call_s,
    }
    floor_s = max(compute_s, memory_s)
    hidden = (
        processor_of(device) == "gpu"
    )  # a GPU works while the next call is prepared; a CPU does one after the other
    return Ideal(
        max(call_s, floor_s) if hidden else call_s + floor_s, floor_s, max(terms, key=lambda name: terms[name])
    )


def _memory_s(byte_count: int, case: Case, device: Device) -> tuple[float, bool]:
    """Return the seconds of moving the data once, and whether they fit in a CPU's caches between calls."""
    memory = device.bandwidth.bytes_per_s if device.bandwidth else float("inf")
    if case.options.cache == "cold" or processor_of(device) != "cpu":
        return byte_count / memory, False
    if cache := smallest_cache(device.caches, byte_count):
        return byte_count / cache.bandwidth.bytes_per_s, True
    return byte_count / memory, bool(device.cache_bytes and byte_count <= device.cache_bytes)


def _useful_share(products: Iterable[Product], multiprocessors: int | None) -> float:
    """Return the useful fraction of the tiles' arithmetic over whole waves of tiles, 0 to 1.

    A matrix-vector product wastes none: libraries have kernels of their own for it, without tiles.
    """
    listed = list(products)
    if not listed or not multiprocessors:
        return 1.0
    flops = [product.batch * product.m * product.n * product.k for product in listed]
    spent = sum(flop / _best_tiling(product, multiprocessors) for flop, product in zip(flops, listed, strict=True))
    return sum(flops) / spent


def _best_tiling(product: Product, multiprocessors: int) -> float:
    if product.m == 1 or product.n == 1:
        return 1.0
    tiles = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.97), (128, 64, 0.85), (64, 128, 0.85), (64, 64, 0.7))
    return max(_share(product, tile, split, multiprocessors) for tile in tiles for split in _splits(product.k))


def _splits(terms: int) -> list[int]:
    least_split = 1024  # least terms of a sum that justify a separate block
    return [2**power for power in range(6) if power == 0 or terms >= least_split * 2**power]


def _share(product: Product, tile: tuple[int, int, float], split: int, multiprocessors: int) -> float:
    rows, columns, reuse = tile
    tiles = product.batch * ceil(product.m / rows) * ceil(product.n / columns)
    covered = product.batch * product.m * product.n / (tiles * rows * columns)
    waves = ceil(tiles * split / multiprocessors)
    return reuse * covered * tiles * split / (waves * multiprocessors)
