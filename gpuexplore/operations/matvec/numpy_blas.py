"""numpy.matmul of a matrix and a vector."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, n) @ (n) into `out` (m)."""
    a, x = inputs
    return lambda: np.matmul(a, x, out=out)
