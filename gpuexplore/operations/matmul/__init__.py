"""Matrix product: C = A B, (m, k) @ (k, n) -> (m, n), 2·m·n·k FLOPs.

On the roofline: the intensity of a square product grows with n (n/6 FLOP/byte in fp32), so from a
few hundred up it is compute-bound, and below that bound by call and memory overheads.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import Block, Geometry, Lengths
from gpuexplore.operations.contract import Cut, Example, Operation, Preset, Product, of_products
from gpuexplore.operations.implementation import Implementation, row
from gpuexplore.operations.sampling import parts_of_product

ON_TENSOR_CORES = ("tf32", "bf16", "fp16")  # what `mma.sync` takes, of the dtypes we have
THREAD_TILE = 8  # rows and columns of sums a thread keeps in registers
WARP_THREAD_TILE = (16, 8)  # the same where each warp has a tile of 64 x 64


def _one_each(block: Block) -> Lengths:
    return block[1], block[0]


def _square_each(block: Block) -> Lengths:
    return THREAD_TILE * block[1], THREAD_TILE * block[0]


def warp_tile(block: Block) -> Lengths:
    """Return the rows and columns of the tile of a block whose warps have 64 x 64 sums each."""
    return WARP_THREAD_TILE[0] * block[1], WARP_THREAD_TILE[1] * block[0]


# x runs along the rows: that is what is slow about it
ROWS_ALONG_X = Geometry(
    ((16, 16), (32, 8), (8, 32), (32, 32), (8, 8)), _one_each, domain=lambda output: (output[1], output[0])
)
ELEMENT_PER_THREAD = Geometry(((16, 16), (32, 8), (8, 32), (32, 32), (8, 8)), _one_each)
SQUARE_TILES = Geometry(((16, 16), (32, 32), (8, 8)), _one_each)
REGISTER_TILES = Geometry(((16, 16), (8, 8)), _square_each)
WARP_TILES = Geometry(((16, 16), (16, 8), (8, 8)), warp_tile)
WARPGROUP_TILES = Geometry(((16, 16), (16, 8)), _square_each)

TENSOR_CORES: Mapping[str, Any] = MappingProxyType(
    {
        "on_matrix_units": ON_TENSOR_CORES,
        "arithmetic": {},
        "compute_capability": "8.0",
        "otherwise": "numba-cuda-warptile",
    }
)


def _cpu_step(name: str, about: str, **own: Any) -> Implementation:
    usual = {"name": f"numba-cpu-{name}", "export": f"build_{name}", "unit": "matrix", "rung": True}
    return row("numba_cpu", about, **usual | own)


def _step(name: str, geometry: Geometry, about: str, **own: Any) -> Implementation:
    usual = {"name": f"numba-cuda-{name}", "export": name.upper(), "geometry": geometry, "rung": True}
    return row("numba_cuda", about, **usual | own)


# from three plain loops to vector registers, on all cores each; the last is `numba-cpu`
CPU_LADDER = (
    _cpu_step("naive", "three loops, a dot product per element: each term of B comes from another cache line"),
    _cpu_step("reordered", "rows of B are added up: memory is read in order, and the compiler vectorises the loop"),
    _cpu_step("blocked", "panels of B stay in the L1 cache for 16 rows: each fetch of B serves 16 uses, not one"),
    _cpu_step(
        "vector",
        "packed panels and a tile of sums in vector registers: accumulators stay in registers for hundreds of terms",
        module="numba_cpu_vector",
        export="build",
        native=("bf16",),
    ),
)
# from one thread per element to tensor cores, each better than the one before; shares are of the instructions of the
# main loop on 9.0, in fp32, in bf16 where the step takes no fp32
CUDA_LADDER = (
    _step(
        "naive",
        ROWS_ALONG_X,
        "one thread per element; the threads of a warp work on different rows, their reads and writes far apart: "
        "2 loads of global memory for each multiply-add, which are 3 % of the main loop",
    ),
    _step(
        "coalesced",
        ELEMENT_PER_THREAD,
        "the threads of a warp in neighbouring columns: 32 reads or writes side by side become one transaction; "
        "still 2 loads for each multiply-add, which are 3 % of the main loop",
    ),
    _step(
        "shared",
        SQUARE_TILES,
        "tiles of A and B in shared memory: an element is read from global memory once for a tile's width of uses: "
        "20 loads of shared memory for 16 multiply-adds, which are 18 % of the main loop",
    ),
    _step(
        "register",
        REGISTER_TILES,
        "8 x 8 sums in each thread's registers: 16 reads of shared memory for 64 multiply-adds, not 128, which are "
        "36 % of the main loop",
    ),
    _step(
        "vector",
        REGISTER_TILES,
        "128-bit loads, the next tiles loaded while these are multiplied, and the terms of a tile written out: 4 "
        "vectors of shared memory for 64 multiply-adds, which are 89 % of the main loop",
        module="numba_cuda_vector",
        export="KERNEL",
    ),
    _step(
        "warptile",
        WARP_TILES,
        "16 x 8 sums in each thread and 64 x 64 in each warp: 6 vectors of shared memory for 128 multiply-adds, not 4 "
        "for 64; multiply-adds are 92 % of the main loop",
    ),
    _step(
        "tensorcore",
        WARP_TILES,
        "warps multiply 64 x 64 tiles on the tensor cores, 8 loads for 32 products, and copies pass by the registers: "
        "56 % of the main loop are HMMA",
        module="numba_cuda_tensorcore",
        export="KERNEL",
        **TENSOR_CORES,
        dtypes=ON_TENSOR_CORES,
    ),
    _step(
        "wgmma",
        WARPGROUP_TILES,
        "four warps together multiply 64 x 128 tiles that the tensor cores read from shared memory: no fragments in "
        "registers, and no loads of them; 5 % of the main loop are products",
        module="numba_cuda_wgmma",
        export="KERNEL",
        on_matrix_units=("bf16", "fp16"),
        arithmetic={},
        compute_capability="9.0",
        one_generation=True,
        otherwise="numba-cuda-tensorcore",
        dtypes=("bf16", "fp16"),
    ),
)

OPERATION = Operation(
    name="matmul",
    title="Matrix multiplication",
    formula="(m, k) @ (k, n) → (m, n)",
    about="Large matmuls are compute-bound, small ones limited by call overhead.",
    axes=("m", "k", "n"),
    limits={"m": 2**20, "k": 2**20, "n": 2**20},
    default_sizes=(64, 128, 256, 384),
    shape_of_size=lambda size: Shape.of(m=size, k=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["k"]), (shape["k"], shape["n"])),
    output=lambda shape: (shape["m"], shape["n"]),
    flop_count=lambda shape: 2 * shape["m"] * shape["k"] * shape["n"],
    reference=np.matmul,
    has_layouts=True,
    reduction_length=lambda shape: shape["k"],
    implementations=(
        row(
            "numpy",
            "numpy.matmul: OpenBLAS in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in fp16",
            unit="matrix",
            one_thread=("fp16",),
            calls="numpy.matmul",
        ),
        *CPU_LADDER,
        row(
            "numba_cpu",
            "a parallel Numba kernel in packed panels, its sums in vector registers; bf16 by dot products where there "
            "are",
            unit="matrix",
            native=("bf16",),
            best_rung=True,
            module="numba_cpu_vector",
        ),
        *CUDA_LADDER,
        row(
            "numba_cuda",
            "the best step of our CUDA ladder on most GPUs: numba-cuda-tensorcore in tf32, bf16 and fp16, else "
            "numba-cuda-warptile; on 9.0 numba-cuda-wgmma is faster in bf16 and fp16",
            geometry=WARP_TILES,
            best_rung=True,
            **TENSOR_CORES,
        ),
        row("torch", "torch.mm: MKL and oneDNN on a CPU, cuBLAS on CUDA", unit="matrix", vendor_library=True),
        row(
            "torch_compile",
            "torch.compile of torch.mm: nothing to fuse, so the same matmul plus the guards of a compiled call",
            unit="matrix",
        ),
        row(
            "triton",
            "a Triton kernel: 128 x 128 tiles by tl.dot, on tensor cores for all but fp32",
            on_matrix_units=("tf32", "bf16", "fp16"),
            dtypes=("fp32", "tf32", "bf16", "fp16"),
        ),
        row("cupy", "cupy.matmul: cuBLAS", unit="matrix", calls="cupy.matmul"),
    ),
    examples=(
        Example(Shape.of(m=2, k=3, n=5), flop_count=2 * 2 * 3 * 5, fp32_bytes=4 * (2 * 3 + 3 * 5 + 2 * 5), terms=3),
        Example(Shape.of(m=1, k=1, n=1), flop_count=2, fp32_bytes=12, terms=1),
        Example(Shape.of(m=65536, k=65536, n=65536), flop_count=2 * 2**48, fp32_bytes=3 * 4 * 2**32, terms=65536),
    ),
    products=lambda shape: (Product(1, shape["m"], shape["n"], shape["k"]),),
    scale=of_products,
    samples=parts_of_product,
    linear=(-1, -1),
    cut=lambda _: Cut((0, 0), product=True),
    presets=(
        Preset(
            "notebook-1000",
            Shape.of(m=1000, k=1000, n=1000),
            "the notebook's first matmul: correct on both devices, although its allclose printed False",
        ),
        Preset(
            "notebook-2000",
            Shape.of(m=2000, k=2000, n=2000),
            "the notebook's race of CPU and GPU: it timed the launch and got 71 times as fast",
        ),
        Preset(
            "notebook-500-200",
            Shape.of(m=1000, k=500, n=200),
            "the notebook's call of cuBLAS: a product that is not square",
        ),
        Preset(
            "notebook-32-2",
            Shape.of(m=16, k=32, n=2),
            "the notebook's (16, 32) @ (32, 2): so small that the time is call overhead",
        ),
    ),
)
