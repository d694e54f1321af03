"""The steps of softmax one by one, which torch.compile fuses into one kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.backends.inductor import compiled
from gpuexplore.core.dtypes import DTYPES, DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the softmax of the rows of (m, n) into `out` (m, n)."""
    (x,) = inputs
    kind = getattr(torch, DTYPES[dtype.accumulate].array_name)

    def softmax(x: torch.Tensor, out: torch.Tensor) -> None:
        wide = x.to(kind)
        weights = torch.exp(wide - wide.amax(dim=-1, keepdim=True))
        out.copy_(weights / weights.sum(dim=-1, keepdim=True))

    run = compiled(softmax)
    return lambda: run(x, out)
