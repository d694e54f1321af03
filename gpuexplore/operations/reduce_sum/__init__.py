"""Sums of rows: out = sum of x along the last axis, (m, n) -> (m), m·n FLOPs.

A row takes n - 1 additions and counts as n, as one addition for every element read. On the roofline:
1/4 FLOP/byte in fp32, so it is memory-bound at every size.
"""

from functools import partial

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Implementation, Operation
from gpuexplore.operations.reduce_sum.geometry import ROW_PER_BLOCK

OPERATION = Operation(
    name="reduce_sum",
    title="Sums of rows",
    formula="(m, n) → (m)",
    about="One addition for every number read: memory bandwidth decides, if enough threads read at once.",
    axes=("m", "n"),
    limits={"m": 2**24, "n": 2**24},
    default_sizes=(128, 512, 1024, 2048),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["n"]),),
    output=lambda shape: (shape["m"],),
    flop_count=lambda shape: shape["m"] * shape["n"],
    reference=partial(np.sum, axis=-1),
    reduction_length=lambda shape: shape["n"],
    implementations=(
        Implementation(
            "numpy",
            "numpy_reduce",
            "numpy",
            "vector",
            "numpy.add.reduce: one thread, sums of 16-bit formats in fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_rows",
            "numba_cpu",
            "vector",
            "a parallel Numba loop: each thread sums whole rows, 16-bit formats widened to fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_row_per_block",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: a block a row, a tree of additions in shared memory",
            arithmetic=WIDENED,
            geometry=ROW_PER_BLOCK,
        ),
        Implementation("torch", "torch_reduction", "torch", "vector", "torch.sum"),
        Implementation("cupy", "cupy_reduction", "cupy", "vector", "cupy.sum: CuPy's reduction kernel", optional=True),
    ),
)
