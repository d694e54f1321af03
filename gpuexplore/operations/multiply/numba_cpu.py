"""A parallel loop over the elements in Numba, which LLVM vectorises."""

from collections.abc import Callable, Sequence
from typing import Any

from numba import njit, prange

from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen


@njit(parallel=True, cache=True)
def _multiply(a, b, out):
    """Write the element-wise product of (n) and (n) to `out` (n)."""
    for i in prange(out.size):
        out[i] = narrow(widen(a[i]) * widen(b[i]), out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the element-wise product of two equal shapes into `out`."""
    a, b, flat = *(array.reshape(-1) for array in inputs), out.reshape(-1)
    return lambda: _multiply(a, b, flat)
