"""Which clock does the GPU hold under two seconds of load?"""

from collections.abc import Sequence

from gpuexplore.model import Telemetry
from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.checks.ladder import product_size
from gpuexplore.selftest.contract import Check, Figure, Finding, judged, skipped
from gpuexplore.serialization import decode
from gpuexplore.statistics import median
from gpuexplore.units import format_percent, format_si

LOAD_S = 2.0
MAX_SHARE = 1.05  # of the rated clock: an overclocked card may exceed it, and no other
MIN_SHARE = 0.5  # without a reason


def run(bench: Bench) -> Finding:
    """Return the clock and what throttled it."""
    libraries = bench.libraries()
    library = next((name for name in ("torch", "numba_cuda") if name in libraries), None)
    if library is None:
        return skipped("no library that multiplies matrices runs here")
    size = str(product_size(bench))
    payloads = bench.probe("clock", library=library, size=size, seconds=f"{LOAD_S:g}")
    if not payloads:
        return skipped(bench.no_answer())
    (payload,) = payloads
    busy = [decode(Telemetry, seen) for seen in payload["busy"]]
    clocks = [seen.clock_hz for seen in busy if seen.clock_hz is not None]
    figures = [Figure("products under load", payload["rate_flop_per_s"], "FLOP/s", f"{library}, fp32, {size}")]
    if not clocks:
        return skipped("the driver does not tell the clock", tuple(figures))
    return _judged(bench, median(clocks), busy, figures)


def _judged(bench: Bench, held_hz: float, busy: Sequence[Telemetry], figures: list[Figure]) -> Finding:
    reasons = tuple(dict.fromkeys(reason for seen in busy for reason in seen.throttle_reasons))
    powers = [seen.power_w for seen in busy if seen.power_w is not None]
    figures += [
        Figure("held clock", held_hz, "Hz", f"median of {len(busy)} looks"),
        Figure("rated clock", bench.device.clock_hz, "Hz"),
        Figure("power", max(powers, default=None), "W", "highest seen"),
        Figure("throttled by", ", ".join(reasons) or "nothing"),
    ]
    rated_hz = bench.device.clock_hz
    if rated_hz is None:
        return judged([], figures)
    share, problems = held_hz / rated_hz, []
    words = f"{format_si(held_hz, 'Hz')} under load is {format_percent(share)} of the rated clock"
    if share > MAX_SHARE:
        problems.append(f"{words}: an overclocked card, or a reading of another GPU")
    elif share < MIN_SHARE and not reasons:
        problems.append(f"{words}, and the driver names no reason")
    return judged(problems, figures)


CHECK = Check("clock", "The clock held under load", run, kinds=("cuda",), share=0.1)
