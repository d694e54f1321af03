"""What share of the vendor's library does each rung of the ladder of products reach? Goals are told, not required."""

from collections.abc import Iterator, Sequence

from gpuexplore.dtypes import dtype_named
from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import SelfCheck
from gpuexplore.features.selftest.suite.contract import FRACTION, CheckFigure, CheckFinding, judged, skipped
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.model import Case, Result, Status
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.units import format_flop_per_s, format_percent

GOALS = {"fp32": 0.85, "bf16": 0.6, "fp16": 0.6}
LARGEST, SMALLEST = 4096, 32
PRODUCT_S = 10e-3  # at the peak of fp32: slow rungs take a hundred times as long


def product_size(bench: Bench) -> int:
    """Return the largest power of two whose product in fp32 takes at most 10 ms at the device's peak."""
    peak = bench.device.peak("fp32", "vector")
    size = LARGEST // 2 if bench.is_quick or peak is None else LARGEST
    while peak and size > SMALLEST and 2 * size**3 / peak.flop_per_s > PRODUCT_S:
        size //= 2
    return size


def run(bench: Bench) -> CheckFinding:
    """Return the shares of all rungs, of one size."""
    operation, size = operation_named("matmul"), product_size(bench)
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
    problems = [_failed(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]
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
        yield f"{vendor} does not run here: rates have no share."
    slow = [
        f"{result.case.implementation} in {result.case.dtype}" for result in results if result.status is Status.SKIPPED
    ]
    if slow:
        yield f"Too slow to be timed, and not checked: {', '.join(slow)}."


def _failed(result: Result) -> str:
    return f"{result.case.implementation} in {result.case.dtype} ended {result.status}: {result.reason}"


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
    "ladder", "The ladder of products against the vendor's library", run, kinds=("cuda",), needs_s=10.0, share=0.2
)
