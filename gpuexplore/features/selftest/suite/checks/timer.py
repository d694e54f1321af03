"""The checks of timers: each library's reads a kernel of known length right, cold and warm, from 5 µs on."""

from collections.abc import Mapping, Sequence
from operator import itemgetter

from gpuexplore.core import GpuExploreError, format_percent, format_seconds
from gpuexplore.features.selftest.suite.contract import (
    Bench,
    CheckFigure,
    CheckFinding,
    Payload,
    SelfCheck,
    judged,
    skipped,
)


def _run(bench: Bench) -> CheckFinding:
    """Return what every library's timer reads."""
    problems: list[str] = []
    figures: list[CheckFigure] = []
    unfinished: list[str] = []
    for library in bench.libraries():
        try:
            payloads = bench.probe("timer", library=library)
        except GpuExploreError as error:
            problems.append(f"{library}: {error}")
            continue
        if not payloads or bench.is_over():
            unfinished.append(library)
        figures += [_figure(payload) for payload in payloads]
        known = [payload for payload in payloads if "known_s" in payload]
        problems += filter(None, (_problem(payload, bench.device.kind) for payload in known))
        problems += filter(None, (_slope_problem(known, bench.device.kind, cache) for cache in ("warm", "cold")))
    if not bench.libraries():
        return skipped("no library runs here, so there is no timer")
    untried = f"{bench.no_answer()} for the timer of {', '.join(unfinished)}" if unfinished else ""
    return judged(problems, figures, untried=untried)


def _problem(payload: Payload, kind: str) -> str | None:
    low_s, high_s = payload["known_s"]
    read_s = payload["read_s"]
    # Timed as well: the launch, the fetch of code from an emptied cache, and on a CPU that of the interpreter.
    call_s = 30e-6 if (kind, payload["cache"]) == ("cpu", "cold") else 6e-6
    step_s = 0.6e-6  # events count half microseconds
    if 0.97 * low_s - step_s <= read_s <= 1.05 * high_s + call_s:
        return None
    return (
        f"{payload['library']} reads {format_seconds(read_s)} for a kernel of {format_seconds(high_s)} "
        f"({payload['cache']}): {read_s / high_s:.3g} times as long"
    )


def _slope_problem(known: Sequence[Payload], kind: str, cache: str) -> str | None:
    """Return what is wrong with the difference between a long and a short kernel: starting them is not in it."""
    read = sorted((payload for payload in known if payload["cache"] == cache), key=itemgetter("length_s"))
    if len(read) < 2:
        return None
    short = read[0]
    long = read[-1]
    read_s = long["read_s"] - short["read_s"]
    low_s = long["known_s"][0] - short["known_s"][1]
    high_s = long["known_s"][1] - short["known_s"][0]
    varies_s = 10e-6 if (kind, cache) == ("cpu", "cold") else 0.0  # what a cold call costs, from kernel to kernel
    if 0.95 * low_s - varies_s <= read_s <= 1.05 * high_s + varies_s:
        return None
    long_text, short_text = (format_seconds(payload["length_s"]) for payload in (long, short))
    lengths = f"a kernel of {long_text} reads {format_seconds(read_s)} longer than one of {short_text} ({cache})"
    return f"{long['library']}: {lengths}, not {format_seconds(high_s)}"


def _figure(payload: Payload) -> CheckFigure:
    if "known_s" not in payload:
        return CheckFigure(
            f"{payload['library']}, nothing", payload["read_s"], "s", "between two readings of the clock"
        )
    name = f"{payload['library']}, {format_seconds(payload['length_s'])}, {payload['cache']}"
    return CheckFigure(name, payload["read_s"], "s", f"known: {format_seconds(payload['known_s'][1])}")


CHECK = SelfCheck("timer", "Timer against a kernel of known length", _run, kinds=("cpu", "cuda"), share=0.15)


# A copy is as fast behind the flush of one library as behind that of another, and not faster than warm.


def _run_flush(bench: Bench) -> CheckFinding:
    """Return what the copy takes behind each flush."""
    libraries = bench.libraries()
    able = [name for name in libraries if name != "cupy"]  # whose own copy is no implementation
    if not able:
        return skipped("no library that can copy runs here")
    found: dict[str, dict[str | None, float]] = {}
    figures: list[CheckFigure] = []
    for name in able:
        payloads = bench.probe("flush", library=name, flushes=",".join(libraries))
        found[name] = {payload["flush"]: payload["median_s"] for payload in payloads}
        for payload in payloads:
            behind = f"behind the flush of {payload['flush']}" if payload["flush"] else "warm"
            figures.append(CheckFigure(f"copy of {payload['library']}, {behind}", payload["median_s"], "s"))
    unfinished = [name for name in able if len(found[name]) < 1 + len(libraries)]
    return judged(
        [problem for name in able for problem in _flush_problems(name, found[name])],
        figures,
        untried=f"{bench.no_answer()} for the copy of {', '.join(unfinished)}" if unfinished else "",
    )


def _flush_problems(library: str, times_s: Mapping[str | None, float]) -> list[str]:
    """Return what is wrong with the seconds that a copy takes behind each flush; behind None it is warm."""
    found = {flush: time_s for flush, time_s in times_s.items() if flush is not None}
    warm_s = times_s.get(None)
    if warm_s is None or not found:
        return []
    slow = max(found, key=found.__getitem__)
    fast = min(found, key=found.__getitem__)
    problems = []
    spread = 0.15  # of the slowest over the fastest
    if found[slow] > found[fast] * (1 + spread):
        problems.append(
            f"the copy of {library} takes {format_seconds(found[slow])} behind the flush of {slow}, "
            f"{format_seconds(found[fast])} behind that of {fast}: more than {format_percent(spread)} apart"
        )
    if found[fast] < 0.95 * warm_s:
        problems.append(
            f"the copy of {library} takes {format_seconds(found[fast])} behind the flush of {fast}, and "
            f"{format_seconds(warm_s)} warm: a call with cold caches cannot be faster"
        )
    return problems


FLUSH = SelfCheck("flush", "The same copy behind each library's flush", _run_flush, kinds=("cuda",), share=0.1)
