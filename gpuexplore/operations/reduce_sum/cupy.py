"""cupy.sum along the rows: CuPy's own reduction kernel, with sums of fp16 in fp32."""

from collections.abc import Callable, Sequence
from typing import Any

import cupy

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the sums of the rows of (m, n) into `out` (m)."""
    (x,) = inputs
    sums = cupy.float32 if dtype.name == "fp16" else None
    return lambda: cupy.sum(x, axis=-1, dtype=sums, out=out)
