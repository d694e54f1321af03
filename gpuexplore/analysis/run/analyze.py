"""The analysis of a run, from results to everything that follows from them; made here alone."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import exp, hypot, inf
from types import MappingProxyType
from typing import TypeVar

from gpuexplore.analysis.diagnosis import diagnose
from gpuexplore.analysis.model import (
    AnalyzedResult,
    Comparison,
    Context,
    MachineNote,
    RunAnalysis,
)
from gpuexplore.analysis.roofs import bound_of, implementation_limits
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.speedup import default_baseline, is_tie, speedups
from gpuexplore.analysis.utilization.best_results import (
    believed,
    is_ranked,
    why_above_bandwidth,
    why_above_peak,
    with_measured_ceilings,
)
from gpuexplore.analysis.utilization.peak_choice import reference_bandwidth, reference_peak
from gpuexplore.analysis.utilization.utilization import (
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
    mfu,
    shapes_by_work,
)
from gpuexplore.analysis.verdict import Estimate, ratio_of, time_of
from gpuexplore.analysis.verdict.times import SAMPLES
from gpuexplore.core.model import Case, Flag, FlagName, Origin, Result
from gpuexplore.core.statistics import median
from gpuexplore.core.units import format_percent

STEADY = 0.02  # times that vary by less: nothing needs to be said
WHY: Mapping[FlagName, str] = MappingProxyType(
    {
        "contended": "overlapped with other work",
        "drifted": "ran on cores that were slower for a while",
        "throttled": "ran at a throttled clock",
        "noisy": "varied from call to call",
        "contention_unknown": "may have overlapped with other work, which is not visible on this machine",
    }
)
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
    context = with_measured_ceilings(context, results)
    machines = machine_notes(results, context.origin)
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
    ratios = speedups(believed(results), comparison.baseline, believed(elsewhere)) if comparison.baseline else {}
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


def _alone(result: Result, comparison: Comparison, context: Context) -> AnalyzedResult:
    """Return what follows from a result, whatever was measured with it."""
    custom = context.custom(device_of(result))
    peak = default_peak(result, custom.compute)
    bandwidth = default_bandwidth(result, custom.bandwidth)
    limits = implementation_limits(result, peak, bandwidth)
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
        bound=bound_of(result, limits),
        speedup=None,
        time=time_of(result),
    )


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


def machine_notes(results: Sequence[Result], origin: Origin = Origin.LIVE) -> tuple[MachineNote, ...]:
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
    usual = _usual(results)
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


def _usual(results: Sequence[Result]) -> dict[FlagName, float | None]:
    """Return the usual size of each flag that most results carry."""
    counts = Counter(name for result in results for name in {flag.name for flag in result.flags} if name in WHY)
    fewest = 3  # results from which the usual size is computed
    most = 0.5  # of the results
    common = [name for name, count in counts.items() if len(results) >= fewest and count > most * len(results)]
    sizes = {name: [flag.size for result in results for flag in result.flags if flag.name == name] for name in common}
    known = {name: [size for size in found if size is not None] for name, found in sizes.items()}
    return {name: median(found) if found else None for name, found in known.items()}


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
