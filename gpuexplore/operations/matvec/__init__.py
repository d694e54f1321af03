"""Matrix-vector product: y = A x, (m, n) @ (n) -> (m), 2·m·n FLOPs.

On the roofline: every element of A is read once for two FLOPs (1/2 FLOP/byte in fp32), so it is
memory-bound at every size, however fast the multipliers are.
"""

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Implementation, Operation, Preset, Product
from gpuexplore.operations.matvec.geometry import ROW_PER_THREAD, ROW_PER_WARP

OPERATION = Operation(
    name="matvec",
    title="Matrix-vector product",
    formula="(m, n) @ (n) → (m)",
    about="Every element of the matrix is used once: reading it from memory takes longer than multiplying it.",
    axes=("m", "n"),
    limits={"m": 2**24, "n": 2**24},
    default_sizes=(128, 512, 1024, 2048),
    shape_of_size=lambda size: Shape.of(m=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["n"]), (shape["n"],)),
    output=lambda shape: (shape["m"],),
    flop_count=lambda shape: 2 * shape["m"] * shape["n"],
    reference=np.matmul,
    reduction_length=lambda shape: shape["n"],
    implementations=(
        Implementation(
            "numpy",
            "numpy_blas",
            "numpy",
            "matrix",
            "numpy.matmul: OpenBLAS in fp64 and fp32, other loops for 16-bit formats",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cpu",
            "numba_cpu_rows",
            "numba_cpu",
            "matrix",
            "a parallel Numba loop: each thread sums whole rows, 16-bit formats widened to fp32",
            arithmetic=WIDENED,
        ),
        Implementation(
            "numba-cuda-naive",
            "numba_cuda_naive",
            "numba_cuda",
            "vector",
            "one thread a row, as the notebook has it: neighbouring threads read a whole row apart",
            arithmetic=WIDENED,
            rung=True,
            geometry=ROW_PER_THREAD,
        ),
        Implementation(
            "numba-cuda",
            "numba_cuda_warps",
            "numba_cuda",
            "vector",
            "one warp a row: its threads read 512 neighbouring bytes at a time, and shuffles add their sums",
            arithmetic=WIDENED,
            geometry=ROW_PER_WARP,
        ),
        Implementation("torch", "torch_blas", "torch", "matrix", "torch.mv: MKL and oneDNN on a CPU, cuBLAS on CUDA"),
    ),
    products=lambda shape: (Product(1, shape["m"], 1, shape["n"]),),
    presets=(
        Preset(
            "notebook-matvec",
            Shape.of(m=100_000, n=100),
            "the notebook's matrix: 40 MB in fp32, which its 10.4 µs would have read at 3.8 TB/s",
        ),
    ),
)
