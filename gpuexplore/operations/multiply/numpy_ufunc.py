"""numpy.multiply: one thread, vectorised."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the element-wise product of two equal shapes into `out`."""
    a, b = inputs
    return lambda: np.multiply(a, b, out=out)
