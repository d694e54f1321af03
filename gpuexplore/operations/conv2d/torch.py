"""torch's convolution: oneDNN on a CPU, cuDNN on CUDA, the maker's library elsewhere; TF32 for tf32 only.

On CUDA it is the call that conv2d ends in: its switches are arguments there, so that `torch-autotune`, sampled
alternately with it, cannot change them. Elsewhere no algorithm of torch's own choice writes into a given output: each
result is newly allocated.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import conv2d

from gpuexplore.backends.torch import is_rocm, take_over
from gpuexplore.core.dtypes import DType


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the convolution of x (b, c, h, w) with weights (o, c, r, r) into `out` (b, o, h, w)."""
    if out.is_cuda and not is_rocm(torch):
        return cudnn(inputs, out, dtype, autotune=False)
    x, weights = inputs
    pad = weights.shape[-1] // 2
    return lambda: take_over(out, conv2d(x, weights, padding=pad))


def build_autotune(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the same with `cudnn.benchmark` on: the first call of a shape tries the algorithms, which takes long.

    What the trials cost is in the first call; how much workspace an algorithm may take is cuDNN's business.
    """
    return cudnn(inputs, out, dtype, autotune=True)


def cudnn(inputs: Sequence[Any], out: Any, dtype: DType, *, autotune: bool) -> Callable[[], object]:
    """Return cuDNN's convolution into `out`, its algorithm chosen by heuristic or by trying."""
    x, weights = inputs
    pad = weights.shape[-1] // 2
    return lambda: torch.cudnn_convolution(
        x,
        weights,
        padding=(pad, pad),
        stride=(1, 1),
        dilation=(1, 1),
        groups=1,
        benchmark=autotune,
        deterministic=False,
        allow_tf32=dtype.matrix_only,
        out=out,
    )
