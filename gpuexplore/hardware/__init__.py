"""The devices of this machine, and their peaks.

A peak comes from the table of accelerators (`datasheet`), from rate x multiprocessors x clock
(`formula`) or from a short loop measured here (`measured_ceiling`), and always says which.
"""

from gpuexplore.hardware.accelerators import (
    ACCELERATORS,
    Accelerator,
    as_device,
    bandwidth_of,
    native_dtypes,
    peaks_of,
    row_of,
    table_device,
)
from gpuexplore.hardware.cpu import memory_by_sysconf
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
from gpuexplore.hardware.discovery import device_named, discover
from gpuexplore.hardware.formula import formula_peaks
from gpuexplore.hardware.nvml import highest_clock_hz, is_cut_into_instances, is_lost
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
    "GPU_KINDS",
    "NEWEST_FIRST",
    "TORCH_KINDS",
    "Accelerator",
    "CpuLoss",
    "CpuTimes",
    "accelerator_named",
    "as_device",
    "bandwidth_of",
    "cache_directory",
    "check_measured_on",
    "cpu_loss",
    "cpu_lost_share",
    "data_directory",
    "device_named",
    "discover",
    "ensure_ceiling",
    "formula_peaks",
    "free_gpu_bytes",
    "governor",
    "gpu_named",
    "highest_clock_hz",
    "is_cut_into_instances",
    "is_lost",
    "lessons_directory",
    "memory_by_sysconf",
    "native_dtypes",
    "near_names",
    "peaks_json",
    "peaks_of",
    "read",
    "read_cpu_times",
    "readings",
    "row_of",
    "search",
    "table_device",
    "target_named",
    "thread_runs",
    "thread_waits",
]
