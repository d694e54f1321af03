"""The update in a parallel Numba loop: every array passes through memory once; 16-bit formats widened to fp32."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import narrow, widen
from gpuexplore.operations.optimizer_step import (
    CORRECTION,
    DECAY,
    EPSILON,
    FIRST,
    MOMENTUM,
    SECOND,
    STEP_RATE,
)
from gpuexplore.operations.training import RATE


@njit(parallel=True, cache=True)
def sgd(gradients, old, new, rates):
    """Write the weights after SGD to `new` (1, n); `rates` (1) is the rate in the dtype of the arithmetic."""
    for i in prange(gradients.size):
        new[0, i] = narrow(widen(old[0, i]) - rates[0] * widen(gradients[i]), new.dtype)


@njit(parallel=True, cache=True)
def _momentum(gradients, old, new, rates):
    """Write weights and momentum to `new` (2, n); `rates` are the rate and what is kept of the momentum."""
    for i in prange(gradients.size):
        kept = rates[1] * widen(old[1, i]) + widen(gradients[i])
        new[0, i] = narrow(widen(old[0, i]) - rates[0] * kept, new.dtype)
        new[1, i] = narrow(kept, new.dtype)


@njit(parallel=True, cache=True)
def _adamw(gradients, old, new, rates):
    """Write weights and both moments to `new` (3, n); `rates` as `build` lists them."""
    for i in prange(gradients.size):
        gradient = widen(gradients[i])
        first = rates[1] * widen(old[1, i]) + rates[2] * gradient
        second = rates[3] * widen(old[2, i]) + rates[4] * gradient * gradient
        update = rates[0] * first / (np.sqrt(second) * rates[5] + rates[6])
        new[0, i] = narrow(rates[7] * widen(old[0, i]) - update, new.dtype)
        new[1, i] = narrow(first, new.dtype)
        new[2, i] = narrow(second, new.dtype)


KERNELS: tuple[tuple[Callable[..., object], tuple[float, ...]], ...] = (
    (sgd, (RATE,)),
    (_momentum, (RATE, MOMENTUM)),
    (_adamw, (STEP_RATE, FIRST, 1 - FIRST, SECOND, 1 - SECOND, CORRECTION, EPSILON, 1 - RATE * DECAY)),
)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the update of the rows (arrays, n) by gradients (n) into `out` (arrays, n)."""
    gradients, old = inputs
    kernel, constants = KERNELS[len(old) - 1]
    rates = np.array(constants, DTYPES[dtype.accumulate].storage)
    return lambda: kernel(gradients, old, out, rates)
