"""Copy: out = a, (n) -> (n), no FLOPs.

On the roofline: it has no arithmetic, so its intensity is 0 and memory bandwidth is all it shows; it has no MFU.
One element is read and one written, what STREAM's copy counts: https://www.cs.virginia.edu/stream/.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import Implementation, Operation
from gpuexplore.operations.copy.geometry import STRIDES

OPERATION = Operation(
    name="copy",
    title="Copy",
    formula="(n) → (n)",
    about="No arithmetic at all: how fast memory can be read and written.",
    axes=("n",),
    limits={"n": 2**31},
    default_sizes=(10_000, 100_000, 1_000_000, 4_000_000),
    shape_of_size=lambda size: Shape.of(n=size),
    inputs=lambda shape: ((shape["n"],),),
    output=lambda shape: (shape["n"],),
    flop_count=lambda _: 0,
    reference=np.array,
    reduction_length=lambda _: 1,
    implementations=(
        Implementation("numpy", "numpy_copyto", "numpy", "vector", "numpy.copyto: one thread"),
        Implementation("numba-cpu", "numba_cpu_loop", "numba_cpu", "vector", "a parallel Numba loop over the elements"),
        Implementation(
            "numba-cuda",
            "numba_cuda_strides",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: a grid that strides through the vector",
            geometry=STRIDES,
        ),
        Implementation("torch", "torch_copy", "torch", "vector", "Tensor.copy_"),
    ),
)
