"""CuPy: device arrays, events on CuPy's current stream."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import SPIN_HZ, Call, Clock, DriverFacts, EventTimer, host
from gpuexplore.backends.cuda_driver import index_in_this_process, set_threads, why_no_gpu  # noqa: F401 one is the contract's
from gpuexplore.backends.host import slow_product  # noqa: F401 part of the contract
from gpuexplore.core.dtypes import DType, Stored
from gpuexplore.core.model import Device

INSTALL = "pip install cupy-cuda13x"
DEVICE_KINDS: tuple[str, ...] = ("cuda",)


def is_available() -> bool:
    """Return whether CuPy is installed."""
    return host.is_installed("cupy")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why CuPy cannot compute in `dtype`."""
    if dtype.matrix_only:
        return f"CuPy enables {dtype.name} only for a whole process (CUPY_TF32)"
    if dtype.storage.kind != "f":
        return f"CuPy has {dtype.name} from version 14 on and for few functions only, so it is not used"
    return None


def driver_facts(device: str) -> DriverFacts:
    """Return what CuPy's CUDA says of `device`; its UUID ends where a byte is zero."""
    import cupy

    if not cupy.is_available():
        version = cupy.cuda.runtime.runtimeGetVersion()
        built_for = f"{version // 1000}.{version % 1000 // 10}"
        return DriverFacts(problem=why_no_gpu("CuPy", built_for, "pip install cupy-cuda12x"))
    found = cupy.cuda.runtime.getDeviceProperties(index_in_this_process(device))
    return DriverFacts(found["uuid"].hex() or None, found["l2CacheSize"] or None)


def to_device(values: Stored, dtype: DType, device: str) -> Any:
    """Return a contiguous device array in the dtype's storage."""
    import cupy

    _gpu(device).use()
    return cupy.array(values, order="C")


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """Return an uninitialised device array."""
    import cupy

    _gpu(device).use()
    return cupy.empty(shape, dtype.storage)


def poison(array: Any) -> None:
    """Fill `array` with NaN."""
    array.fill(np.nan)


def load(array: Any, values: Stored) -> None:
    """Overwrite `array` with `values`."""
    array.set(np.ascontiguousarray(values))


def stored(array: Any, dtype: DType) -> Stored:
    """Return a copy of `array` in host memory."""
    return array.get()


def synchronize(device: str) -> None:
    """Wait for the device's queue to drain."""
    _gpu(device).synchronize()


def timer(device: str, clock: Clock) -> EventTimer:
    """Return CUDA events on the device's current stream."""
    import cupy

    def elapsed_s(start: Any, end: Any) -> float:
        return float(cupy.cuda.get_elapsed_time(start, end)) * 1e-3

    source = 'extern "C" __global__ void spin(long long n) { for (long long t = clock64(); clock64() - t < n;); }'
    spin = cupy.RawKernel(source, "spin")
    return EventTimer(
        clock,
        cupy.cuda.Event,
        elapsed_s,
        wait=lambda: synchronize(device),
        on_device=lambda: _gpu(device),
        enqueue_spin=lambda seconds: spin((1,), (1,), (int(seconds * SPIN_HZ),)),
    )


def flusher(device: str, size_bytes: int) -> Call:
    """Return a call that overwrites `size_bytes` on `device` and reads as many others, as torch's does."""
    import cupy

    _gpu(device).use()
    count = max(1, size_bytes // 4)
    overwritten = cupy.empty(count, np.float32)
    kept = cupy.zeros(count, np.float32)
    total = cupy.empty((), np.float32)

    def flush() -> None:
        overwritten.fill(0)
        kept.sum(out=total)

    return flush


def capture(run: Call, device: str, calls: int) -> Call:
    """Return the replay of a CUDA graph of `calls` times `run`."""
    import cupy

    _gpu(device).use()
    with cupy.cuda.Stream(non_blocking=True) as stream:  # the default stream cannot be captured
        stream.begin_capture()
        for _ in range(calls):
            run()
        graph = stream.end_capture()
    return graph.launch


def versions() -> Mapping[str, str]:
    """Return CuPy's version; its wheel is named after the CUDA it is for."""
    return host.versions_of("cupy-cuda13x", "cupy-cuda12x", "cupy")


def _gpu(device: str) -> Any:
    """Return CuPy's device, which is also the context that makes it the current one."""
    import cupy

    return cupy.cuda.Device(index_in_this_process(device))
