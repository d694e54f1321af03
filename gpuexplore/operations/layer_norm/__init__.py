"""Layer normalisation: out = (x - mean) / sqrt(variance + 1e-5) · weight + bias, rows of (m, n), 8·m·n FLOPs.

By convention 8 FLOPs per element: two additions for the mean and the variance, subtraction and square for the
variance, then subtraction, scaling, weight and bias. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer
Normalization", https://arxiv.org/abs/1607.06450. On the roofline: 1 FLOP/byte in fp32, memory-bound where a
row stays in a cache between its passes.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import ROW_PER_BLOCK
from gpuexplore.operations.contract import Array, Example, norms
from gpuexplore.operations.families import row_wise
from gpuexplore.operations.implementation import EVERY_DTYPE, row

EPSILON = 1e-5


def _reference(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + EPSILON) * weight + bias


def _scale(_: Array, x: Array, weight: Array, bias: Array) -> Array:
    """Return the sizes of the weight and the bias that are added, the first times the ratio of x to its spread."""
    mean = x.mean(axis=-1, keepdims=True)
    length = x.shape[-1]
    square = norms(x, axis=-1)[:, None] ** 2 / length
    spread = np.sqrt(np.maximum(square - mean**2, 0) + EPSILON)
    return np.maximum(1, np.sqrt(square) / spread) * np.abs(weight) + np.abs(bias)


OPERATION = row_wise(
    name="layer_norm",
    title="Layer normalisation",
    formula="(m, n), (n), (n) → (m, n)",
    about="Mean, variance and scaling of each row: fast if the row stays in cache and the passes are fused.",
    vectors=2,
    flops_per_element=8,
    nominal_flops=lambda _: True,
    reference=_reference,
    scale=_scale,
    implementations=(
        row(
            "numpy",
            "NumPy calls, each a pass over the matrix: one thread, 16-bit formats through an fp32 buffer",
            one_thread=EVERY_DTYPE,
        ),
        row("numba_cpu", "a parallel Numba loop: each thread takes whole rows, 16-bit formats widened to fp32"),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: one block per row, four loads of 16 bytes in flight (two in 16 bits); a row of up to "
            "4,096 elements (2,048 in fp64) stays in the registers of 256 threads",
            geometry=ROW_PER_BLOCK,
        ),
        row(
            "torch",
            "torch.nn.functional.layer_norm: one fused kernel, into memory it allocates itself",
            vendor_library=True,
        ),
        row("torch_compile", "torch.compile of the steps one by one, fused into one kernel"),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=8 * 6, fp32_bytes=4 * (6 + 3 + 3 + 6), terms=3),),
)
