"""A parallel CPU loop in Numba: each thread takes whole rows, whose three passes LLVM vectorises."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any

from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen
from gpuexplore.operations.layer_norm import EPSILON


@njit(parallel=True, fastmath={"contract", "reassoc"}, cache=True)
def _layer_norm(x, weight, bias, out, constants):
    """Write the normalised rows of (m, n) to `out` (m, n); `constants` are 0, 1, n and epsilon in the sums' dtype."""
    zero, one, n, epsilon = constants
    for row in prange(x.shape[0]):
        total = zero
        for j in range(x.shape[1]):
            total += widen(x[row, j])
        mean = total / n
        squares = zero
        for j in range(x.shape[1]):
            squares += (widen(x[row, j]) - mean) ** 2
        scale = one / sqrt(squares / n + epsilon)
        for j in range(x.shape[1]):
            out[row, j] = narrow((widen(x[row, j]) - mean) * scale * widen(weight[j]) + widen(bias[j]), out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the normalised rows of (m, n) into `out` (m, n)."""
    x, weight, bias = inputs
    kind = DTYPES[dtype.accumulate].storage.type
    constants = tuple(map(kind, (0, 1, x.shape[1], EPSILON)))
    return lambda: _layer_norm(x, weight, bias, out, constants)
