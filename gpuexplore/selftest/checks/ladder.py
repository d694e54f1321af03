"""What share of the vendor's library does each rung of the ladder of products reach? Goals are told, not required."""

from collections.abc import Mapping

from gpuexplore.dtypes import dtype_named
from gpuexplore.measure.candidate import unsupported
from gpuexplore.model import Case, Device, Result, Status
from gpuexplore.operations import operation_named
from gpuexplore.operations.contract import Implementation, Operation
from gpuexplore.selftest.bench import Bench
from gpuexplore.selftest.contract import FRACTION, Check, Figure, Finding, judged, skipped
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


def run(bench: Bench) -> Finding:
    """Return the shares of all rungs, of one size."""
    operation, size = operation_named("matmul"), product_size(bench)
    problems: list[str] = []
    figures: list[Figure] = []
    for dtype in GOALS:
        rows = _rows(operation, dtype, bench.device)
        shape = operation.shape_of_size(size)
        results = bench.measure([Case(operation.name, shape, dtype, row.name, bench.device.id) for row in rows])
        problems += [_failed(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]
        times = {result.case.implementation: result.measurement.median_s for result in results if result.measurement}
        figures += _shares(times, operation.vendor_library.name, dtype, operation.flop_count(shape))
    if not figures and not problems:
        return skipped("nothing was measured in the time there was")
    return judged(problems, figures, (f"Products of {size} x {size}, caches cold. Goals are aims, not requirements.",))


def _rows(operation: Operation, dtype: str, device: Device) -> list[Implementation]:
    """Return the vendor's library, and what we wrote against it."""
    rows = [
        operation.vendor_library,
        *(row for row in operation.implementations if row.geometry or row.backend == "triton"),
    ]
    return [row for row in rows if unsupported(operation, row, dtype_named(dtype), device) is None]


def _failed(result: Result) -> str:
    return f"{result.case.implementation} in {result.case.dtype} ended {result.status}: {result.reason}"


def _shares(times: Mapping[str, float], vendor: str, dtype: str, flop_count: int) -> list[Figure]:
    """Return what each implementation reaches of the vendor's library; nothing where that was not timed."""
    if vendor not in times:
        return []
    vendor_s = times[vendor]
    figures = [Figure(f"{vendor}, {dtype}", flop_count / vendor_s, "FLOP/s", "the vendor's library")]
    shares = {name: vendor_s / time_s for name, time_s in times.items() if name != vendor}
    for name, share in shares.items():
        rate = format_flop_per_s(flop_count / times[name])
        figures.append(Figure(f"{name}, {dtype}", share, FRACTION, f"of the vendor's library; {rate}"))
    if shares:
        best = max(shares.values())
        word = "reached" if best >= GOALS[dtype] else "not reached"
        figures.append(Figure(f"best of ours, {dtype}", best, FRACTION, f"goal {format_percent(GOALS[dtype])} {word}"))
    return figures


CHECK = Check(
    "ladder", "The ladder of products against the vendor's library", run, kinds=("cuda",), needs_s=10.0, share=0.2
)
