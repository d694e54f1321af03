"""The diagnoses of one kind of processor: waves and copies of a GPU; a slow kernel and idle cores of a CPU."""

from math import ceil

from gpuexplore.analysis.diagnosis.formats import faster_in_group, format_share, is_far_from_limits
from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.occupancy import Waves, occupancy, waves
from gpuexplore.analysis.roofs import ridge_point
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.verdict import compare
from gpuexplore.backends import load_backend
from gpuexplore.core import (
    Device,
    Peak,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    format_seconds,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware import CAPABILITIES, row_of
from gpuexplore.operations.compiled import recorded

ASSUMED_TILE = 128  # rows and columns a library's block computes of a large product, one block a multiprocessor


def wave_tail(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Report a last wave of blocks that leaves much of the GPU idle, unless the result is near a limit anyway."""
    device = analyzed.device
    if device is None or device.kind != "cuda" or not device.cores or analyzed.median_s is None:
        return None
    if not is_far_from_limits(analyzed):
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
