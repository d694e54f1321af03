"""Host memory whose placement is the same in every process: on a page boundary, in huge pages where Linux has them.

Where an allocator happens to put an array decides how often its vectors straddle cache lines (NumPy's addition of
10,000 numbers takes 1.6 or 3.0 µs), and which of its 4 kB pages collide in a cache. A process keeps what it happened
to get, so samples of one process show none of that, and the next process measures something else.
"""

import mmap
from contextlib import suppress
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

HUGE_PAGE_BYTES = 2**21
PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}  # not on Windows
ADVICE = getattr(mmap, "MADV_HUGEPAGE", None)  # Linux only


def empty(shape: tuple[int, ...], dtype: np.dtype) -> npt.NDArray[Any]:
    """Return an array whose first element lies on a boundary of huge pages; what it holds is undefined."""
    count = prod(shape)
    memory = mmap.mmap(-1, HUGE_PAGE_BYTES * (2 + count * dtype.itemsize // HUGE_PAGE_BYTES), **PRIVATE)
    if ADVICE is not None:
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(ADVICE)
    address = np.frombuffer(memory, dtype=np.uint8).ctypes.data
    return np.frombuffer(memory, dtype, count, offset=-address % HUGE_PAGE_BYTES).reshape(shape)


def copy_of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a C-contiguous copy of `values`, placed like any array of `empty`."""
    copy = empty(values.shape, values.dtype)
    copy[...] = values
    return copy
