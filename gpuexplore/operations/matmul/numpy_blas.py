"""numpy.matmul: OpenBLAS for fp64 and fp32, also for bf16 through ml_dtypes; NumPy's own loop for fp16."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    return lambda: np.matmul(a, b, out=out)
