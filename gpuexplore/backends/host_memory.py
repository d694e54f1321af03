"""Placement of a CPU's arrays: where their library allocates them, or on boundaries of 2 MiB, in huge pages.

Placement decides how often vectors straddle cache lines, which 4 kB pages collide in a cache, and how many of them a
loop translates: NumPy's addition of 10^6 numbers takes 1.1 to 1.3 times as long in its own arrays as in huge pages on
two Zen 4 cores, products of 128 and additions of 10^5 up to 1.9 times on a Sapphire Rapids. A caller gets what the
library allocates, so that is what is measured unless the other is asked for.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.timed import Alignment

HUGE_PAGE_BYTES = 2**21
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not on Windows
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only
_ALIGNMENT: ContextVar[Alignment] = ContextVar("alignment", default="library")


@contextmanager
def aligned(alignment: Alignment) -> Iterator[None]:
    """Inside it, new arrays of a CPU lie there."""
    before = _ALIGNMENT.set(alignment)
    try:
        yield
    finally:
        _ALIGNMENT.reset(before)


def empty(shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[Any]:
    """Return an array whose values are undefined."""
    pages = in_pages(shape, dtype)
    return np.empty(shape, dtype) if pages is None else pages


def copy_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a C-contiguous copy of `values`, placed like any array of `empty`."""
    copy = empty(values.shape, values.dtype)
    copy[...] = values
    return copy


def in_pages(shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[Any] | None:
    """Return an array whose first element lies on a boundary of huge pages; None where libraries allocate."""
    if _ALIGNMENT.get() == "library":
        return None
    count = prod(shape)
    memory = mmap.mmap(-1, HUGE_PAGE_BYTES * (2 + count * dtype.itemsize // HUGE_PAGE_BYTES), **PRIVATE)
    if ADVICE is not None:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(ADVICE)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    return np.frombuffer(memory, dtype, count, offset=-address % HUGE_PAGE_BYTES).reshape(shape)
