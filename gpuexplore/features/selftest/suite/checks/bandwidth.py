"""The check that copies reach the memory's bandwidth and not more; and the share of a copy that other kernels reach."""

from collections.abc import Iterable, Sequence

from gpuexplore.core import (
    DISTURBED,
    Bandwidth,
    Case,
    Device,
    Options,
    Result,
    Status,
    format_bytes_per_s,
    format_percent,
)
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.features.selftest.suite.contract import (
    FRACTION,
    Bench,
    CheckFigure,
    CheckFinding,
    CheckVerdict,
    SelfCheck,
    ended,
    judged,
    skipped,
)
from gpuexplore.hardware import ASSUMED_CACHE_BYTES, CACHES_OVERFLOWN, GPU_KINDS
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.operations import operation_named

MAX_SHARE = 1.05  # of the peak: faster is a wrong time, or a cache
MIN_SHARE = {"cpu": 0.2} | dict.fromkeys(
    GPU_KINDS, 0.6
)  # slower: others use the device, or it is not the one that is described
ROW = 4096
DTYPE = DTYPES["fp32"]


def _run(bench: Bench) -> CheckFinding:
    """Return what copies reach, then kernels of ours."""
    cases = _cases(bench, "copy")
    if not cases:
        return skipped("no library that can copy runs here")
    results = bench.measure(cases)
    copies = _rates(results)
    problems = _failed(results)
    if not copies:
        return judged(problems, [], untried="every copy was too slow to be timed" if results else bench.no_answer())
    best = max(copies.values())
    peak = bench.device.bandwidth
    figures = [CheckFigure(f"copy, {case.implementation}", rate, "B/s") for case, rate in copies.items()]
    if peak:
        figures.append(CheckFigure("of the peak", best / peak.bytes_per_s, FRACTION, f"{peak.kind}: {peak.source}"))
    is_slow = peak is not None and best < MIN_SHARE[bench.device.kind] * peak.bytes_per_s
    flags = [{flag.name for flag in result.flags} for result in results if result.measurement]
    if not problems and is_slow and all(names & DISTURBED for names in flags):
        return skipped(
            "a copy was slow, but other work disturbed all of them: try again when nothing else runs", tuple(figures)
        )
    notes = () if peak else ("The memory bandwidth is unknown, so the expected rate of a copy is unknown.",)
    copied = judged([*problems, *_problems(best, peak, bench.device)], figures, notes)
    return copied if bench.is_quick else _with_kernels(copied, bench, best)


def _with_kernels(copied: CheckFinding, bench: Bench, best: float) -> CheckFinding:
    """Return what was found of copies, and what share of the best one kernels of ours reach."""
    memory_bound = ("vector_add", "multiply", "triad", "reduce_sum", "softmax", "layer_norm")
    cases = [case for name in memory_bound for case in _cases(bench, name, ("numba-cuda", "numba-cpu"))]
    results = bench.measure(cases)
    note = f"of the copy; goal {format_percent(0.9)}"
    shares = [
        CheckFigure(f"{case.operation}, {case.implementation}", rate / best, FRACTION, note)
        for case, rate in _rates(results).items()
    ]
    late = [case.operation for case in cases if case not in {result.case for result in results}]
    notes = (f"Out of time for {', '.join(late)}.",) if late else ()
    wrong = tuple(_failed(results))
    return CheckFinding(
        CheckVerdict.FAIL if wrong else copied.verdict, (*wrong, *copied.said, *notes), (*copied.figures, *shares)
    )


def _problems(best: float, peak: Bandwidth | None, device: Device) -> list[str]:
    if peak is None:
        return []
    share = best / peak.bytes_per_s
    least = MIN_SHARE[device.kind]
    if least <= share <= MAX_SHARE:
        return []
    why = (
        "above the memory bandwidth, so the measurement is wrong"
        if share > MAX_SHARE
        else f"at least {format_percent(least)} is expected"
    )
    rates = f"{format_bytes_per_s(best)} of {format_bytes_per_s(peak.bytes_per_s)}"
    return [f"the best copy reaches {rates}, {format_percent(share)}: {why}"]


def _cases(bench: Bench, name: str, only: Sequence[str] = ()) -> list[Case]:
    """Return the cases of an operation on arrays that leave the caches."""
    operation = operation_named(name)
    device = bench.device
    rows = [
        row
        for row in operation.usual
        if row.backend not in bench.unusable
        and (not only or row.name in only)
        and unsupported(operation, row, DTYPE, device) is None
    ]
    # What leaves caches little of it, and lasts at least 200 µs at the peak: starting a kernel is timed too.
    lasting = device.bandwidth.bytes_per_s * 200e-6 if device.bandwidth else 0.0
    copied_bytes = max(CACHES_OVERFLOWN * (device.cache_bytes or ASSUMED_CACHE_BYTES), int(lasting))
    count = copied_bytes // 2 // DTYPE.itemsize_bytes
    lengths = (count,) if len(operation.axes) == 1 else (max(1, count // ROW), ROW)
    shape = type(operation.shape_of_size(1))(tuple(zip(operation.axes, lengths, strict=True)))
    options = Options(cache="warm" if device.kind == "cpu" else "cold")
    return [Case(name, shape, DTYPE.name, row.name, device.id, options) for row in rows]


def _rates(results: Iterable[Result]) -> dict[Case, float]:
    """Return the bytes per second of each case that was timed."""
    return {
        result.case: operation_named(result.case.operation).byte_count(result.case.shape, DTYPE)
        / result.measurement.median_s
        for result in results
        if result.measurement
    }


def _failed(results: Iterable[Result]) -> list[str]:
    return [ended(result) for result in results if result.status not in (Status.OK, Status.SKIPPED)]


CHECK = SelfCheck("bandwidth", "Copies against the memory's peak", _run, share=0.15)
