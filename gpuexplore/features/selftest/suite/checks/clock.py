"""Which clock does the GPU hold under two seconds of load?"""

from collections.abc import Sequence

from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.checks.ladder import product_size
from gpuexplore.features.selftest.suite.contract import CheckFigure, CheckFinding, judged, skipped
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.model import Telemetry
from gpuexplore.serialization import decode
from gpuexplore.statistics import median
from gpuexplore.units import format_percent, format_si

LOAD_S = 2.0
READING = 1.02  # a step of the clock above the highest
MIN_SHARE = 0.5  # of the rated clock, without a reason


def run(bench: Bench) -> CheckFinding:
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
    figures = [CheckFigure("products under load", payload["rate_flop_per_s"], "FLOP/s", f"{library}, fp32, {size}")]
    if not clocks:
        return skipped("the driver does not tell the clock", tuple(figures))
    figures += [
        CheckFigure("held clock", median(clocks), "Hz", f"median of {len(clocks)} looks"),
        CheckFigure("rated clock", bench.device.clock_hz, "Hz"),
        CheckFigure("highest clock", payload["highest_clock_hz"], "Hz", "that the driver allows"),
    ]
    return _judged(median(clocks), bench.device.clock_hz, payload["highest_clock_hz"], busy=busy, figures=figures)


def _judged(
    held_hz: float,
    rated_hz: float | None,
    highest_hz: float | None,
    *,
    busy: Sequence[Telemetry],
    figures: list[CheckFigure],
) -> CheckFinding:
    reasons = tuple(dict.fromkeys(reason for seen in busy for reason in seen.throttle_reasons))
    powers = [seen.power_w for seen in busy if seen.power_w is not None]
    figures += [
        CheckFigure("power", max(powers, default=None), "W", "highest seen"),
        CheckFigure("throttled by", ", ".join(reasons) or "nothing"),
    ]
    return judged(_problems(held_hz, rated_hz, highest_hz, is_throttled=bool(reasons)), figures)


def _problems(held_hz: float, rated_hz: float | None, highest_hz: float | None, *, is_throttled: bool) -> list[str]:
    """Return what is wrong with a clock; without the driver's highest no board boosts further above its rated one."""
    held = f"{format_si(held_hz, 'Hz')} under load"
    if highest_hz and held_hz > READING * highest_hz:
        return [f"{held} is above {format_si(highest_hz, 'Hz')}, the highest that the driver allows: of another GPU?"]
    if not rated_hz:
        return []
    words = f"{held} is {format_percent(held_hz / rated_hz)} of the rated clock"
    if not highest_hz and held_hz > FAR_ABOVE * rated_hz:
        return [f"{words}: no board boosts so far; the clock of another GPU?"]
    if held_hz < MIN_SHARE * rated_hz and not is_throttled:
        return [f"{words}, and the driver names no reason"]
    return []


CHECK = SelfCheck("clock", "The clock held under load", run, kinds=("cuda",), share=0.1)
