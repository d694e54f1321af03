"""cuDNN's convolution with `cudnn.benchmark` on: the first call of a shape tries the algorithms, which takes long.

What the trials cost is in the first call; how much workspace an algorithm may take is cuDNN's business.
"""

from collections.abc import Callable, Sequence
from typing import Any

from gpuexplore.core.dtypes import DType
from gpuexplore.operations.conv2d.torch_convolution import cudnn


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the convolution of x (b, c, h, w) with weights (o, c, r, r) into `out` (b, o, h, w)."""
    return cudnn(inputs, out, dtype, autotune=True)
