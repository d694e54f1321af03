"""Matrix-vector product: y = A x, (m, n) @ (n) -> (m), 2·m·n FLOPs.

On the roofline: every element of A is read once for two FLOPs (1/2 FLOP/byte in fp32), so it is
memory-bound at every size, however fast the multipliers are.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import WARP, Geometry
from gpuexplore.operations.contract import Example, Preset, Product, of_products
from gpuexplore.operations.families import row_wise
from gpuexplore.operations.implementation import row

ROW_PER_THREAD = Geometry(((128,), (64,), (256,), (512,), (1024,)), tile=lambda block: (block[0],))
ROW_PER_WARP = Geometry(((256,), (128,), (64,), (512,)), tile=lambda block: (block[0] // WARP,))

OPERATION = row_wise(
    name="matvec",
    title="Matrix-vector product",
    formula="(m, n) @ (n) → (m)",
    about="Every element of the matrix is used once: reading it from memory takes longer than multiplying it.",
    vectors=1,
    reduces=True,
    flops_per_element=2,
    reference=np.matmul,
    scale=of_products,
    implementations=(
        row(
            "numpy",
            "numpy.matmul: OpenBLAS in fp64 and fp32, other loops for 16-bit formats",
            unit="matrix",
            one_thread=("fp16",),
            one_thread_up_to=115_200 * 4 - 1,  # elements of the matrix: from 4 · 115,200 on OpenBLAS's gemv uses more
            calls="numpy.matmul",
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop: each thread sums whole rows, 16-bit formats widened to fp32",
            unit="matrix",
        ),
        row(
            "numba_cuda",
            "one thread per row, as in the notebook: neighbouring threads read addresses a whole row apart",
            geometry=ROW_PER_THREAD,
            name="numba-cuda-naive",
            rung=True,
            export="NAIVE",
        ),
        row(
            "numba_cuda",
            "one warp per row, four loads of 16 bytes of the matrix in flight, and shuffles add the sums",
            geometry=ROW_PER_WARP,
        ),
        row(
            "torch",
            "torch.mv: MKL and oneDNN on a CPU, cuBLAS on CUDA",
            unit="matrix",
            vendor_library=True,
        ),
    ),
    examples=(Example(Shape.of(m=2, n=3), flop_count=12, fp32_bytes=4 * (6 + 3 + 2), terms=3),),
    products=lambda shape: (Product(1, shape["m"], 1, shape["n"]),),
    presets=(
        Preset(
            "notebook-matvec",
            Shape.of(m=100_000, n=100),
            "the notebook's matrix: 40 MB in fp32, which its 10.4 µs would have read at 3.8 TB/s",
        ),
    ),
    simulated=((1, 1), (33, 65), (65, 264), (3, 1032), (2, 4099), (3, 264)),
)
