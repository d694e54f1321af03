"""Layer normalisation as NumPy calls: one thread, and the matrix passes through memory with each."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.layer_norm import EPSILON


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the normalised rows of (m, n) into `out` (m, n)."""
    x, weight, bias = inputs
    m, n = x.shape
    kind = DTYPES[dtype.accumulate].storage
    centred = out if dtype.accumulate == dtype.name else np.empty(out.shape, kind)
    mean = np.empty((m, 1), kind)
    scale = np.empty((m, 1), kind)

    def run() -> None:
        np.add.reduce(x, axis=-1, keepdims=True, out=mean, dtype=kind)
        np.divide(mean, n, out=mean)
        np.subtract(x, mean, out=centred)
        np.vecdot(centred, centred, out=scale[:, 0])
        np.divide(scale, n, out=scale)
        np.add(scale, EPSILON, out=scale)
        np.sqrt(scale, out=scale)
        np.divide(centred, scale, out=centred)
        np.multiply(centred, weight, out=centred)
        np.add(centred, bias, out=out, casting="unsafe")

    return run
