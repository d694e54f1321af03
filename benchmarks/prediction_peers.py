"""Other ways to predict a time, for the benchmark of predictions: roofline, NVIDIA's heuristics, NeuSight."""

from gpuexplore.analysis.prediction.arithmetic import arithmetic
from gpuexplore.dtypes import format_named
from gpuexplore.model import Case, Device
from gpuexplore.operations import operation_named


def roofline_s(case: Case, device: Device) -> float | None:
    """Return max(FLOPs / peak, bytes / bandwidth) in seconds; None where a figure of the device is unknown."""
    operation, peak = operation_named(case.operation), arithmetic(case, device).peak
    flop_count = operation.flop_count(case.shape)
    if device.bandwidth is None or (flop_count and peak is None):
        return None
    memory_s = operation.byte_count(case.shape, format_named(case.dtype)) / device.bandwidth.bytes_per_s
    return max(memory_s, flop_count / peak.flop_per_s) if peak else memory_s
