"""The steps of layer normalisation one by one, which torch.compile fuses into one kernel."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from gpuexplore.backends.inductor import compiled
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.layer_norm import EPSILON


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the normalised rows of (m, n) into `out` (m, n)."""
    x, weight, bias = inputs
    kind = getattr(torch, DTYPES[dtype.accumulate].array_name)

    def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor) -> None:
        wide = x.to(kind)
        centred = wide - wide.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        out.copy_(centred * torch.rsqrt(variance + EPSILON) * weight + bias)

    run = compiled(layer_norm)
    return lambda: run(x, weight, bias, out)
