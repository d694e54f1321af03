"""numpy.matmul: OpenBLAS for fp64 and fp32, also for bf16 through ml_dtypes; NumPy's own loop for fp16."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the layer (b, d) @ (d, k) into `out` (b, k)."""
    x, weights = inputs
    return lambda: np.matmul(x, weights, out=out)
