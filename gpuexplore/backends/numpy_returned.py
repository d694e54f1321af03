"""NumPy's arrays for functions that return a new one: the output wraps what the last call returned.

Such functions are users'. What they compute with, Numba or a library of their own, is not asked.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuexplore.backends import host, numba_cpu
from gpuexplore.backends import numpy as plain
from gpuexplore.backends.host import (  # noqa: F401 parts of the contract
    capture,
    driver_facts,
    flusher,
    slow_product,
    synchronize,
    timer,
)
from gpuexplore.backends.numpy import (  # noqa: F401 parts of the contract
    DEVICE_KINDS,
    INSTALL,
    is_available,
    to_device,
    unsupported,
)
from gpuexplore.core.dtypes import DType, Stored
from gpuexplore.core.errors import IncorrectOutput

VIEW = "it returns memory of its inputs: it creates no output, so its time is not comparable"


@dataclass(slots=True)
class _ReturnedArray:
    """The output that is current, and the inputs of the calls that return it."""

    array: np.typing.NDArray[Any]
    inputs: tuple[np.typing.NDArray[Any], ...] = ()


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> _ReturnedArray:
    """Return a wrapper of an uninitialised array."""
    return _ReturnedArray(plain.empty(shape, dtype, device))


def poison(array: _ReturnedArray) -> None:
    """Fill what was returned last with NaN, in place: a late write there is seen."""
    if not array.array.flags.writeable:
        array.array = np.empty_like(array.array)
    array.array.fill(np.nan)


def load(array: np.typing.NDArray[Any] | _ReturnedArray, values: Stored) -> None:
    """Overwrite an input, or what is wrapped, with `values`."""
    host.load(array.array if isinstance(array, _ReturnedArray) else array, values)


def stored(array: np.typing.NDArray[Any] | _ReturnedArray, dtype: DType) -> Stored:
    """Return what an input or a wrapper has, in the storage of `dtype`: the same memory where it is contiguous.

    Raises:
        IncorrectOutput: what was returned last is memory of an input.
    """
    returned = array.array if isinstance(array, _ReturnedArray) else array
    if isinstance(array, _ReturnedArray) and any(np.may_share_memory(returned, given) for given in array.inputs):
        raise IncorrectOutput(VIEW)
    contiguous = returned if returned.flags.c_contiguous else np.ascontiguousarray(returned)
    return contiguous.view(dtype.storage)


def set_threads(count: int) -> None:
    """Pin the threads of NumPy's BLAS, and of Numba where they run: starting them would change those of torch.

    Raises:
        Unsupported: one of both cannot.
    """
    plain.set_threads(count)
    if getattr(sys.modules.get("numba.np.ufunc.parallel"), "_is_initialized", False):
        numba_cpu.set_threads(count)


def versions() -> Mapping[str, str]:
    """Return the versions of NumPy, and of Numba where it is there."""
    return {**plain.versions(), **host.versions_of("numba", "llvmlite")}
