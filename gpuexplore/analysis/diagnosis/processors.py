"""The diagnoses of one kind of processor: waves and copies of a GPU; a slow kernel and idle cores of a CPU.

Diagnoses of number formats: emulated dtypes, TF32 instead of fp32, and faster results in other dtypes.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.occupancy import Waves, occupancy, waves
from gpuexplore.analysis.roofs import ridge_point
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.verdict import Estimate, compare, ratio_of
from gpuexplore.backends import load_backend
from gpuexplore.core import (
    Device,
    Peak,
    Result,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_ratio,
    format_seconds,
)
from gpuexplore.core.dtypes import DTYPES, DType, dtype_named
from gpuexplore.hardware import CAPABILITIES, row_of
from gpuexplore.operations.compiled import recorded

WORTH_A_SENTENCE = 1.2

CLOSE_TO_A_LIMIT = 0.75


def emulated(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report an emulated dtype, its cost, and the dtype to try instead."""
    flag = analyzed.flag("emulated")
    device = analyzed.device
    case = analyzed.case
    if flag is None or device is None:
        return None
    instead = _native_instead(analyzed, device)
    why = flag.evidence.rstrip(".") + (f"; try {instead.name}, which has native units here" if instead else "")
    units = f"{device.name} has units for {', '.join(device.native) or 'none of the supported dtypes'}"
    slower = slower_than_native(analyzed)
    if slower is None:
        costs = _faster_than_native(analyzed) or (", and converting limits it" if _is_far_from_limits(analyzed) else "")
        return Diagnosis(
            "emulated", f"{analyzed.label} is emulated{costs}: {why}.", f"{_time(analyzed.result)}; {units}"
        )
    times, fast = slower
    sentence = (
        f"{case.implementation} takes {format_ratio(times.value)} as long in {case.dtype} as in {fast.case.dtype}"
    )
    figures = f"{_time(analyzed.result)} in {case.dtype}, {_time(fast)} in {fast.case.dtype}"
    return Diagnosis("emulated", f"{sentence}: {why}.", f"{figures}; {units}")


def _is_far_from_limits(analyzed: AnalyzedResult) -> bool:
    """Return whether neither call overhead nor a nearby limit can explain its time."""
    known = [share for share in (analyzed.compute_fraction, analyzed.serving_fraction) if share]
    far = all(compare(share, CLOSE_TO_A_LIMIT).relation == "below" for share in known)
    return analyzed.bound != "overhead" and bool(known) and far


def slower_than_native(analyzed: AnalyzedResult) -> tuple[Estimate, Result] | None:
    """Return how many times longer an emulated result takes than the fastest native one of its kind, and that one.

    None when it surely takes not much longer, or nothing native was measured with it.
    """
    worst = _worst_against_native(analyzed)
    if worst is None or worst[0].value < WORTH_A_SENTENCE or compare(worst[0], 1.0).relation != "above":
        return None
    return worst


def _faster_than_native(analyzed: AnalyzedResult) -> str | None:
    """Return how it compares with the fastest native one of its kind where it is no slower; None where it may be."""
    worst = _worst_against_native(analyzed)
    if worst is None or compare(worst[0], WORTH_A_SENTENCE).relation != "below":
        return None
    if compare(worst[0], 1.0).relation == "below":
        return f", yet {format_ratio(1 / worst[0].value)} as fast as in {worst[1].case.dtype}"
    return f", yet about as fast as in {worst[1].case.dtype}"


def _worst_against_native(analyzed: AnalyzedResult) -> tuple[Estimate, Result] | None:
    """Return the largest of how many times longer an emulated result takes than native ones of its kind."""
    if not _is_emulated(analyzed.result):
        return None
    native = [pair for pair in _in_other_dtypes(analyzed) if not _is_emulated(pair[1])]
    return max(native, key=lambda pair: pair[0].value, default=None)


def tf32(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report the use of TF32 by a matmul on tensor cores that support it, and its effect on accuracy."""
    device = analyzed.device
    dtype = dtype_named(analyzed.result.case.dtype)
    if device is None or not analyzed.operation.is_matrix_product or analyzed.median_s is None:
        return None
    if dtype.matrix_only and dtype.cut_from_fp32:
        wide = dtype_named(dtype.accumulate)
        kept = f"inputs keep {dtype.significand_bits} of the {wide.significand_bits} significand bits of {wide.name}"
        accuracy = analyzed.result.accuracy
        error = accuracy.relative_error if accuracy else None
        measured = f"; the result is off by {error:.1e} of its norm" if error is not None else ""
        return Diagnosis(
            "tf32",
            f"{dtype.name} was on: {kept}, accumulation keeps all. Choose {wide.name} if that is too few.",
            f"rounding an input changes it by up to {format_percent(dtype.unit_roundoff)}{measured}",
        )
    rows = (row for row in DTYPES.values() if row.name in device.native)
    short = next(
        (row for row in rows if row.matrix_only and row.array_name == dtype.array_name and row is not dtype), None
    )
    if short is None or analyzed.bound in ("memory", "cache", "overhead"):
        return None
    own = analyzed.default_peak
    other = device.peak(short.name, "matrix")
    gain = "may be faster"
    evidence = f"{device.name} has {short.name} units"
    if own and other:
        gain = f"allows up to {format_ratio(other.flop_per_s / own.flop_per_s)} as much"
        evidence = (
            f"peaks: {format_flop_per_s(own.flop_per_s)} in {own.dtype}, "
            f"{format_flop_per_s(other.flop_per_s)} in {short.name}"
        )
    return Diagnosis(
        "tf32",
        f"{short.name} was off, as it always is in {dtype.name} here: where {short.significand_bits} significand bits "
        f"are enough, {short.name} {gain}.",
        evidence,
    )


def _native_instead(analyzed: AnalyzedResult, device: Device) -> DType | None:
    """Return the dtype nearest in size, not above that of sums, that is computed in its own units; None: there is none.

    One that was measured with it and is no faster is no advice.
    """
    dtype = dtype_named(analyzed.result.case.dtype)
    widest = dtype_named(dtype.accumulate).bits
    rows = (row for row in DTYPES.values() if row.name in device.native and not row.matrix_only)
    fitting = [row for row in rows if dtype.bits <= row.bits <= widest and not analyzed.operation.unsupported(row)]
    return min((row for row in fitting if _helps(analyzed, row)), key=lambda row: row.bits, default=None)


def _helps(analyzed: AnalyzedResult, dtype: DType) -> bool:
    case = analyzed.result.case
    this = analyzed.result.measurement
    other = next((sibling for sibling in analyzed.siblings if sibling.case == replace(case, dtype=dtype.name)), None)
    if this and other and other.measurement and this.median_s < WORTH_A_SENTENCE * other.measurement.median_s:
        return False
    return analyzed.implementation.computes_in(dtype.name, analyzed.device)[0] == dtype.name


def _is_emulated(result: Result) -> bool:
    return any(flag.name == "emulated" for flag in result.flags)


def _time(result: Result) -> str:
    return format_seconds(result.measurement.median_s if result.measurement else None)


# Comparison with the other results of a run: faster implementations of the same work, and faster dtypes.


def format_share(share: Estimate | None) -> str:
    """Return a value, or the interval it lies in where that is wide; of a fraction no more than the whole."""
    if share is None or share.low is None or share.high is None:
        return share.range if share else "an unknown share"
    surely_known = 1.1  # ends of an interval that are nearer to each other are shown as one figure
    if share.high <= surely_known * share.low:
        return share.words(share.value)
    most = max(1.0, share.value) if share.unit == "fraction" else share.high
    return replace(share, high=min(share.high, most)).range


def faster_in_group(analyzed: AnalyzedResult) -> tuple[str, Result] | None:
    """Return a result that is certainly much faster at the same work in the same rounds, and the factor in words."""
    group = [other for other in analyzed.siblings if other.case.group == analyzed.case.group]
    ratios = [(found, other) for other in group if (found := ratio_of(analyzed.result, other))]
    best = max(ratios, key=lambda pair: pair[0].value, default=None)
    if best is None or compare(best[0], 1.4).relation != "above":
        return None
    return format_ratio(best[0].value), best[1]


def _in_other_dtypes(analyzed: AnalyzedResult) -> Sequence[tuple[Estimate, Result]]:
    """Return the same work of its implementation in other dtypes, and how many times as long this one takes."""
    others = [other for other in analyzed.siblings if replace(analyzed.case, dtype=other.case.dtype) == other.case]
    return [
        (found, other)
        for other in others
        if other.case != analyzed.case and (found := ratio_of(analyzed.result, other))
    ]


def narrower_dtype(analyzed: AnalyzedResult) -> str | None:
    """Return the advice of a narrower dtype; None where this run or this device contradicts it.

    One that was measured with it counts by its time. Of the others one that the device and the implementation compute
    in units of their own.
    """
    own = dtype_named(analyzed.case.dtype)
    measured = {
        other.case.dtype: found
        for found, other in _in_other_dtypes(analyzed)
        if _is_narrower(dtype_named(other.case.dtype), own)
    }
    faster = {name: found for name, found in measured.items() if compare(found, WORTH_A_SENTENCE).relation == "above"}
    if faster:
        name = max(faster, key=lambda name: faster[name].value)
        return f"{name} is {format_ratio(faster[name].value)} as fast here"
    rows = (row for row in DTYPES.values() if row.name not in measured and _is_narrower(row, own))
    fitting = next((row.name for row in rows if _is_native(analyzed, row)), None)
    return f"a narrower dtype, {fitting}, would help" if fitting else None


def _is_narrower(row: DType, own: DType) -> bool:
    return row.itemsize_bytes < own.itemsize_bytes and not row.matrix_only


def _is_native(analyzed: AnalyzedResult, dtype: DType) -> bool:
    device = analyzed.device
    if device is None or dtype.name not in device.native or analyzed.operation.unsupported(dtype):
        return False
    return analyzed.implementation.computes_in(dtype.name, device)[0] == dtype.name


ASSUMED_TILE = 128  # rows and columns a library's block computes of a large product, one block a multiprocessor


def wave_tail(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a last wave of blocks that leaves much of the GPU idle, unless the result is near a limit anyway."""
    device = analyzed.device
    if device is None or device.kind != "cuda" or not device.cores or analyzed.median_s is None:
        return None
    if not _is_far_from_limits(analyzed):
        return None
    found = _own_waves(analyzed, device, device.cores)
    assumed = "" if found else f", in tiles of {ASSUMED_TILE} × {ASSUMED_TILE} (assumed: the library does not state it)"
    found = found or _library_waves(analyzed, device.cores)
    wasteful_below = 0.8  # share of the slots with work
    if found is None or found.efficiency >= wasteful_below:
        return None
    return Diagnosis("wave_tail", _sentence(analyzed, found, assumed), f"{_counted(found)}{assumed}")


def _own_waves(analyzed: AnalyzedResult, device: Device, multiprocessors: int) -> Waves | None:
    """Return the waves of a kernel of ours in its default block; None where its registers are not recorded."""
    case = analyzed.result.case
    geometry = analyzed.implementation.geometry
    number = device.compute_capability or ""
    made = recorded(case.operation, case.implementation, case.dtype, number)
    if geometry is None or made is None or number not in CAPABILITIES:
        return None
    if case.options.block not in (None, geometry.blocks[0]):
        return None
    launch = geometry.launch(analyzed.operation.output(case.shape))
    full = occupancy(
        CAPABILITIES[number],
        threads_per_block=launch.threads_per_block,
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )
    resident = full.blocks_per_multiprocessor
    return waves(launch.blocks, resident, multiprocessors) if resident else None


def _library_waves(analyzed: AnalyzedResult, multiprocessors: int) -> Waves | None:
    """Return the waves of a library's product, one tile a block and one block a multiprocessor."""
    operation = analyzed.operation
    if analyzed.implementation.geometry is not None or operation.products is None:
        return None
    products = operation.products(analyzed.result.case.shape)
    if len(products) != 1:
        return None  # fused: the blocks of one are not those of the other
    product = products[0]
    return waves(product.batch * ceil(product.m / ASSUMED_TILE) * ceil(product.n / ASSUMED_TILE), 1, multiprocessors)


def _sentence(analyzed: AnalyzedResult, found: Waves, assumed: str) -> str:
    if found.full_waves == 0:
        few = "has too few blocks for this GPU" if not assumed else "may have too few blocks for this GPU"
        idle = f"{format_percent(found.tail_idle_share)} of it stays idle"
        return f"{analyzed.label} {few}: {idle}, so a larger size takes little longer."
    loses = "loses time" if not assumed else "may lose time"
    return (
        f"{analyzed.label} {loses} in a last wave that leaves {format_percent(found.tail_idle_share)} of the GPU idle: "
        "a size that fills the last wave takes little longer."
    )


def _counted(found: Waves) -> str:
    slots = found.blocks_per_wave
    tail = found.tail_blocks
    used = f"{format_percent(found.efficiency)} of the slots have work"
    if found.full_waves == 0:
        return f"{tail:,} blocks for {slots:,} slots, so {used}"
    full = "1 full wave" if found.full_waves == 1 else f"{found.full_waves:,} full waves"
    return f"{full} of {slots:,} blocks and a last one of {tail:,}, so {used}"


def transfer_dominates(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report that transferring the data to the GPU and back would take longer than the computation.

    It matters to who asks whether the GPU is worth it, compared with the same work measured on the CPU.
    """
    device = analyzed.device
    median_s = analyzed.median_s
    if device is None or device.kind != "cuda" or median_s is None or not _was_measured_on_a_cpu(analyzed):
        return None
    row = row_of(device)
    if row is None or row.pcie_bytes_per_s is None:
        return None
    moved = analyzed.byte_count
    transfer_s = moved / row.pcie_bytes_per_s
    if compare(analyzed.time, transfer_s).relation != "below":
        return None
    return Diagnosis(
        "transfer_dominates",
        f"Copying the arrays of {analyzed.label} to the GPU and back would take longer than computing: "
        "keep them on the GPU between steps.",
        f"{format_bytes(moved)} over PCIe at {format_bytes_per_s(row.pcie_bytes_per_s)} are at least "
        f"{format_seconds(transfer_s)} (computed, not measured), the computation is {format_seconds(median_s)}",
    )


def _was_measured_on_a_cpu(analyzed: AnalyzedResult) -> bool:
    environments = (other.environment for other in analyzed.elsewhere if other.measurement)
    return any(environment and environment.device.kind != "cuda" for environment in environments)


# Diagnoses of CPUs: a library that chose a slow kernel, and idle cores.


def slow_blas(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a library's large matmul far below the ceiling, and the setting of the library that matters."""
    peak = analyzed.default_peak
    environment = analyzed.result.environment
    if environment is None or peak is None or analyzed.default_mfu is None or not _is_large_product(analyzed, peak):
        return None
    long_s = 1e-4  # of a call: shorter ones start threads and pack panels for a good part, whatever the kernel
    if (analyzed.median_s or 0.0) < long_s:
        return None
    reached = analyzed.share_of(analyzed.flop_count, peak.flop_per_s)
    slow_below = 0.6  # a good library reaches more of the ceiling in a large product
    if environment.device.kind != "cpu" or compare(reached, slow_below).relation != "below":
        return None  # a library whose threads wait for others is not to blame
    cause = load_backend(analyzed.implementation.backend).slow_product(
        dtype_named(analyzed.result.case.dtype), environment
    )
    if cause is None:
        return None
    label = PEAK_SOURCES[peak.kind].label
    evidence = f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)} (the {label})"
    found = faster_in_group(analyzed)
    rival = f"; {found[1].case.implementation} is {found[0]} as fast in the same rounds" if found else ""
    sentence = f"{analyzed.label} reaches only {format_share(reached)} of the {label}: {cause}{rival}."
    return Diagnosis("slow_blas", sentence, evidence)


def too_few_threads(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report idle cores."""
    environment = analyzed.result.environment
    if environment is None or environment.device.kind != "cpu" or analyzed.median_s is None:
        return None
    threads = environment.threads
    cores = environment.device.cores
    if threads is None or cores is None or threads >= cores or analyzed.limits.one_thread:
        return None  # an implementation with one thread uses no more if it is given more
    if analyzed.flag("extra_threads"):  # it used more threads than it was given
        return None
    sentence = f"{analyzed.label} ran on {threads} of {cores} cores: set {cores} threads to use the whole CPU."
    return Diagnosis("too_few_threads", sentence, f"threads: {threads}, physical cores: {cores}")


def _is_large_product(analyzed: AnalyzedResult, peak: Peak) -> bool:
    """Return whether it is a product and nothing else, in its own arithmetic, well above the ridge point."""
    case = analyzed.result.case
    bandwidth = analyzed.default_bandwidth
    if bandwidth is None or analyzed.operation.products is None or analyzed.flag("emulated"):
        return False
    products = analyzed.operation.products(case.shape)
    if len(products) != 1 or peak.dtype != case.dtype:
        return False
    product = products[0]
    elements = product.batch * (product.m * product.k + product.k * product.n + product.m * product.n)
    alone = elements * dtype_named(case.dtype).itemsize_bytes == analyzed.byte_count
    large = 2.0  # times the ridge point: from there on, memory costs little
    return alone and analyzed.intensity >= large * ridge_point(peak.flop_per_s, bandwidth.bytes_per_s)
