"""Sums of rows: out = sum of x along the last axis, (m, n) -> (m), m·n FLOPs.

A row takes n - 1 additions and counts as n, as one addition for every element read. On the roofline:
1/4 FLOP/byte in fp32, so it is memory-bound at every size.
"""

from functools import partial

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import ROW_PER_BLOCK
from gpuexplore.operations.contract import Example
from gpuexplore.operations.families import row_wise
from gpuexplore.operations.implementations import (
    by_cupy,
    by_numba_cpu,
    by_numba_cuda,
    by_numpy_alone,
    by_torch_in_grains,
)
from gpuexplore.operations.scales import of_sums

OPERATION = row_wise(
    name="reduce_sum",
    title="Sums of rows",
    formula="(m, n) → (m)",
    about="One addition for every number read: memory bandwidth decides, if enough threads read at once.",
    reduces=True,
    flops_per_element=1,
    multiply_adds=False,
    reference=partial(np.sum, axis=-1),
    scale=of_sums,
    implementations=(
        by_numpy_alone("numpy_reduce", "numpy.add.reduce: one thread, sums of 16-bit formats in fp32"),
        by_numba_cpu(
            "numba_cpu_rows", "a parallel Numba loop: each thread sums whole rows, 16-bit formats widened to fp32"
        ),
        by_numba_cuda(
            "numba_cuda_row_per_block",
            "a Numba CUDA kernel: one block per row, four loads of 16 bytes in flight, shuffles that join the sums",
            ROW_PER_BLOCK,
        ),
        by_torch_in_grains("torch_reduction", "torch.sum", vendor_library=True),
        by_cupy("cupy_reduction", "cupy.sum: CuPy's reduction kernel"),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=6, fp32_bytes=4 * (6 + 2), terms=3),),
)
