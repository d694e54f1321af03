"""Whether a time that somebody entered can be, by the rule that judges every claim."""

from gpuexplore.analysis.utilization.best_results import Limits, exceeded_limit
from gpuexplore.analysis.what_if.workload import Workload
from gpuexplore.dtypes import DType
from gpuexplore.model import Device, Peak


def why_impossible(workload: Workload, device: Device, dtype: DType, time_s: float, *, peak: Peak | None) -> str | None:
    """Return the limit of `device` that the workload in `time_s` is far above; None where it is above none.

    Args:
        workload: what was timed.
        device: on which.
        dtype: its arrays were in.
        time_s: of the whole workload, seconds.
        peak: of the units that do the arithmetic; None where it is unknown.
    """
    cache_bytes = device.cache_bytes
    limits = Limits(
        flop_per_s=peak.flop_per_s if peak else None,
        bytes_per_s=device.bandwidth.bytes_per_s if device.bandwidth else None,
        cache_bytes=None if cache_bytes is None else cache_bytes * sum(layer.count for layer in workload.layers),
    )
    return exceeded_limit(workload.flop_count, workload.byte_count(lambda _: dtype), time_s, limits)
