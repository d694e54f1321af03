"""Is a copy as fast behind the flush of one library as behind that of another, and not faster than warm?"""

from collections.abc import Mapping

from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, Payload, judged, skipped
from gpuexplore.units import format_percent, format_seconds

SPREAD = 0.15  # of the slowest over the fastest
NOISE = 0.05


def run(bench: Bench) -> CheckFinding:
    """Return what the copy takes behind each flush."""
    libraries = bench.libraries()
    able = [name for name in libraries if name != "cupy"]  # whose own copy is no implementation
    if not able:
        return skipped("no library that copies runs here")
    found: dict[str, dict[str | None, float]] = {}
    figures: list[CheckFigure] = []
    for name in able:
        payloads = bench.probe("flush", library=name, flushes=",".join(libraries))
        found[name] = {payload["flush"]: payload["median_s"] for payload in payloads}
        figures += [_figure(payload) for payload in payloads]
    unfinished = [name for name in able if len(found[name]) < 1 + len(libraries)]
    return judged(
        [problem for name in able for problem in _problems(name, found[name])],
        figures,
        untried=f"{bench.no_answer()} for the copy of {', '.join(unfinished)}" if unfinished else "",
    )


def _problems(library: str, times_s: Mapping[str | None, float]) -> list[str]:
    """Return what is wrong with the seconds that a copy takes behind each flush; behind None it is warm."""
    found = {flush: time_s for flush, time_s in times_s.items() if flush is not None}
    warm_s = times_s.get(None)
    if warm_s is None or not found:
        return []
    slow, fast = max(found, key=found.__getitem__), min(found, key=found.__getitem__)
    problems = []
    if found[slow] > found[fast] * (1 + SPREAD):
        problems.append(
            f"the copy of {library} takes {format_seconds(found[slow])} behind the flush of {slow}, "
            f"{format_seconds(found[fast])} behind that of {fast}: more than {format_percent(SPREAD)} apart"
        )
    if found[fast] < warm_s * (1 - NOISE):
        problems.append(
            f"the copy of {library} takes {format_seconds(found[fast])} behind the flush of {fast}, and "
            f"{format_seconds(warm_s)} warm: cold caches make nothing faster"
        )
    return problems


def _figure(payload: Payload) -> CheckFigure:
    behind = f"behind the flush of {payload['flush']}" if payload["flush"] else "warm"
    return CheckFigure(f"copy of {payload['library']}, {behind}", payload["median_s"], "s")


CHECK = SelfCheck("flush", "The same copy behind each library's flush", run, kinds=("cuda",), share=0.1)
