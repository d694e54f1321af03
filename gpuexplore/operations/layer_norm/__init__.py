"""Layer normalisation: out = (x - mean) / sqrt(variance + 1e-5) · weight + bias, rows of (m, n), 8·m·n FLOPs.

By convention 8 FLOPs an element: two additions for the mean and the variance, subtraction and square for the
variance, then subtraction, scaling, weight and bias. J. L. Ba, J. R. Kiros, G. E. Hinton, "Layer
Normalization", https://arxiv.org/abs/1607.06450. On the roofline: 1 FLOP/byte in fp32, memory-bound where a
row stays in a cache between its passes.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Array, Implementation, Operation
from gpuexplore.operations.layer_norm.geometry import ROW_PER_BLOCK

EPSILON = 1e-5


def _reference(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    normalised: Array = centred / np.sqrt(variance + EPSILON) * weight + bias
    return normalised


OPERATION = Operation(
    name="layer_norm",
    title="Layer normalisation",
    formula="(m, n), (n), (n) → (m, n)",
    about="Mean, variance and scaling of each row: fast where the row stays close and the passes are fused.",
    axes=("m", "n"),
    limits={"m": 2**24, "n": 2**24},
    default_sizes=(128, 256, 512, 1024),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["n"]), (shape["n"],), (shape["n"],)),
    output=lambda shape: (shape["m"], shape["n"]),
    flop_count=lambda shape: 8 * shape["m"] * shape["n"],
    reference=_reference,
    reduction_length=lambda shape: shape["n"],
    implementations=(
        Implementation(
            "numpy",
            "numpy_ufuncs",
            "numpy",
            "vector",
            "NumPy calls, each a pass over the matrix: one thread, 16-bit formats through an fp32 buffer",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_rows",
            "numba_cpu",
            "vector",
            "a parallel Numba loop: each thread takes whole rows, 16-bit formats widened to fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_row_per_block",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: a block a row, which is read three times, and trees in shared memory",
            arithmetic=WIDENED,
            geometry=ROW_PER_BLOCK,
        ),
        Implementation(
            "torch",
            "torch_layer_norm",
            "torch",
            "vector",
            "torch.nn.functional.layer_norm: one fused kernel, into memory it allocates itself",
        ),
        Implementation(
            "torch-compile",
            "torch_compile_fused",
            "torch_compile",
            "vector",
            "torch.compile of the steps one by one, fused into one kernel",
            optional=True,
        ),
    ),
)
