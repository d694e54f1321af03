"""Matrix product: C = A B, (m, k) @ (k, n) -> (m, n), 2·m·n·k FLOPs.

On the roofline: the intensity of a square product grows with n (n/6 FLOP/byte in fp32), so from a
few hundred up it is compute-bound, and below that bound by call and memory overheads.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gpuexplore.kernels.geometry import Geometry
from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Implementation, Operation, Preset, Product
from gpuexplore.operations.matmul import geometry
from gpuexplore.operations.sampling import parts_of_product

_TENSOR_CORES: Mapping[str, Any] = {
    "on_matrix_units": geometry.ON_TENSOR_CORES,
    "compute_capability": "8.0",
    "otherwise": "numba-cuda-vector",
}


def _step(name: str, tiles: Geometry, about: str, **further: Any) -> Implementation:
    row = Implementation(
        f"numba-cuda-{name}", f"numba_cuda_{name}", "numba_cuda", "vector", about, rung=True, geometry=tiles
    )
    return replace(row, **{"arithmetic": WIDENED, **further})


def _ladder() -> Iterable[Implementation]:
    """Yield the steps from one thread an element to tensor cores, each better than the one before."""
    yield _step(
        "naive",
        geometry.ROWS_ALONG_X,
        "one thread an element; the threads of a warp are in different rows and read and write far from each other",
    )
    yield _step(
        "coalesced",
        geometry.ONE_EACH,
        "the threads of a warp in neighbouring columns: 32 reads or writes side by side become one transaction",
    )
    yield _step(
        "shared",
        geometry.SQUARE_TILES,
        "tiles of A and B in shared memory: an element is read from global memory once for a tile's width of uses",
    )
    yield _step(
        "register",
        geometry.REGISTER_TILES,
        "8 x 8 sums in each thread's registers: 16 reads of shared memory for 64 multiply-adds, not 128",
    )
    yield _step(
        "vector",
        geometry.REGISTER_TILES,
        "128-bit loads, and the next tiles loaded while these are multiplied: fewer instructions, less waiting",
    )
    yield _step(
        "tensorcore",
        geometry.REGISTER_TILES,
        "warps multiply 16 x 8 tiles on the tensor cores, and copies to shared memory pass by the registers",
        **_TENSOR_CORES,
        arithmetic={},
        dtypes=geometry.ON_TENSOR_CORES,
    )


def _cpu_ladder() -> Iterable[Implementation]:
    """Yield the steps from three plain loops to vector registers, on all cores each; the last is `numba-cpu`."""
    for name, about, native in (
        ("naive", "three loops, a dot product an element: each term of B comes from another cache line", ()),
        ("reordered", "rows of B are added up: memory is read as it lies, and the compiler makes vectors of it", ()),
        ("blocked", "panels of B stay in the L1 cache for 16 rows: B is fetched once for 16 uses, not for one", ()),
        (
            "vector",
            "packed panels and a tile of sums in vector registers: a sum meets memory once in hundreds of terms",
            ("bf16",),
        ),
    ):
        yield Implementation(
            f"numba-cpu-{name}",
            f"numba_cpu_{name}",
            "numba_cpu",
            "matrix",
            about,
            arithmetic=WIDENED,
            native=native,
            rung=True,
        )


def _implementations() -> Iterable[Implementation]:
    yield Implementation(
        "numpy",
        "numpy_blas",
        "numpy",
        "matrix",
        "numpy.matmul: OpenBLAS in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in fp16",
        arithmetic=WIDENED,
    )
    yield from _cpu_ladder()
    yield Implementation(
        "numba-cpu",
        "numba_cpu_vector",
        "numba_cpu",
        "matrix",
        "a parallel Numba kernel in packed panels, its sums in vector registers; bf16 by dot products where there are",
        arithmetic=WIDENED,
        native=("bf16",),
    )
    yield from _ladder()
    yield Implementation(
        "numba-cuda",
        "numba_cuda_best",
        "numba_cuda",
        "vector",
        "the best step of our CUDA ladder: numba-cuda-tensorcore in tf32, bf16 and fp16, else numba-cuda-vector",
        geometry=geometry.REGISTER_TILES,
        **_TENSOR_CORES,
    )
    yield Implementation("torch", "torch_blas", "torch", "matrix", "torch.mm: MKL and oneDNN on a CPU, cuBLAS on CUDA")
    yield Implementation(
        "torch-compile",
        "torch_compile_blas",
        "torch_compile",
        "matrix",
        "torch.compile of torch.mm: nothing to fuse, so the same product behind the guards of a compiled call",
        optional=True,
    )
    yield Implementation(
        "triton",
        "triton_dot",
        "triton",
        "vector",
        "a Triton kernel: 128 x 128 tiles by tl.dot, on tensor cores for all but fp32",
        on_matrix_units=("tf32", "bf16", "fp16"),
        dtypes=("fp32", "tf32", "bf16", "fp16"),
        optional=True,
    )
    yield Implementation("cupy", "cupy_blas", "cupy", "matrix", "cupy.matmul: cuBLAS", optional=True)


OPERATION = Operation(
    name="matmul",
    title="Matrix multiplication",
    formula="(m, k) @ (k, n) → (m, n)",
    about="Large products are limited by arithmetic, small ones by the cost of a call.",
    axes=("m", "k", "n"),
    limits={"m": 65536, "k": 65536, "n": 65536},
    default_sizes=(64, 128, 256, 384),
    shape_of_size=lambda size: Shape.of(m=size, k=size, n=size),
    inputs=lambda shape: ((shape["m"], shape["k"]), (shape["k"], shape["n"])),
    output=lambda shape: (shape["m"], shape["n"]),
    flop_count=lambda shape: 2 * shape["m"] * shape["k"] * shape["n"],
    reference=np.matmul,
    reduction_length=lambda shape: shape["k"],
    implementations=tuple(_implementations()),
    products=lambda shape: (Product(1, shape["m"], shape["n"], shape["k"]),),
    samples=parts_of_product,
    presets=(
        Preset(
            "notebook-1000",
            Shape.of(m=1000, k=1000, n=1000),
            "the notebook's first product: equal on both devices, where its allclose said False",
        ),
        Preset(
            "notebook-2000",
            Shape.of(m=2000, k=2000, n=2000),
            "the notebook's race of CPU and GPU: it timed the launch and read 71 times as fast",
        ),
        Preset(
            "notebook-500-200",
            Shape.of(m=1000, k=500, n=200),
            "the notebook's call of cuBLAS: a product that is not square",
        ),
    ),
)
