"""cupy.matmul: cuBLAS, sums of 16-bit formats in fp32."""

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the product (m, k) @ (k, n) into `out` (m, n)."""
    a, b = inputs
    return lambda: cupy.matmul(a, b, out=out)
