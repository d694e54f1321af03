"""The devices of this machine, and their peaks.

A peak comes from the table of accelerators (`datasheet`), from rate x multiprocessors x clock
(`formula`) or from a short loop measured here (`measured_ceiling`), and always says which.
"""

from gpuexplore.hardware.accelerators import (
    ACCELERATORS,
    PEAK_FIELDS,
    Accelerator,
    as_device,
    bandwidth_of,
    native_dtypes,
    peaks_of,
    row_of,
    rows_named,
    table_device,
)
from gpuexplore.hardware.capabilities import CAPABILITIES, ComputeCapability, capability_named, capability_of
from gpuexplore.hardware.cpu import machine_kind, memory_by_sysconf
from gpuexplore.hardware.cpu_ceiling.cache import ensure_ceiling
from gpuexplore.hardware.cpu_ceiling.ceiling import ASSUMED_CACHE_BYTES, CACHES_OVERFLOWN
from gpuexplore.hardware.cpu_times import (
    CpuLoss,
    CpuTimes,
    cpu_loss,
    cpu_lost_share,
    read_cpu_times,
    thread_runs,
    thread_waits,
)
from gpuexplore.hardware.directories import cache_directory, data_directory, lessons_directory
from gpuexplore.hardware.discovery import device_named, discover, first_dtypes
from gpuexplore.hardware.formula import RATE_CLASSES, SLOWED_FIELDS, formula_peaks, tensor_clock_share
from gpuexplore.hardware.identity import OTHER_PROCESSOR, device_key, is_namesake, same_device, why_other_device
from gpuexplore.hardware.nvml import SOURCE, GpuFacts, Link, highest_clock_hz, is_cut_into_instances, is_lost, link_of
from gpuexplore.hardware.specs import (
    NEWEST_FIRST,
    accelerator_named,
    gpu_named,
    near_names,
    peaks_json,
    readings,
    search,
    target_named,
)
from gpuexplore.hardware.telemetry import free_gpu_bytes, governor, read
from gpuexplore.hardware.torch_devices import GPU_KINDS, TORCH_KINDS, check_measured_on

__all__ = [
    "ACCELERATORS",
    "ASSUMED_CACHE_BYTES",
    "CACHES_OVERFLOWN",
    "CAPABILITIES",
    "GPU_KINDS",
    "NEWEST_FIRST",
    "OTHER_PROCESSOR",
    "PEAK_FIELDS",
    "RATE_CLASSES",
    "SLOWED_FIELDS",
    "SOURCE",
    "TORCH_KINDS",
    "Accelerator",
    "ComputeCapability",
    "CpuLoss",
    "CpuTimes",
    "GpuFacts",
    "Link",
    "accelerator_named",
    "as_device",
    "bandwidth_of",
    "cache_directory",
    "capability_named",
    "capability_of",
    "check_measured_on",
    "cpu_loss",
    "cpu_lost_share",
    "data_directory",
    "device_key",
    "device_named",
    "discover",
    "ensure_ceiling",
    "first_dtypes",
    "formula_peaks",
    "free_gpu_bytes",
    "governor",
    "gpu_named",
    "highest_clock_hz",
    "is_cut_into_instances",
    "is_lost",
    "is_namesake",
    "lessons_directory",
    "link_of",
    "machine_kind",
    "memory_by_sysconf",
    "native_dtypes",
    "near_names",
    "peaks_json",
    "peaks_of",
    "read",
    "read_cpu_times",
    "readings",
    "row_of",
    "rows_named",
    "same_device",
    "search",
    "table_device",
    "target_named",
    "tensor_clock_share",
    "thread_runs",
    "thread_waits",
    "why_other_device",
]
