"""Numba on the CPU: NumPy arrays; 16-bit formats travel as integers whose type names the format.

Numba has no 16-bit floats on the CPU, so bf16 travels as uint16 and fp16 as int16; the kernels
widen and narrow them by that type (`gpuexplore.kernels.cpu_micro_kernel`).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import host
from gpuexplore.backends.host import (  # noqa: F401 parts of the contract
    capture,
    driver_facts,
    flusher,
    load,
    slow_product,
    stored,
    synchronize,
    timer,
)
from gpuexplore.core import Device, Unsupported
from gpuexplore.core.dtypes import DType, Stored

INSTALL = "pip install numba"
DEVICE_KINDS: tuple[str, ...] = ("cpu",)


def is_available() -> bool:
    """Return whether Numba is installed."""
    return host.is_installed("numba")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why a CPU kernel cannot compute in `dtype`: TF32 is a GPU's."""
    if dtype.matrix_only:
        return f"{dtype.name} exists only inside a GPU's matrix units; {device.name} has none"
    return None


def to_device(values: Stored, dtype: DType, device: str) -> np.typing.NDArray[Any]:
    """Return a contiguous copy in the type the kernels take."""
    return host.copy_of(values).view(_kernel_type(dtype))


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> np.typing.NDArray[Any]:
    """Return an uninitialised array in the type the kernels take."""
    return host.empty(shape, _kernel_type(dtype))


def poison(array: np.typing.NDArray[Any]) -> None:
    """Fill `array` with NaN; all bits but the sign are a NaN in both 16-bit formats."""
    array.fill(0x7FFF if array.dtype.kind in "iu" else np.nan)


def set_threads(count: int) -> None:
    """Pin Numba's threads.

    Raises:
        Unsupported: more than Numba started with.
    """
    import numba

    if count > numba.config.NUMBA_NUM_THREADS:
        raise Unsupported(f"{count} threads: Numba started with {numba.config.NUMBA_NUM_THREADS}")
    numba.set_num_threads(count)


def versions() -> Mapping[str, str]:
    """Return the versions of Numba and the LLVM binding."""
    return host.versions_of("numba", "llvmlite")


def _kernel_type(dtype: DType) -> np.dtype:
    return np.dtype(np.int16) if dtype.storage == np.float16 else dtype.storage
