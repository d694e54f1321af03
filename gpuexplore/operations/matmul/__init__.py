"""Matrix product: C = A B, (m, k) @ (k, n) -> (m, n), 2·m·n·k FLOPs.

On the roofline: the intensity of a square product grows with n (n/6 FLOP/byte in fp32), so from a
few hundred up it is compute-bound, and below that bound by call and memory overheads.
"""

from collections.abc import Iterable

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.contract import WIDENED, Array, Arrays, Implementation, Operation

CHECK_WHOLE_UP_TO = 2**28  # multiply-adds: a float64 reference of this size takes a few milliseconds
BLOCK = 32  # no tile of any kernel is smaller than a fraction of this
FEWEST_LINES = 16


def _samples(inputs: Arrays, generator: np.random.Generator) -> tuple[tuple[tuple[slice | Array, ...], Arrays], ...]:
    """Return rows and columns that together cross every tile, the edges always included."""
    a, b = inputs
    if a.shape[0] * a.shape[1] * b.shape[1] <= CHECK_WHOLE_UP_TO:
        return (((slice(None), slice(None)), inputs),)
    rows, columns = _lines(a.shape[0], generator), _lines(b.shape[1], generator)
    return (((rows, slice(None)), (a[rows], b)), ((slice(None), columns), (a, b[:, columns])))


def _lines(length: int, generator: np.random.Generator) -> Array:
    """Return one random index of every block of 32, the first and the last index too."""
    starts = np.arange(0, length, max(1, min(BLOCK, length // FEWEST_LINES)))
    ends = np.minimum(np.append(starts[1:], length), length)
    return np.unique(np.concatenate(([0, length - 1], generator.integers(starts, ends))))


def _implementations() -> Iterable[Implementation]:
    yield Implementation(
        "numpy",
        "numpy_blas",
        "numpy",
        "matrix",
        "numpy.matmul: OpenBLAS in fp64, fp32 and, widened to fp32, bf16; NumPy's own loop in fp16",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cpu",
        "numba_cpu_panels",
        "numba_cpu",
        "matrix",
        "a parallel Numba loop over panels that fit the L1 cache, 16-bit formats widened to fp32",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cuda",
        "numba_cuda_tiles",
        "numba_cuda",
        "vector",
        "a Numba CUDA kernel: 16 x 16 tiles in shared memory, sums in fp32",
        arithmetic=WIDENED,
    )
    yield Implementation("torch", "torch_blas", "torch", "matrix", "torch.mm: MKL and oneDNN on a CPU, cuBLAS on CUDA")


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
    is_matrix_product=True,
    samples=_samples,
)
