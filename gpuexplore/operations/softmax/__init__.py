"""Softmax of rows: out = exp(x - max) / sum of exp(x - max), (m, n) -> (m, n), 5·m·n FLOPs.

By convention 5 FLOPs per element: maximum, subtraction, exponential, addition, division; an exponential is
several instructions and counts as one. The maximum is subtracted so that no exponential overflows. On the
roofline: 5/8 FLOP/byte in fp32, memory-bound where a row stays in a cache between its passes.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import ROW_PER_BLOCK
from gpuexplore.operations.contract import Array, Example
from gpuexplore.operations.families import row_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, row


def _reference(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


OPERATION = row_wise(
    name="softmax",
    title="Softmax of rows",
    formula="(m, n) → (m, n)",
    about="Three passes over each row: fast if the row stays in cache and the passes are fused.",
    flops_per_element=5,
    nominal_flops=lambda _: True,
    reference=_reference,
    implementations=(
        row(
            "numpy",
            "five NumPy calls, each a pass over the matrix: one thread, 16-bit formats through an fp32 buffer",
            one_thread=EVERY_DTYPE,
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop: each thread takes whole rows, with our own vectorised exponential",
        ),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: one block per row, four loads of 16 bytes in flight (two in 16 bits); a row of up to "
            "4,096 elements (2,048 in fp64) stays in the registers of 256 threads",
            geometry=ROW_PER_BLOCK,
        ),
        row("torch", "torch.softmax: one fused kernel", vendor_library=True),
        row("torch_compile", "torch.compile of NumPy's five steps, fused into one kernel"),
        row("triton", "a Triton kernel: one program per row"),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=5 * 6, fp32_bytes=4 * (6 + 6), terms=3),),
)
