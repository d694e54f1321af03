"""From results to everything that follows from them: the one place where a run is analyzed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gpuexplore.analysis.diagnosis import diagnose
from gpuexplore.analysis.model import (
    AnalyzedResult,
    Comparison,
    Context,
    ImplementationLimits,
    MachineNote,
    RunAnalysis,
    Speedup,
)
from gpuexplore.analysis.roofline.roofs import bound_of
from gpuexplore.analysis.run.machine import flags_to_show, machine_notes
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.speedup import default_baseline, is_tie, speedups
from gpuexplore.analysis.utilization.above_peak import why_above_bandwidth, why_above_peak
from gpuexplore.analysis.utilization.best_results import believed, is_ranked, with_measured_ceilings
from gpuexplore.analysis.utilization.peak_choice import reference_bandwidth, reference_peak
from gpuexplore.analysis.utilization.utilization import (
    arithmetic_of,
    bandwidth_utilization,
    byte_count,
    bytes_per_s,
    cache_resident_reason,
    case_label,
    default_bandwidth,
    default_peak,
    device_of,
    flop_count,
    flop_per_s,
    is_cache_resident,
    mfu,
    shapes_by_work,
    smallest_cache,
)
from gpuexplore.analysis.verdict import time_of
from gpuexplore.model import Bandwidth, CacheRoof, Case, Device, Origin, Peak, Result, ThreadRoofs
from gpuexplore.operations import operation_named

K = TypeVar("K")
_Group = tuple[object, ...]


def analyze(
    results: Sequence[Result],
    comparison: Comparison = Comparison(),
    context: Context = Context(),
    *,
    running: bool = False,
) -> RunAnalysis:
    """Return what follows from the results of one run.

    Args:
        results: of one operation, in the order they are to be shown.
        comparison: a baseline of None is the first implementation in the operation's order.
        context: `results` join its earlier ones, so that they can be a measured peak.
        running: whether further results are to come; sentences then speak of what is there.
    """
    comparison = replace(comparison, baseline=comparison.baseline or _default_baseline(results))
    context = with_measured_ceilings(context, results)
    machines = machine_notes(results, context.origin)
    own = _analyzed(results, comparison, context, machines=machines)
    beside = _analyzed(context.beside, comparison, replace(context, origin=Origin.RECORDED), elsewhere=results)
    ranked = [analyzed for analyzed in own if is_ranked(analyzed.result)]
    measured = [analyzed for analyzed in ranked if not analyzed.flag("fragile")] or ranked
    shapes = shapes_by_work([analyzed.result for analyzed in measured])
    largest = shapes[-1] if shapes else None
    there = sorted((analyzed for analyzed in measured if analyzed.case.shape == largest), key=_median_s)
    ties = tuple(analyzed for analyzed in there if analyzed is there[0] or is_tie(analyzed.result, there[0].result))
    found = RunAnalysis(own, beside, comparison, context, largest, tuple(there), ties, machines)
    return replace(found, summary=summarize(found, running=running))


def analyze_alone(result: Result, context: Context = Context()) -> AnalyzedResult:
    """Return what follows from a result without those of its run: everything but a speedup."""
    (analyzed,) = _analyzed((result,), Comparison(), context)
    return analyzed


@dataclass(frozen=True, slots=True)
class _Shared:
    """What the results that are analyzed together share.

    Attributes:
        device_labels: by id.
        groups: of siblings.
        places: results of the same work, whatever the device.
        speedups: by case.
        machines: what is said once of each device, by id.
    """

    comparison: Comparison
    context: Context
    device_labels: Mapping[str, str]
    groups: Mapping[_Group, tuple[Result, ...]]
    places: Mapping[_Group, tuple[Result, ...]]
    speedups: Mapping[Case, Speedup]
    machines: Mapping[str, MachineNote]


def _analyzed(
    results: Sequence[Result],
    comparison: Comparison,
    context: Context,
    *,
    elsewhere: Sequence[Result] = (),
    machines: Sequence[MachineNote] = (),
) -> tuple[AnalyzedResult, ...]:
    ratios = speedups(believed(results), comparison.baseline, believed(elsewhere)) if comparison.baseline else {}
    shared = _Shared(
        comparison,
        context,
        _device_labels(results, context.origin),
        groups=_grouped(results, _group),
        places=_grouped(results, _anywhere),
        speedups=ratios,
        machines={note.device: note for note in machines},
    )
    return tuple(_one(result, shared) for result in results)


def _one(result: Result, shared: _Shared) -> AnalyzedResult:
    context, device_label = shared.context, shared.device_labels[result.case.device]
    custom = context.custom(device_of(result))
    peak, bandwidth = default_peak(result, custom.compute), default_bandwidth(result, custom.bandwidth)
    limits = implementation_limits(result, peak, bandwidth)
    chosen_peak = reference_peak(result, shared.comparison, context)
    chosen_bandwidth = reference_bandwidth(result, shared.comparison, context)
    name = case_label(result.case)
    found = AnalyzedResult(
        result=result,
        origin=context.origin,
        label=f"{name} on {device_label}" if len(shared.device_labels) > 1 else name,
        device_label=device_label,
        flop_count=flop_count(result.case),
        byte_count=byte_count(result.case),
        flop_per_s=flop_per_s(result),
        bytes_per_s=bytes_per_s(result),
        peak=chosen_peak,
        bandwidth=chosen_bandwidth,
        mfu=mfu(result, chosen_peak.peak),
        bandwidth_utilization=bandwidth_utilization(result, chosen_bandwidth.peak),
        above_peak=why_above_peak(result, chosen_peak.peak),
        above_bandwidth=why_above_bandwidth(result, chosen_bandwidth.peak),
        default_peak=peak,
        default_bandwidth=bandwidth,
        limits=limits,
        cache_resident_reason=cache_resident_reason(result),
        bound=bound_of(result, limits),
        speedup=shared.speedups.get(result.case),
        time=time_of(result),
        siblings=shared.groups[_group(result.case)],
        elsewhere=tuple(
            other for other in shared.places[_anywhere(result.case)] if other.case.device != result.case.device
        ),
        flags=flags_to_show(result, shared.machines.get(result.case.device)),
    )
    return replace(found, diagnoses=diagnose(found))


def _default_baseline(results: Sequence[Result]) -> str | None:
    if not results:
        return None
    return default_baseline(results[0].case.operation, (result.case.implementation for result in results))


def _device_labels(results: Sequence[Result], origin: Origin) -> dict[str, str]:
    """Return how labels call each device: a recorded one by its name, as its id means another device here."""
    ids = dict.fromkeys(result.case.device for result in results)
    if origin is not Origin.RECORDED:
        return {name: name for name in ids}
    names = {result.case.device: device.title for result in results if (device := device_of(result))}
    repeated = Counter(names.values())
    return {
        name: names.get(name, name) if repeated[names.get(name, name)] < 2 else f"{names[name]} ({name})"
        for name in ids
    }


def _group(case: Case) -> _Group:
    return (case.shape, case.device, case.options)


def _anywhere(case: Case) -> _Group:
    return (case.shape, case.dtype, case.options)


def _grouped(results: Sequence[Result], key: Callable[[Case], K]) -> dict[K, tuple[Result, ...]]:
    found: dict[K, list[Result]] = defaultdict(list)
    for result in results:
        found[key(result.case)].append(result)
    return {group: tuple(members) for group, members in found.items()}


def _median_s(analyzed: AnalyzedResult) -> float:
    return analyzed.median_s or float("inf")


# What an implementation can reach on a device: its limits, as far as the threads and stores it uses can use them.
#
# In the words of the roofline model these are the ceilings below the roof: one thread has the units, the caches and the
# memory accesses of one core; an ordinary store reads its line before it writes it; additions alone are half a
# multiply-add. MFU and bandwidth utilization stay relative to the device; a diagnosis compares with these.


def implementation_limits(result: Result, peak: Peak | None, memory: Bandwidth | None) -> ImplementationLimits:
    """Return what bounds this result; unknown where it ran on one of several cores and one was not measured.

    Args:
        peak: the default one of its arithmetic.
        memory: the default bandwidth of the memory.
    """
    device = device_of(result)
    if device is None:
        return ImplementationLimits(peak, memory, memory)
    if not runs_on_one_thread(result):
        bandwidth = _with_its_stores(result, memory, device.ordinary_stores)
        serving = _serving(result, device.caches, bandwidth)
        return ImplementationLimits(_of_its_mix(result, peak), bandwidth, serving)
    roofs = _roofs_of_one_thread(result, device)
    if roofs is None:
        return ImplementationLimits(None, None, None, one_thread=True)
    bandwidth = _with_its_stores(result, roofs.bandwidth, roofs.ordinary_stores)
    one_peak = _of_its_mix(result, roofs.peak(*arithmetic_of(result)))
    return ImplementationLimits(one_peak, bandwidth, _serving(result, roofs.caches, bandwidth), one_thread=True)


def runs_on_one_thread(result: Result) -> bool:
    """Return whether its implementation uses one of several cores of a CPU, as it is declared."""
    device, case = device_of(result), result.case
    if device is None or device.kind != "cpu" or device.cores == 1:
        return False
    return operation_named(case.operation).uses_one_thread(case.implementation, case.dtype, case.shape)


def _roofs_of_one_thread(result: Result, device: Device) -> ThreadRoofs | Device | None:
    threads = result.environment.threads if result.environment else None
    return device.one_thread or (device if threads == 1 else None)


def _of_its_mix(result: Result, peak: Peak | None) -> Peak | None:
    """Return the peak of its mix of instructions: half where no addition comes with a multiplication."""
    if peak is None or operation_named(result.case.operation).multiply_adds:
        return peak
    source = f"{peak.source}; half of it, as it counts multiply-adds"
    return replace(peak, flop_per_s=peak.flop_per_s / 2, source=source)


def _with_its_stores(result: Result, streaming: Bandwidth | None, ordinary: Bandwidth | None) -> Bandwidth | None:
    """Return the bandwidth of its mix of reads and writes, by what both triads took for a byte read and one written.

    A triad reads two bytes for one that it writes: 3 / streaming rate = 3 reads, 3 / ordinary rate = 2 reads + 1 write.
    """
    operation = operation_named(result.case.operation)
    implementation = operation.implementation_named(result.case.implementation)
    if streaming is None or ordinary is None or streaming.kind == "own" or implementation.streaming_stores:
        return streaming
    if ordinary.bytes_per_s >= streaming.bytes_per_s:
        return ordinary
    written, read_s = operation.written_share(result.case.shape), 1 / streaming.bytes_per_s
    write_s = 3 / ordinary.bytes_per_s - 2 * read_s
    return replace(ordinary, bytes_per_s=1 / ((1 - written) * read_s + written * write_s))


def _serving(result: Result, caches: Iterable[CacheRoof], memory: Bandwidth | None) -> Bandwidth | None:
    """Return the bandwidth of what delivers its data: the smallest cache that holds them, where one does, else memory.

    None where that is unknown.
    """
    if not is_cache_resident(result):
        return memory
    cache = smallest_cache(caches, byte_count(result.case))
    return cache.bandwidth if cache else None
