"""Copy: out = a, (n) -> (n), no FLOPs.

On the roofline: it has no arithmetic, so its intensity is 0 and memory bandwidth is all it shows; it has no MFU.
One element is read and one written, what STREAM's copy counts: https://www.cs.virginia.edu/stream/.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import GRID_STRIDE
from gpuexplore.operations.contract import Example
from gpuexplore.operations.families import element_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, TORCH_GRAIN, row

OPERATION = element_wise(
    name="copy",
    title="Copy",
    formula="(n) → (n)",
    about="No arithmetic at all: it measures the bandwidth of reading and writing.",
    operands=1,
    flops_per_element=0,
    reference=np.positive,
    implementations=(  # which widen nothing, for they compute nothing
        row("numpy", "numpy.copyto: one thread", arithmetic={}, streaming_stores=True, one_thread=EVERY_DTYPE),
        row("numba_cpu", "a parallel Numba loop over the elements", arithmetic={}),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: a grid that strides through the vector, four loads of 16 bytes in flight",
            geometry=GRID_STRIDE,
            arithmetic={},
        ),
        row("torch", "Tensor.copy_", vendor_library=True, one_thread_up_to=TORCH_GRAIN),
    ),
    examples=(Example(Shape.of(n=7), flop_count=0, fp32_bytes=4 * (7 + 7), terms=1),),
)
