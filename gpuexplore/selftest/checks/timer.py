"""Does each library's timer read a kernel of known length right, cold and warm, from 5 µs on?"""

from gpuexplore.errors import GpuExploreError
from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.contract import Check, Figure, Finding, Payload, judged, skipped
from gpuexplore.units import format_seconds

TOO_LONG, TOO_LONG_S = 0.05, 6e-6  # starting a kernel, and fetching its code when the cache was emptied, is timed too
COLD_CALL_S = 30e-6  # a CPU fetches the interpreter that makes the call from memory again
TOO_SHORT, TOO_SHORT_S = 0.03, 0.6e-6  # events count half microseconds


def run(bench: Bench) -> Finding:
    """Return what every library's timer reads."""
    problems: list[str] = []
    figures: list[Figure] = []
    for library in bench.libraries():
        try:
            payloads = bench.probe("timer", library=library)
        except GpuExploreError as error:
            problems.append(f"{library}: {error}")
            continue
        figures += [_figure(payload) for payload in payloads]
        problems += [problem for payload in payloads if (problem := _problem(payload, bench.device.kind))]
    if not figures and not problems:
        return skipped(bench.no_answer() if bench.libraries() else "no library runs here, so there is no timer")
    return judged(problems, figures)


def _problem(payload: Payload, kind: str) -> str | None:
    if "known_s" not in payload:
        return None
    (low_s, high_s), read_s = payload["known_s"], payload["read_s"]
    call_s = COLD_CALL_S if (kind, payload["cache"]) == ("cpu", "cold") else TOO_LONG_S
    if low_s * (1 - TOO_SHORT) - TOO_SHORT_S <= read_s <= high_s * (1 + TOO_LONG) + call_s:
        return None
    return (
        f"{payload['library']} reads {format_seconds(read_s)} for a kernel of {format_seconds(high_s)} "
        f"({payload['cache']}): {read_s / high_s:.3g} times as long"
    )


def _figure(payload: Payload) -> Figure:
    if "known_s" not in payload:
        return Figure(f"{payload['library']}, nothing", payload["read_s"], "s", "between two readings of the clock")
    name = f"{payload['library']}, {format_seconds(payload['length_s'])}, {payload['cache']}"
    return Figure(name, payload["read_s"], "s", f"known: {format_seconds(payload['known_s'][1])}")


CHECK = Check("timer", "Timer against a kernel of known length", run, share=0.15)
