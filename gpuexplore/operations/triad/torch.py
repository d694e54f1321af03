"""One fused torch call on any device torch knows: one kernel, one pass."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.core.dtypes import DType
from gpuexplore.operations.triad import FACTOR


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return (n) + 3·(n) into `out` (n)."""
    a, b = inputs
    if out.device.type != "cpu":
        return lambda: torch.add(a, b, alpha=FACTOR, out=out)
    factor = torch.tensor(FACTOR, dtype=a.dtype)
    # as fast on a CPU, where add rounds 3·b to 16 bits before the sum in the last n % 32 elements
    return lambda: torch.addcmul(a, b, factor, out=out)
