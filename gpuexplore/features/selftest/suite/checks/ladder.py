"""The share of the vendor's library that each rung of the ladder of products reaches: goals, not requirements."""

from collections.abc import Iterator, Sequence

from gpuexplore.core import (
    Case,
    Result,
    Status,
    Telemetry,
    decode,
    format_flop_per_s,
    format_percent,
    format_si,
    median,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.selftest.suite.contract import (
    FRACTION,
    Bench,
    CheckFigure,
    CheckFinding,
    SelfCheck,
    judged,
    skipped,
)
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.flags import FAR_ABOVE
from gpuexplore.operations import Implementation, Operation, operation_named

GOALS = {"fp32": 0.85, "bf16": 0.6, "fp16": 0.6}
LARGEST = 4096


def _product_size(bench: Bench) -> int:
    """Return the largest power of two whose product in fp32 takes at most 10 ms at the device's peak."""
    peak = bench.device.peak("fp32", "vector")
    size = LARGEST // 2 if bench.is_quick or peak is None else LARGEST
    while peak and size > 32 and 2 * size**3 / peak.flop_per_s > 10e-3:
        size //= 2
    return size


def _run(bench: Bench) -> CheckFinding:
    """Return the shares of all rungs, of one size."""
    operation = operation_named("matmul")
    size = _product_size(bench)
    shape = operation.shape_of_size(size)
    cases = [
        Case(operation.name, shape, dtype, row.name, bench.device.id)
        for dtype in GOALS
        for row in _rows(operation, dtype, bench)
    ]
    vendor = operation.vendor_library.name
    if all(case.implementation == vendor for case in cases):
        return skipped("no library that our kernels need runs here")
    results = bench.measure(cases)
    figures = [figure for dtype in GOALS for figure in _figures(results, vendor, dtype, operation)]
    problems = [
        f"{result.case.implementation} in {result.case.dtype} ended {result.status}: {result.reason}"
        for result in results
        if result.status not in (Status.OK, Status.SKIPPED)
    ]
    late = [case for case in cases if case not in {result.case for result in results}]
    dtypes = ", ".join(dict.fromkeys(case.dtype for case in late))
    return judged(
        problems,
        figures,
        tuple(_notes(cases, results, vendor, size)),
        untried=f"{bench.no_answer()} for {len(late)} of {len(cases)} rungs, in {dtypes}" if late else "",
    )


def _rows(operation: Operation, dtype: str, bench: Bench) -> list[Implementation]:
    """Return the vendor's library, and what we wrote against it."""
    rows = [
        operation.vendor_library,
        *(row for row in operation.implementations if row.geometry or row.backend == "triton"),
    ]
    return [
        row
        for row in rows
        if row.backend not in bench.unusable and unsupported(operation, row, dtype_named(dtype), bench.device) is None
    ]


def _notes(cases: Sequence[Case], results: Sequence[Result], vendor: str, size: int) -> Iterator[str]:
    yield f"Products of {size} x {size}, caches cold. Goals are aims, not requirements."
    if all(case.implementation != vendor for case in cases):
        yield f"{vendor} does not run here: rates have no reference."
    slow = [
        f"{result.case.implementation} in {result.case.dtype}" for result in results if result.status is Status.SKIPPED
    ]
    if slow:
        yield f"Too slow to be timed, and not checked: {', '.join(slow)}."


def _figures(results: Sequence[Result], vendor: str, dtype: str, operation: Operation) -> Iterator[CheckFigure]:
    """Yield what each implementation reaches of the vendor's library; its rate where that was not timed."""
    rates = {
        result.case.implementation: operation.flop_count(result.case.shape) / result.measurement.median_s
        for result in results
        if result.measurement and result.case.dtype == dtype
    }
    vendor_rate = rates.pop(vendor, None)
    if vendor_rate is None:
        yield from (CheckFigure(f"{name}, {dtype}", rate, "FLOP/s") for name, rate in rates.items())
        return
    yield CheckFigure(f"{vendor}, {dtype}", vendor_rate, "FLOP/s", "the vendor's library")
    for name, rate in rates.items():
        note = f"of the vendor's library; {format_flop_per_s(rate)}"
        yield CheckFigure(f"{name}, {dtype}", rate / vendor_rate, FRACTION, note)
    if rates:
        best = max(rates.values()) / vendor_rate
        word = "reached" if best >= GOALS[dtype] else "not reached"
        yield CheckFigure(f"best of ours, {dtype}", best, FRACTION, f"goal {format_percent(GOALS[dtype])} {word}")


CHECK = SelfCheck(
    "ladder", "The ladder of products against the vendor's library", _run, kinds=("cuda",), needs_s=10.0, share=0.2
)


# The clock that the GPU sustains under two seconds of load.


def _run_clock(bench: Bench) -> CheckFinding:
    """Return the clock and what throttled it."""
    libraries = bench.libraries()
    library = next((name for name in ("torch", "numba_cuda") if name in libraries), None)
    if library is None:
        return skipped("no library that multiplies matrices runs here")
    size = str(_product_size(bench))
    payloads = bench.probe("clock", library=library, size=size, seconds="2")
    if not payloads:
        return skipped(bench.no_answer())
    (payload,) = payloads
    busy = [decode(Telemetry, seen) for seen in payload["busy"]]
    clocks = [seen.clock_hz for seen in busy if seen.clock_hz is not None]
    figures = [CheckFigure("products under load", payload["rate_flop_per_s"], "FLOP/s", f"{library}, fp32, {size}")]
    if not clocks:
        return skipped("the driver does not report the clock", tuple(figures))
    figures += [
        CheckFigure("held clock", median(clocks), "Hz", f"median of {len(clocks)} looks"),
        CheckFigure("rated clock", bench.device.clock_hz, "Hz"),
        CheckFigure("highest clock", payload["highest_clock_hz"], "Hz", "that the driver allows"),
    ]
    return _judged_clock(median(clocks), bench.device.clock_hz, payload["highest_clock_hz"], busy=busy, figures=figures)


def _judged_clock(
    sustained_hz: float,
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
    return judged(_clock_problems(sustained_hz, rated_hz, highest_hz, is_throttled=bool(reasons)), figures)


def _clock_problems(
    sustained_hz: float, rated_hz: float | None, highest_hz: float | None, *, is_throttled: bool
) -> list[str]:
    """Return what is wrong with a clock; without the driver's highest no board boosts further above its rated one."""
    sustained = f"{format_si(sustained_hz, 'Hz')} under load"
    if highest_hz and sustained_hz > 1.02 * highest_hz:  # more than one step of the clock
        return [f"{sustained} is above {format_si(highest_hz, 'Hz')}, the driver's limit: is it another GPU's clock?"]
    if not rated_hz:
        return []
    words = f"{sustained} is {format_percent(sustained_hz / rated_hz)} of the rated clock"
    if not highest_hz and sustained_hz > FAR_ABOVE * rated_hz:
        return [f"{words}: no board boosts that far; is it another GPU's clock?"]
    if sustained_hz < 0.5 * rated_hz and not is_throttled:
        return [f"{words}, and the driver reports no reason"]
    return []


CLOCK = SelfCheck("clock", "The clock held under load", _run_clock, kinds=("cuda",), share=0.1)
