"""Sums of rows: out = sum of x along the last axis, (m, n) -> (m), m·n FLOPs.

A row takes n - 1 additions and counts as n, as one addition for every element read. On the roofline:
1/4 FLOP/byte in fp32, so it is memory-bound at every size.
"""

from functools import partial

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import ROW_PER_BLOCK
from gpuexplore.operations.contract import Example, of_sums
from gpuexplore.operations.families import row_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, TORCH_GRAIN, row

OPERATION = row_wise(
    name="reduce_sum",
    title="Sums of rows",
    formula="(m, n) → (m)",
    about="One addition for every number read: memory-bound, if enough threads read at once.",
    reduces=True,
    flops_per_element=1,
    multiply_adds=False,
    reference=partial(np.sum, axis=-1),
    scale=of_sums,
    implementations=(
        row("numpy", "numpy.add.reduce: one thread, sums of 16-bit formats in fp32", one_thread=EVERY_DTYPE),
        row("numba_cpu", "a parallel Numba loop: each thread sums whole rows, 16-bit formats widened to fp32"),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: one block per row, four loads of 16 bytes in flight, shuffles that join the sums",
            geometry=ROW_PER_BLOCK,
        ),
        row("torch", "torch.sum", vendor_library=True, one_thread_up_to=TORCH_GRAIN),
        row("cupy", "cupy.sum: CuPy's reduction kernel"),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=6, fp32_bytes=4 * (6 + 2), terms=3),),
)
