"""What only a CPU shows: a library that chose a slow kernel, and cores without work."""

from gpuexplore.analysis.diagnosis.rivals import faster_in_group, share_said
from gpuexplore.analysis.model import AnalyzedResult, Diagnosis
from gpuexplore.analysis.roofline.roofs import ridge_point
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.verdict import compare
from gpuexplore.backends import load_backend
from gpuexplore.dtypes import dtype_named
from gpuexplore.model import Peak
from gpuexplore.units import format_flop_per_s

CPU = "cpu"
SLOW_BELOW = 0.6  # a good library reaches more of the ceiling in a large product
LARGE = 2.0  # times the ridge point: from there on, memory costs little
LONG_S = 1e-4  # of a call: in shorter ones threads are started and panels packed for a good part, whatever the kernel


def slow_blas(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that a library's large product is far below the ceiling, and which setting of it decides."""
    peak, share, environment = analyzed.default_peak, analyzed.default_mfu, analyzed.result.environment
    if environment is None or peak is None or share is None or not _is_large_product(analyzed, peak):
        return None
    if (analyzed.median_s or 0.0) < LONG_S:
        return None
    reached = analyzed.share_of(analyzed.flop_count, peak.flop_per_s)
    if environment.device.kind != CPU or compare(reached, SLOW_BELOW).told != "below":
        return None  # a library whose threads wait for others is not to blame
    library = load_backend(analyzed.implementation.backend)
    cause = library.slow_product(dtype_named(analyzed.result.case.dtype), environment)
    if cause is None:
        return None
    evidence = (
        f"{format_flop_per_s(analyzed.flop_per_s)} of {format_flop_per_s(peak.flop_per_s)} "
        f"(the {PEAK_SOURCES[peak.kind].label})"
    )
    label = PEAK_SOURCES[peak.kind].label
    sentence = f"{analyzed.label} reaches only {share_said(reached)} of the {label}: {cause}{_rival(analyzed)}."
    return Diagnosis("slow_blas", sentence, evidence)


def too_few_threads(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that cores had no work."""
    environment = analyzed.result.environment
    if environment is None or environment.device.kind != CPU or analyzed.median_s is None:
        return None
    threads, cores = environment.threads, environment.device.cores
    if threads is None or cores is None or threads >= cores or analyzed.limits.one_thread:
        return None  # what uses one thread of many does so with more, too
    if analyzed.flag("extra_threads"):  # it had more than it was given
        return None
    sentence = (
        f"{analyzed.label} ran on {threads} of {cores} cores: ask for {cores} threads to see what the CPU can do."
    )
    return Diagnosis("too_few_threads", sentence, f"threads: {threads}, physical cores: {cores}")


def _is_large_product(analyzed: AnalyzedResult, peak: Peak) -> bool:
    """Return whether it is a product and nothing else, in its own arithmetic, well above the ridge point."""
    case, bandwidth = analyzed.result.case, analyzed.default_bandwidth
    if bandwidth is None or analyzed.operation.products is None or analyzed.flag("emulated"):
        return False
    products = analyzed.operation.products(case.shape)
    if len(products) != 1 or peak.dtype != case.dtype:
        return False
    product, itemsize_bytes = products[0], dtype_named(case.dtype).itemsize_bytes
    elements = product.batch * (product.m * product.k + product.k * product.n + product.m * product.n)
    alone = elements * itemsize_bytes == analyzed.operation.byte_count(case.shape, dtype_named(case.dtype))
    return alone and analyzed.intensity >= LARGE * ridge_point(peak.flop_per_s, bandwidth.bytes_per_s)


def _rival(analyzed: AnalyzedResult) -> str:
    """Return who is much faster in the same rounds, as proof that the hardware can; empty when nobody is."""
    found = faster_in_group(analyzed)
    return f"; {found[1].case.implementation} is {found[0]} as fast in the same rounds" if found else ""
