"""Is a copy as fast behind the flush of one library as behind that of another, and not faster than warm?"""

from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.contract import Check, Figure, Finding, Payload, judged, skipped
from gpuexplore.units import format_percent, format_seconds

SPREAD = 0.15  # of the slowest over the fastest
NOISE = 0.05


def run(bench: Bench) -> Finding:
    """Return what the copy takes behind each flush."""
    libraries = bench.libraries()
    able = [name for name in libraries if name != "cupy"]  # whose own copy is no implementation
    if not able:
        return skipped("no library that copies runs here")
    payloads = [payload for name in able for payload in bench.probe("flush", library=name, flushes=",".join(libraries))]
    if not payloads:
        return skipped(bench.no_answer())
    figures = [_figure(payload) for payload in payloads]
    return judged([problem for name in able for problem in _problems(name, payloads)], figures)


def _problems(library: str, payloads: list[Payload]) -> list[str]:
    found = {payload["flush"]: payload["median_s"] for payload in payloads if payload["library"] == library}
    warm_s = found.pop(None, None)
    if warm_s is None or not found:
        return [f"the copy of {library} was not timed in the time there was"]
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


def _figure(payload: Payload) -> Figure:
    behind = f"behind the flush of {payload['flush']}" if payload["flush"] else "warm"
    return Figure(f"copy of {payload['library']}, {behind}", payload["median_s"], "s")


CHECK = Check("flush", "The same copy behind each library's flush", run, kinds=("cuda",), share=0.1)
