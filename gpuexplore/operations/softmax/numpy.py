"""Softmax as five NumPy calls: one thread, and the matrix passes through memory with each."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the softmax of the rows of (m, n) into `out` (m, n)."""
    (x,) = inputs
    kind = DTYPES[dtype.accumulate].storage
    weights = out if dtype.accumulate == dtype.name else np.empty(out.shape, kind)
    top = np.empty((len(x), 1), x.dtype)
    total = np.empty((len(x), 1), kind)

    def run() -> None:
        np.maximum.reduce(x, axis=-1, keepdims=True, out=top)
        np.subtract(x, top, out=weights, dtype=kind)
        np.exp(weights, out=weights)
        np.add.reduce(weights, axis=-1, keepdims=True, out=total)
        np.divide(weights, total, out=out, casting="unsafe")

    return run
