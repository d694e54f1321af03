"""torch.sum along the rows on any device torch knows."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the sums of the rows of (m, n) into `out` (m)."""
    (x,) = inputs
    return lambda: torch.sum(x, dim=-1, out=out)
