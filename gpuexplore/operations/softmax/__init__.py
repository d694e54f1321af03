"""Softmax of rows: out = exp(x - max) / sum of exp(x - max), (m, n) -> (m, n), 5·m·n FLOPs.

By convention 5 FLOPs an element: maximum, subtraction, exponential, addition, division; an exponential is
several instructions and counts as one. The maximum is subtracted so that no exponential overflows. On the
roofline: 5/8 FLOP/byte in fp32, memory-bound where a row stays in a cache between its passes.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Array, Implementation, Operation
from gpuexplore.operations.softmax.geometry import ROW_PER_BLOCK


def _reference(x: Array) -> Array:
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    shares: Array = weights / weights.sum(axis=-1, keepdims=True)
    return shares


OPERATION = Operation(
    name="softmax",
    title="Softmax of rows",
    formula="(m, n) → (m, n)",
    about="Three passes over each row: fast where the row stays close and the passes are fused.",
    axes=("m", "n"),
    limits={"m": 2**24, "n": 2**24},
    default_sizes=(128, 256, 512, 1024),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["n"]),),
    output=lambda shape: (shape["m"], shape["n"]),
    flop_count=lambda shape: 5 * shape["m"] * shape["n"],
    reference=_reference,
    reduction_length=lambda shape: shape["n"],
    implementations=(
        Implementation(
            "numpy",
            "numpy_ufuncs",
            "numpy",
            "vector",
            "five NumPy calls, each a pass over the matrix: one thread, 16-bit formats through an fp32 buffer",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_rows",
            "numba_cpu",
            "vector",
            "a parallel Numba loop: each thread takes whole rows, an exponential of our own that vectorises",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_row_per_block",
            "numba_cuda",
            "vector",
            "a Numba CUDA kernel: a block a row, which is read twice, and a tree in shared memory",
            arithmetic=WIDENED,
            geometry=ROW_PER_BLOCK,
        ),
        Implementation("torch", "torch_softmax", "torch", "vector", "torch.softmax: one fused kernel"),
        Implementation(
            "torch-compile",
            "torch_compile_fused",
            "torch_compile",
            "vector",
            "torch.compile of NumPy's five steps, fused into one kernel",
            optional=True,
        ),
        Implementation(
            "triton", "triton_rows", "triton", "vector", "a Triton kernel: one program a row", optional=True
        ),
    ),
)
