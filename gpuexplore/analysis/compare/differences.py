"""What is not the same in two runs beside their times, and could explain these."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gpuexplore.model import Environment, Result
from gpuexplore.statistics import median
from gpuexplore.units import UNKNOWN, format_si

CLOCK_CHANGED = 1.03  # a clock moves while it is read
FLAG_SHARE = 0.25  # of the results by which two runs differ in a flag


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs, in words."""

    what: str
    before: str
    after: str


def differences(pairs: Sequence[tuple[Result, Result]]) -> tuple[Difference, ...]:
    """Return what differs between the results of the same cases, (before, after)."""
    before, after = ([pair[place] for pair in pairs] for place in (0, 1))
    found = [*_named(before, after), *_libraries(before, after), *_settings(before, after)]
    found += [*_clocks(before, after), *_flags(before, after)]
    return tuple(found)


def _named(before: Sequence[Result], after: Sequence[Result]) -> Iterable[Difference]:
    for what, tell in FACTS.items():
        sides = [sorted({text for result in results if (text := tell(result))}) for results in (before, after)]
        if sides[0] != sides[1] and any(sides):
            yield Difference(what, *(", ".join(texts) or UNKNOWN for texts in sides))


def _libraries(before: Sequence[Result], after: Sequence[Result]) -> Iterable[Difference]:
    return _of_mapping(before, after, lambda environment: environment.libraries, "")


def _settings(before: Sequence[Result], after: Sequence[Result]) -> Iterable[Difference]:
    return _of_mapping(before, after, lambda environment: environment.settings, "setting ")


def _of_mapping(
    before: Sequence[Result],
    after: Sequence[Result],
    of: Callable[[Environment], Mapping[str, str]],
    prefix: str,
) -> Iterable[Difference]:
    sides = [_merged(results, of) for results in (before, after)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        old, new = (side.get(name, "none") for side in sides)
        if old != new:
            yield Difference(f"{prefix}{name}", old, new)


def _merged(results: Sequence[Result], of: Callable[[Environment], Mapping[str, str]]) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for result in results:
        if result.environment:
            found |= of(result.environment)
    return found


def _clocks(before: Sequence[Result], after: Sequence[Result]) -> Iterable[Difference]:
    old, new = (_clock_hz(results) for results in (before, after))
    if old and new and not 1 / CLOCK_CHANGED < new / old < CLOCK_CHANGED:
        yield Difference("clock", format_si(old, "Hz"), format_si(new, "Hz"))


def _clock_hz(results: Sequence[Result]) -> float | None:
    clocks = [result.environment.after.clock_hz for result in results if result.environment]
    known = [clock for clock in clocks if clock]
    return median(known) if known else None


def _flags(before: Sequence[Result], after: Sequence[Result]) -> Iterable[Difference]:
    """Yield flags that many more results carry on one side."""
    names = dict.fromkeys(flag.name for result in (*before, *after) for flag in result.flags)
    for name in names:
        counts = [sum(any(flag.name == name for flag in result.flags) for result in side) for side in (before, after)]
        if abs(counts[0] - counts[1]) > FLAG_SHARE * len(before):
            old, new = (f"{count} of {len(before)}" for count in counts)
            yield Difference(f"flag {name.replace('_', ' ')}", old, new)


def _of(tell: Callable[[Environment], object]) -> Callable[[Result], str | None]:
    def told(result: Result) -> str | None:
        value = tell(result.environment) if result.environment else None
        return None if value is None else str(value)

    return told


def _threads(result: Result) -> str | None:
    threads = result.case.options.threads or (result.environment and result.environment.threads)
    return str(threads) if threads else None


FACTS: Mapping[str, Callable[[Result], str | None]] = MappingProxyType(
    {
        "device": _of(lambda environment: environment.device.title),
        "driver": _of(lambda environment: environment.device.driver),
        "cores": _of(lambda environment: environment.device.cores),
        "gpuexplore": _of(lambda environment: environment.app_version),
        "commit": _of(lambda environment: environment.commit),
        "Python": _of(lambda environment: environment.python),
        "platform": _of(lambda environment: environment.platform),
        "threads": _threads,
        "governor": _of(lambda environment: environment.governor),
        "cache state": lambda result: result.case.options.cache,
        "layout": lambda result: result.case.options.layout,
        "alignment": lambda result: result.case.options.align,
    }
)
