"""numpy.matmul: a BLAS call for each matrix, also where all share the right-hand one."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (outer, inner, m, k) @ (k, n) or (outer, inner, k, n) into `out` (outer, inner, m, n)."""
    a, b = inputs
    return lambda: np.matmul(a, b, out=out)
