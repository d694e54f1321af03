"""The software, settings, free memory and device state of a measurement; what is unknown stays None."""

import mmap
import os
import platform
import subprocess
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import gpuexplore
from gpuexplore.backends import load_backend
from gpuexplore.core.model import Device, Environment
from gpuexplore.core.pools import POOL_SETTINGS
from gpuexplore.core.served import COMMIT
from gpuexplore.hardware import TORCH_KINDS, free_gpu_bytes, governor, memory_by_sysconf
from gpuexplore.hardware import read as read_telemetry

USABLE_SHARE = 0.9  # allocators and the driver need the rest

# variables that change how fast a library runs
SETTINGS = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "MKL_ENABLE_INSTRUCTIONS",
    "OMP_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMBA_ENABLE_CUDASIM",
    "NUMBA_DISABLE_JIT",
    *POOL_SETTINGS,
    "CUDA_DEVICE_ORDER",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING",
    "NVIDIA_TF32_OVERRIDE",
    "CUPY_ACCELERATORS",
    "CUPY_TF32",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "HIP_VISIBLE_DEVICES",
    "ONEAPI_DEVICE_SELECTOR",
    "PYTORCH_ENABLE_MPS_FALLBACK",  # operations that MPS lacks are silently computed on the CPU
)


def utc_now() -> str:
    """Return the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def describe_environment(
    device: Device, backends: Iterable[str], threads: int | None, now: Callable[[], str] = utc_now
) -> Environment:
    """Return the environment of `device` as it is now; `after` is filled in when the case is over."""
    libraries: dict[str, str] = {}
    for name in sorted(set(backends)):
        backend = load_backend(name)
        if backend.is_available() and device.kind in backend.DEVICE_KINDS:
            libraries |= backend.versions()
    settings = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    nice = os.getpriority(os.PRIO_PROCESS, 0) if hasattr(os, "getpriority") else 0
    if nice:
        settings["nice"] = str(nice)
    return Environment(
        device=device,
        started_utc=now(),
        app_version=gpuexplore.__version__,
        commit=git_commit(),
        python=platform.python_version(),
        platform=platform.platform(),
        libraries=libraries,
        settings=settings,
        threads=threads,
        governor=governor(),
        before=read_telemetry(device),
    )


@cache
def git_commit() -> str | None:
    """Return the commit of the checkout this package runs from, or was built from; else None."""
    if COMMIT.is_file():
        return COMMIT.read_text(encoding="ascii").strip()
    root = Path(gpuexplore.__file__).parents[1]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip() or None
    except (OSError, subprocess.SubprocessError):  # no git, or a checkout it refuses: the commit is unknown
        return None


# The memory that a device has free right now.


def free_bytes(device: Device) -> int | None:
    """Return the bytes a case may use; None where nothing states them: no limit is invented."""
    if device.kind == "cpu":
        free = free_host_bytes()
    elif device.kind in TORCH_KINDS:
        free = device.memory_bytes  # all it has, as nothing says more
    else:
        free = free_gpu_bytes(device.uuid) if device.uuid else None
    return None if free is None else int(free * USABLE_SHARE)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where it is unknown, which a note on the device says."""
    try:
        with Path("/proc/self/statm").open(encoding="ascii") as file:  # pages: of the address space, resident, ...
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def free_host_bytes() -> int | None:
    """Return the memory of this host that is free, or would be at once; None where nothing states it."""
    try:
        from psutil import virtual_memory

        return int(virtual_memory().available)
    except (ModuleNotFoundError, OSError):  # a bare GPU machine; one whose /proc cannot be read
        return memory_by_sysconf("SC_AVPHYS_PAGES")
