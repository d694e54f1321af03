"""The analysis of a run, from results to everything that follows from them; made here alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, hypot, inf
from typing import TypeVar

from gpuexplore.analysis.diagnosis import diagnose
from gpuexplore.analysis.model import (
    AnalyzedResult,
    Bound,
    Comparison,
    Context,
    ImplementationLimits,
    MachineNote,
    RunAnalysis,
)
from gpuexplore.analysis.roofs import ridge_point
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.speedup import TIE_WITHIN, default_baseline, speedups
from gpuexplore.analysis.utilization import (
    arithmetic_of,
    bandwidth_utilization,
    best_of,
    byte_count,
    bytes_per_s,
    cache_resident_reason,
    case_label,
    default_bandwidth,
    default_peak,
    device_of,
    flop_count,
    flop_per_s,
    has_nominal_flops,
    is_cache_resident,
    is_ranked,
    mfu,
    reference_bandwidth,
    reference_peak,
    shapes_by_work,
    smallest_cache,
    why_above_bandwidth,
    why_above_peak,
)
from gpuexplore.analysis.verdict import SAMPLES, Estimate, compare, ratio_of, time_of
from gpuexplore.core import Bandwidth, CacheRoof, Case, Flag, FlagName, Origin, Peak, Result, format_percent, median
from gpuexplore.operations import operation_named

STEADY = 0.02  # times that vary by less: nothing needs to be said
WHY: Mapping[FlagName, str] = {
    "contended": "overlapped with other work",
    "drifted": "ran on cores that were slower for a while",
    "throttled": "ran at a throttled clock",
    "noisy": "varied from call to call",
    "contention_unknown": "may have overlapped with other work, which is not visible on this machine",
}
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
    if results and not comparison.baseline:
        names = (result.case.implementation for result in results)
        comparison = replace(comparison, baseline=default_baseline(results[0].case.operation, names))
    context = _with_measured_ceilings(context, results)
    machines = _machine_notes(results, context.origin)
    own = _analyzed(results, comparison, context, machines=machines)
    recorded = _analyzed(context.recorded, comparison, replace(context, origin=Origin.RECORDED), elsewhere=results)
    ranked = [analyzed for analyzed in own if is_ranked(analyzed.result)]
    measured = [analyzed for analyzed in ranked if not analyzed.flag("fragile")] or ranked
    shapes = shapes_by_work([analyzed.result for analyzed in measured])
    largest = shapes[-1] if shapes else None
    there = sorted(
        (analyzed for analyzed in measured if analyzed.case.shape == largest), key=lambda each: each.median_s or inf
    )
    ties = tuple(analyzed for analyzed in there if analyzed is there[0] or is_tie(analyzed.result, there[0].result))
    found = RunAnalysis(own, recorded, comparison, context, largest, tuple(there), ties, machines)
    return replace(found, summary=summarize(found, running=running))


def _with_measured_ceilings(context: Context, results: Sequence[Result]) -> Context:
    """Return `context` with the best of `results` among what is known, so that they can be a measured peak."""
    return replace(context, earlier=best_of((*context.earlier, *results)))


def is_tie(result: Result, other: Result) -> bool:
    """Return whether two measured results cannot be separated, and their medians are within a factor of TIE_WITHIN."""
    found = ratio_of(result, other)
    return found is not None and 1 / TIE_WITHIN <= found.value <= TIE_WITHIN and compare(found, 1.0).relation is None


def analyze_alone(result: Result, context: Context = Context()) -> AnalyzedResult:
    """Return what follows from a result without those of its run: everything but a speedup."""
    (analyzed,) = _analyzed((result,), Comparison(), context)
    return analyzed


def _analyzed(
    results: Sequence[Result],
    comparison: Comparison,
    context: Context,
    *,
    elsewhere: Sequence[Result] = (),
    machines: Sequence[MachineNote] = (),
) -> tuple[AnalyzedResult, ...]:
    """Return each result with what follows from it and from those that it is analyzed together with."""
    ratios = speedups(_believed(results), comparison.baseline, _believed(elsewhere)) if comparison.baseline else {}
    labels = _device_labels(results, context.origin)
    groups = _grouped(results, _group)
    anywhere = _grouped(results, _anywhere)
    notes = {note.device: note for note in machines}
    found = []
    for result in results:
        case = result.case
        alone = _alone(result, comparison, context)
        together = replace(
            alone,
            label=f"{alone.label} on {labels[case.device]}" if len(labels) > 1 else alone.label,
            device_label=labels[case.device],
            speedup=ratios.get(case),
            siblings=groups[_group(case)],
            elsewhere=tuple(other for other in anywhere[_anywhere(case)] if other.case.device != case.device),
            flags=_flags_to_show(result, notes.get(case.device)),
        )
        found.append(replace(together, diagnoses=diagnose(together)))
    return tuple(found)


def _believed(results: Sequence[Result]) -> list[Result]:
    """Return the results but for those whose time cannot be, or rests on one sample."""
    return [result for result in results if result.measurement is None or is_ranked(result)]


def _alone(result: Result, comparison: Comparison, context: Context) -> AnalyzedResult:
    """Return what follows from a result, whatever was measured with it."""
    custom = context.custom(device_of(result))
    peak = default_peak(result, custom.compute)
    bandwidth = default_bandwidth(result, custom.bandwidth)
    limits = _implementation_limits(result, peak, bandwidth)
    chosen_peak = reference_peak(result, comparison, context)
    chosen_bandwidth = reference_bandwidth(result, comparison, context)
    return AnalyzedResult(
        result=result,
        origin=context.origin,
        label=case_label(result.case),
        device_label=result.case.device,
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
        bound=_bound_of(result, limits),
        speedup=None,
        time=time_of(result),
    )


# The limits of an implementation on a device, given the threads and the kind of stores that it uses.
#
# In terms of the roofline model these are the ceilings below the roof: one thread has the units, the caches and the
# memory accesses of one core; an ordinary store reads its line before it writes it; additions alone are half a
# multiply-add. MFU and bandwidth utilization stay relative to the device; a diagnosis compares with these.


def _implementation_limits(result: Result, peak: Peak | None, memory: Bandwidth | None) -> ImplementationLimits:
    """Return the limits of this result; unknown where it ran on one of several cores without measured one-core peaks.

    Args:
        peak: the default one of its arithmetic.
        memory: the default bandwidth of the memory.
    """
    device = device_of(result)
    if device is None:
        return ImplementationLimits(peak, memory, memory)
    if not _runs_on_one_thread(result):
        bandwidth = _with_its_stores(result, memory, device.ordinary_stores)
        serving = _serving(result, device.caches, bandwidth)
        return ImplementationLimits(_of_its_mix(result, peak), bandwidth, serving)
    threads = result.environment.threads if result.environment else None
    roofs = device.one_thread or (device if threads == 1 else None)
    if roofs is None:
        return ImplementationLimits(None, None, None, one_thread=True)
    bandwidth = _with_its_stores(result, roofs.bandwidth, roofs.ordinary_stores)
    one_peak = _of_its_mix(result, roofs.peak(*arithmetic_of(result)))
    return ImplementationLimits(one_peak, bandwidth, _serving(result, roofs.caches, bandwidth), one_thread=True)


def _runs_on_one_thread(result: Result) -> bool:
    """Return whether its implementation uses one of several cores of a CPU, as it is declared."""
    device = device_of(result)
    case = result.case
    if device is None or device.kind != "cpu" or device.cores == 1:
        return False
    return operation_named(case.operation).uses_one_thread(case.implementation, case.dtype, case.shape)


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
    written = operation.written_share(result.case.shape)
    read_s = 1 / streaming.bytes_per_s
    write_s = 3 / ordinary.bytes_per_s - 2 * read_s
    return replace(ordinary, bytes_per_s=1 / ((1 - written) * read_s + written * write_s))


def _serving(result: Result, caches: Iterable[CacheRoof], memory: Bandwidth | None) -> Bandwidth | None:
    """Return the bandwidth of what delivers its data: the smallest cache that they fit in, else memory.

    None where that is unknown.
    """
    if not is_cache_resident(result):
        return memory
    cache = smallest_cache(caches, byte_count(result.case))
    return cache.bandwidth if cache else None


def _of_its_mix(result: Result, peak: Peak | None) -> Peak | None:
    """Return the peak of its mix of instructions: half where no addition comes with a multiplication."""
    if peak is None or operation_named(result.case.operation).multiply_adds:
        return peak
    source = f"{peak.source}; half of it, as it counts multiply-adds"
    return replace(peak, flop_per_s=peak.flop_per_s / 2, source=source)


def _bound_of(result: Result, limits: ImplementationLimits) -> Bound | None:
    """Return what limits this result at best; None without a time, or when a peak that decides it is unknown.

    That is so, too, where FLOPs that are a convention would make it `compute`.

    Without FLOPs no peak decides. `overhead`: its time is near the cost of a call. `compute`: its intensity is at the
    ridge or above, that of the cache its data stay in where its bandwidth is known, else that of memory. Below
    `memory`, or `cache`.
    """
    if result.measurement is None:
        return None
    if any(flag.name == "launch_bound" for flag in result.flags):
        return "overhead"
    peak = limits.peak
    slope = limits.serving or limits.memory
    if slope is None or (peak is None and flop_count(result.case)):
        return None
    if peak and _intensity(result.case) >= ridge_point(peak.flop_per_s, slope.bytes_per_s):
        return None if has_nominal_flops(result.case) else "compute"
    return "cache" if is_cache_resident(result) else "memory"


def _intensity(case: Case) -> float:
    """Return the arithmetic intensity in FLOP/byte, with each array moved once."""
    return flop_count(case) / byte_count(case)


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


# Causes of variation throughout a run, stated once for the machine and not for each result.
#
# A flag that most results of a device carry is about the machine. It is shown with a result that is worse than
# the rest of the run, and still widens the interval of every result's time.


def _machine_notes(results: Sequence[Result], origin: Origin = Origin.LIVE) -> tuple[MachineNote, ...]:
    """Return notes on how much times vary on each device of a run."""
    by_device: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.measurement:
            by_device[result.case.device].append(result)
    several = len({result.case.device for result in results}) > 1
    machine = "this machine" if origin is Origin.LIVE else "the machine of this recording"
    found = (_note(f"device {name}" if several else machine, name, measured) for name, measured in by_device.items())
    return tuple(note for note in found if note)


def _flags_to_show(result: Result, machine: MachineNote | None) -> tuple[Flag, ...]:
    """Return the flags of a result that are specific to it, or much larger than usual in its run."""
    usual = machine.usual if machine else {}
    worse = {name: 1.5 * size for name, size in usual.items() if size is not None}
    return tuple(
        flag for flag in result.flags if flag.name not in usual or (flag.size or 0.0) > worse.get(flag.name, inf)
    )


def _note(subject: str, device: str, results: Sequence[Result]) -> MachineNote | None:
    times = _typical([estimate for result in results if (estimate := time_of(result))])
    ratios = _typical(_ratios(results))
    counts = Counter(name for result in results for name in {flag.name for flag in result.flags} if name in WHY)
    fewest = 3  # results from which the usual size is computed
    most = 0.5  # of the results
    common = [name for name, count in counts.items() if len(results) >= fewest and count > most * len(results)]
    sizes = {name: [flag.size for result in results for flag in result.flags if flag.name == name] for name in common}
    known = {name: [size for size in found if size is not None] for name, found in sizes.items()}
    usual = {name: median(found) if found else None for name, found in known.items()}
    if not usual and times < STEADY:
        return None
    return MachineNote(device, _sentence(subject, usual, times, ratios), _details(results, usual), usual)


def _sentence(subject: str, usual: Collection[FlagName], times: float, ratios: float) -> str:
    if times < STEADY:
        return f"It is unknown whether other work used {subject} at the same time."
    shared: frozenset[FlagName] = frozenset({"contended", "drifted"})
    where = f"{subject[0].upper()}{subject[1:]} is shared: times" if shared & set(usual) else f"On {subject}, times"
    of_ratios = f", ratios by {format_percent(ratios)}" if ratios else ""
    return f"{where} vary by about {format_percent(times)} from run to run{of_ratios}."


def _ratios(results: Sequence[Result]) -> list[Estimate]:
    """Return the ratio of each result to the first one of its group."""
    groups: dict[object, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.case.group].append(result)
    pairs = ((group[0], other) for group in groups.values() for other in group[1:])
    return [found for first, other in pairs if (found := ratio_of(other, first))]


def _typical(estimates: Sequence[Estimate]) -> float:
    """Return by how much the estimates typically vary from run to run, as a fraction."""
    deviations = [hypot(*(doubt.deviation for doubt in found.doubts if doubt.name != SAMPLES)) for found in estimates]
    return exp(median(deviations)) - 1 if deviations else 0.0


def _details(results: Sequence[Result], usual: Mapping[FlagName, float | None]) -> tuple[str, ...]:
    """Return how many results each usual flag has, with the evidence of the worst."""
    found = []
    for name in usual:
        flags = [flag for result in results for flag in result.flags if flag.name == name]
        worst = max(flags, key=lambda flag: flag.size or 0.0)
        found.append(f"{len(flags)} of {len(results)} measurements {WHY[name]}, e.g. {worst.evidence}")
    return tuple(found)
