"""Numba CUDA: device arrays and events on Numba's default stream; runs in Numba's simulator too.

bf16 is stored as uint16 (`gpuexplore.kernels.cuda_kernel`), fp16 as CUDA's own type.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import SPIN_HZ, Call, Clock, DriverFacts, EventTimer, host
from gpuexplore.backends.cuda_driver import (  # noqa: F401 one is part of the contract
    index_in_this_process,
    set_threads,
    why_no_gpu,
    why_too_old,
)
from gpuexplore.backends.host import slow_product  # noqa: F401 part of the contract
from gpuexplore.core.dtypes import DType, Stored
from gpuexplore.core.model import Device

INSTALL = "pip install 'gpuexplore[cuda13]'"
DEVICE_KINDS: tuple[str, ...] = ("cuda",)

vars(np).setdefault("row_stack", np.vstack)  # numba-cuda 0.30 uses it at its first compilation; NumPy 2.5 removed it


def is_available() -> bool:
    """Return whether Numba and its CUDA target are installed."""
    return host.is_installed("numba", "numba_cuda")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return None: the implementation of a kernel states what the kernel has no code for."""
    return None


def driver_facts(device: str) -> DriverFacts:
    """Return Numba's facts about `device`; none with its simulator."""
    from numba import cuda

    if not cuda.is_available():
        return DriverFacts(problem=why_no_gpu("numba-cuda", ".".join(map(str, cuda.runtime.get_version()))))
    version_of = getattr(cuda.cudadrv.driver.driver, "get_version", None)  # the simulator has none
    problem = version_of and why_too_old("numba-cuda", cuda.runtime.get_version(), version_of())
    if problem:  # kernels cannot be loaded then; Numba itself accepts any driver
        return DriverFacts(problem=problem)
    gpu = cuda.gpus[index_in_this_process(device)]
    uuid = getattr(gpu, "uuid", None)
    return DriverFacts(uuid and uuid.removeprefix("GPU-"), getattr(gpu, "L2_CACHE_SIZE", None) or None)


def to_device(values: Stored, dtype: DType, device: str) -> Any:
    """Return a contiguous device array in the dtype's storage."""
    from numba import cuda

    _select(device)
    return cuda.to_device(np.ascontiguousarray(values))


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """Return an uninitialised device array in the dtype's storage."""
    from numba import cuda

    _select(device)
    return cuda.device_array(shape, dtype.storage)


def poison(array: Any) -> None:
    """Fill `array` with NaN: all bits but the sign in bf16."""
    value = 0x7FFF if array.dtype.kind == "u" else np.nan
    array.copy_to_device(np.full(array.shape, value, array.dtype))


def load(array: Any, values: Stored) -> None:
    """Overwrite `array` with `values`."""
    array.copy_to_device(np.ascontiguousarray(values))


def stored(array: Any, dtype: DType) -> Stored:
    """Return a copy of `array` in host memory."""
    return array.copy_to_host()


def synchronize(device: str) -> None:
    """Wait for the device's queue to drain."""
    from numba import cuda

    _select(device)
    cuda.synchronize()


def timer(device: str, clock: Clock) -> EventTimer:
    """Return CUDA events on the device's default stream."""
    from numba import cuda

    from gpuexplore.backends import cuda_kernels

    def new_event() -> Any:
        return cuda.event()  # with timing by default; the simulator's function takes no argument

    def elapsed_s(start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3

    index = index_in_this_process(device)
    return EventTimer(
        clock,
        new_event,
        elapsed_s,
        wait=cuda.synchronize,
        on_device=lambda: cuda.gpus[index],
        enqueue_spin=lambda seconds: cuda_kernels.spin[1, 1](int(seconds * SPIN_HZ)),
    )


def flusher(device: str, size_bytes: int) -> Call:
    """Return a call that overwrites `size_bytes` on `device` and reads as many other bytes, like torch's flush."""
    from numba import cuda

    from gpuexplore.backends import cuda_kernels

    _select(device)
    count = max(1, size_bytes // 4)
    overwritten = cuda.device_array(count, np.float32)
    kept = cuda.device_array(count, np.float32)
    block = 256
    threads = min(count, 1024 * block)  # enough to fill any GPU
    totals = cuda.device_array(threads, np.float32)
    launch = (-(-threads // block), block)
    cuda_kernels.overwrite[launch](kept)  # otherwise it would sum uninitialised memory

    def flush() -> None:
        cuda_kernels.overwrite[launch](overwritten)
        cuda_kernels.read[launch](kept, totals)

    return flush


def capture(run: Call, device: str, calls: int) -> None:
    """Return None: the kernels run on Numba's default stream, which CUDA cannot capture."""


def versions() -> Mapping[str, str]:
    """Return the versions of Numba and its CUDA target."""
    return host.versions_of("numba", "numba-cuda")


def _select(device: str) -> None:
    from numba import cuda

    cuda.select_device(index_in_this_process(device))
