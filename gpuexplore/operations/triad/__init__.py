"""STREAM's triad: out = a + 3·b, (n) + 3·(n) -> (n), 2·n FLOPs.

On the roofline: one multiply-add for two elements read and one written (1/6 FLOP/byte in fp32), so it is
memory-bound at every size. J. McCalpin's STREAM, https://www.cs.virginia.edu/stream/, rates memory by it.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import GRID_STRIDE
from gpuexplore.operations.contract import Array, Example
from gpuexplore.operations.families import element_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, TORCH_GRAIN, row

FACTOR = 3.0


def _reference(a: Array, b: Array) -> Array:
    return a + FACTOR * b


def _scale(_: Array, a: Array, b: Array) -> Array:
    return np.abs(FACTOR * b)


OPERATION = element_wise(
    name="triad",
    title="STREAM triad",
    formula="(n) + 3·(n) → (n)",
    about="The standard test of memory bandwidth: a multiply-add for every three numbers moved.",
    operands=2,
    flops_per_element=2,
    reference=_reference,
    scale=_scale,
    reduction_length=lambda _: 2,
    implementations=(
        row(
            "numpy",
            "numpy.multiply, then numpy.add: one thread, two passes, 16-bit formats through an fp32 buffer",
            one_thread=EVERY_DTYPE,
        ),
        row("numba_cpu", "a parallel Numba loop in one pass, 16-bit formats widened to fp32"),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: a grid that strides through the vectors, four loads of 16 bytes in flight",
            geometry=GRID_STRIDE,
        ),
        row(
            "torch",
            "torch.addcmul on a CPU, torch.add with alpha=3 on CUDA: one pass",
            vendor_library=True,
            one_thread_up_to=TORCH_GRAIN,
        ),
        row("torch_compile", "torch.compile of a product and a sum: fused into one kernel and one pass"),
    ),
    examples=(Example(Shape.of(n=7), flop_count=14, fp32_bytes=4 * (7 + 7 + 7), terms=2),),
)
