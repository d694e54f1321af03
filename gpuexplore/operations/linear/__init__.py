"""A linear layer without bias: y = x W, (b, d) @ (d, k) -> (b, k), 2·b·d·k FLOPs.

On the roofline: a matrix product. With a large batch b every weight is used b times and arithmetic decides;
at b = 1, as when a model answers a single request, every weight is used once and memory decides.
"""

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Cut, Example, Operation, Preset, Product, of_products
from gpuexplore.operations.implementation import row
from gpuexplore.operations.matmul import TENSOR_CORES, WARP_TILES
from gpuexplore.operations.sampling import parts_of_product

OPERATION = Operation(
    name="linear",
    title="Linear layer",
    formula="(b, d) @ (d, k) → (b, k)",
    about="A layer of a network without its bias: the batch size determines how often each weight is reused.",
    axes=("b", "d", "k"),
    limits={"b": 2**20, "d": 2**21, "k": 2**18},
    default_sizes=(32, 64, 128, 192),
    shape_of_size=lambda size: Shape.of(b=2 * size, d=4 * size, k=size),  # the proportions of the notebook's
    inputs=lambda shape: ((shape["b"], shape["d"]), (shape["d"], shape["k"])),
    output=lambda shape: (shape["b"], shape["k"]),
    flop_count=lambda shape: 2 * shape["b"] * shape["d"] * shape["k"],
    reference=np.matmul,
    reduction_length=lambda shape: shape["d"],
    implementations=(
        row(
            "numpy",
            "numpy.matmul: OpenBLAS in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in fp16",
            unit="matrix",
            one_thread=("fp16",),
            calls="numpy.matmul",
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop over 16 rows of the batch at a time, 16-bit formats widened to fp32",
            unit="matrix",
            module="matmul.numba_cpu",
            export="build_blocked",
        ),
        row(
            "numba_cuda",
            "numba-cuda-warptile of the matrix product: tiles in shared memory for a block, in registers for a thread",
            geometry=WARP_TILES,
            name="numba-cuda-warptile",
            module="matmul.numba_cuda",
            export="WARPTILE",
        ),
        row(
            "numba_cuda",
            "the best step of the matrix product's CUDA ladder: numba-cuda-tensorcore in tf32, bf16 and fp16, else "
            "numba-cuda-warptile",
            geometry=WARP_TILES,
            **TENSOR_CORES,
            module="matmul.numba_cuda",
        ),
        row(
            "torch",
            "torch.mm: MKL and oneDNN on a CPU, cuBLAS on CUDA",
            unit="matrix",
            vendor_library=True,
            module="matmul.torch",
        ),
    ),
    examples=(Example(Shape.of(b=2, d=3, k=5), flop_count=60, fp32_bytes=4 * (6 + 15 + 10), terms=3),),
    products=lambda shape: (Product(1, shape["b"], shape["k"], shape["d"]),),
    presets=(
        Preset(
            "notebook-linear",
            Shape.of(b=16384, d=32768, k=8192),
            "the notebook's layer on a GPU, 8.796e12 FLOPs: 1.73 s in fp32 on its T4, an MFU of 0.63; see MFU in bf16",
        ),
        Preset(
            "notebook-linear-cpu",
            Shape.of(b=1024, d=256, k=64),
            "the notebook's layer where it finds no GPU, 3.4e7 FLOPs: short enough for call overhead to matter",
        ),
    ),
    scale=of_products,
    samples=parts_of_product,
    linear=(-1, -1),
    cut=lambda _: Cut((0, 0), product=True),
)
