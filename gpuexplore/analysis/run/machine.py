"""What makes times vary all through a run, said once of the machine and not of each result.

A flag that most results of a device carry tells of the machine. With a result it is shown where it is worse than in the
rest of the run, and it widens the interval of the result's time all the same.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import exp, hypot
from types import MappingProxyType

from gpuexplore.analysis.model import MachineNote
from gpuexplore.analysis.verdict import Estimate, ratio_of, time_of
from gpuexplore.analysis.verdict.times import SAMPLES
from gpuexplore.model import Flag, FlagName, Origin, Result
from gpuexplore.statistics import median
from gpuexplore.units import format_percent

FEWEST = 3  # results that can tell what is usual
MOST = 0.5  # of the results
WORSE = 1.5  # times the usual size
STEADY = 0.02  # times that vary by less: nothing needs to be said
SHARED: frozenset[FlagName] = frozenset({"contended", "drifted"})
WHY: Mapping[FlagName, str] = MappingProxyType(
    {
        "contended": "overlapped with other work",
        "drifted": "ran on cores that were slower for a while",
        "throttled": "ran at a clock that was held down",
        "noisy": "varied from call to call",
        "contention_unknown": "may have overlapped with other work, which cannot be seen here",
    }
)


def machine_notes(results: Sequence[Result], origin: Origin = Origin.LIVE) -> tuple[MachineNote, ...]:
    """Return what is known of how much times vary on each device of a run."""
    by_device: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        if result.measurement:
            by_device[result.case.device].append(result)
    several = len({result.case.device for result in results}) > 1
    place = "this machine" if origin is Origin.LIVE else "the machine of this recording"
    found = (_note(f"device {name}" if several else place, name, measured) for name, measured in by_device.items())
    return tuple(note for note in found if note)


def flags_to_show(result: Result, machine: MachineNote | None) -> tuple[Flag, ...]:
    """Return the flags of a result that the rest of its run does not carry alike."""
    usual = machine.usual if machine else {}
    return tuple(flag for flag in result.flags if flag.name not in usual or _is_worse(flag, usual[flag.name]))


def _is_worse(flag: Flag, usual: float | None) -> bool:
    return flag.size is not None and usual is not None and flag.size > WORSE * usual


def _note(subject: str, device: str, results: Sequence[Result]) -> MachineNote | None:
    times = _typical([estimate for result in results if (estimate := time_of(result))])
    ratios = _typical(_ratios(results))
    usual = _usual(results)
    if not usual and times < STEADY:
        return None
    return MachineNote(device, _sentence(subject, usual, times, ratios), _details(results, usual), usual)


def _sentence(subject: str, usual: Collection[FlagName], times: float, ratios: float) -> str:
    if times < STEADY:
        return f"Whether others used {subject} meanwhile cannot be known."
    where = f"{subject[0].upper()}{subject[1:]} is shared: times" if SHARED & set(usual) else f"On {subject}, times"
    beside = f", ratios by {format_percent(ratios)}" if ratios else ""
    return f"{where} vary by about {format_percent(times)} from run to run{beside}."


def _usual(results: Sequence[Result]) -> dict[FlagName, float | None]:
    """Return the usual size of each flag that most results carry."""
    counts = Counter(name for result in results for name in {flag.name for flag in result.flags} if name in WHY)
    common = [name for name, count in counts.items() if len(results) >= FEWEST and count > MOST * len(results)]
    sizes = {name: [flag.size for result in results for flag in result.flags if flag.name == name] for name in common}
    return {name: _median([size for size in found if size is not None]) for name, found in sizes.items()}


def _ratios(results: Sequence[Result]) -> list[Estimate]:
    """Return the ratio of each result to the first one of its group."""
    groups: dict[object, list[Result]] = defaultdict(list)
    for result in results:
        groups[result.case.group].append(result)
    pairs = ((group[0], other) for group in groups.values() for other in group[1:])
    return [found for first, other in pairs if (found := ratio_of(other, first))]


def _typical(estimates: Sequence[Estimate]) -> float:
    """Return by how much the estimates typically vary from run to run, as a fraction."""
    beside = [hypot(*(doubt.deviation for doubt in found.doubts if doubt.name != SAMPLES)) for found in estimates]
    return exp(median(beside)) - 1 if beside else 0.0


def _median(sizes: Sequence[float]) -> float | None:
    return median(sizes) if sizes else None


def _details(results: Sequence[Result], usual: Mapping[FlagName, float | None]) -> tuple[str, ...]:
    """Return how many results each usual flag has, with the evidence of the worst."""
    found = []
    for name in usual:
        flags = [flag for result in results for flag in result.flags if flag.name == name]
        worst = max(flags, key=lambda flag: flag.size or 0.0)
        found.append(f"{len(flags)} of {len(results)} measurements {WHY[name]}, e.g. {worst.evidence}")
    return tuple(found)
