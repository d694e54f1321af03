"""A CUDA kernel in Numba: one thread a row, the notebook's kernel; neighbouring threads read far apart."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import cuda

from gpuexplore.backends.formats.numba_cuda import narrow, widen
from gpuexplore.dtypes import DTYPES, DType

THREADS = 128


def kernel_for(sum_dtype: np.dtype) -> Any:
    """Return the kernel that keeps its sums in `sum_dtype`."""
    kind = sum_dtype.type

    def matvec(a, x, out):
        row = cuda.grid(1)
        if row < out.size:
            total = kind(0)
            for j in range(x.size):
                total += widen(a[row, j]) * widen(x[j])
            out[row] = narrow(total, out.dtype)

    return matvec


KERNELS = {name: cuda.jit(kernel_for(np.dtype(name)), fastmath={"contract"}) for name in ("float32", "float64")}


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, n) @ (n) into `out` (m)."""
    a, x = inputs
    launch = KERNELS[DTYPES[dtype.accumulate].storage.name][-(-out.size // THREADS), THREADS]
    return lambda: launch(a, x, out)
