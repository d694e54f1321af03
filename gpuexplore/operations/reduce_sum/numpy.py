"""numpy.add.reduce along the rows: one thread, pairwise."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the sums of the rows of (m, n) into `out` (m)."""
    (x,) = inputs
    if dtype.accumulate == dtype.name:
        return lambda: np.add.reduce(x, axis=-1, out=out)
    sums = np.empty(out.shape, DTYPES[dtype.accumulate].storage)

    def run() -> None:
        np.add.reduce(x, axis=-1, dtype=sums.dtype, out=sums)
        out[...] = sums

    return run
