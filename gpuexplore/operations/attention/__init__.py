"""Attention: softmax(q kᵀ / √d) v over (b, h, s, d), no mask, 4·b·h·s²·d FLOPs: the two products.

The exponentials, b·h·s² of them, are not counted, as nobody counts them. On the roofline: the inputs hold
4·b·h·s·d numbers, so the intensity grows with s and long sequences are compute-bound, if the s × s scores
never reach memory: a kernel that writes and reads them back is memory-bound at any length.
"""

from collections.abc import Iterable

import numpy as np

from gpuexplore.model import Shape
from gpuexplore.operations.attention.geometry import ROW_PER_WARP
from gpuexplore.operations.contract import WIDENED, Array, Arrays, Implementation, Operation, Preset, Product
from gpuexplore.operations.sampling import CHECK_WHOLE_UP_TO, EVERY, Parts, lines


def _lengths(shape: Shape) -> tuple[int, ...]:
    return tuple(shape)


def _products(shape: Shape) -> tuple[Product, ...]:
    heads, length, depth = shape["b"] * shape["h"], shape["s"], shape["d"]
    return (Product(heads, length, length, depth), Product(heads, length, depth, length))


def _reference(q: Array, k: Array, v: Array) -> Array:
    out = np.empty(q.shape)
    for head in np.ndindex(q.shape[:2]):
        scores = q[head] @ k[head].T / np.sqrt(q.shape[-1])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[head] = weights @ v[head] / weights.sum(axis=1, keepdims=True)
    return out


def _samples(inputs: Arrays, generator: np.random.Generator) -> Parts:
    """Return some rows of every head: each row attends to all keys."""
    q, k, v = inputs
    if 2 * q.size * k.shape[2] <= CHECK_WHOLE_UP_TO:
        return (((EVERY, EVERY, EVERY), inputs),)
    rows = lines(q.shape[2], generator)
    return (((EVERY, EVERY, rows), (q[:, :, rows], k, v)),)


def _implementations() -> Iterable[Implementation]:
    yield Implementation(
        "numpy",
        "numpy_blas",
        "numpy",
        "matrix",
        "two numpy.matmul and numpy.exp between them, 256 rows at a time, 16-bit formats widened to fp32",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cpu",
        "numba_cpu_panels",
        "numba_cpu",
        "matrix",
        "a parallel Numba loop over 16 rows of a head at a time, whose scores stay in the cache",
        arithmetic=WIDENED,
    )
    yield Implementation(
        "numba-cuda",
        "numba_cuda_online",
        "numba_cuda",
        "vector",
        "a Numba CUDA kernel: one warp a row walks all keys once; with an online softmax no score is ever stored",
        arithmetic=WIDENED,
        geometry=ROW_PER_WARP,
    )
    yield Implementation(
        "torch",
        "torch_fused",
        "torch",
        "matrix",
        "scaled_dot_product_attention: one fused kernel where torch has it for the dtype, each result newly allocated",
    )


OPERATION = Operation(
    name="attention",
    title="Attention",
    formula="softmax((b, h, s, d) @ (b, h, d, s) / √d) @ (b, h, s, d) → (b, h, s, d)",
    about="Two products with a softmax between them: arithmetic decides, if the scores stay on the chip.",
    axes=("b", "h", "s", "d"),
    limits={"b": 1024, "h": 256, "s": 32768, "d": 256},
    default_sizes=(32, 64, 128, 256),
    shape_of_size=lambda size: Shape.of(b=1, h=8, s=size, d=64),
    inputs=lambda shape: (_lengths(shape),) * 3,
    output=_lengths,
    flop_count=lambda shape: 4 * shape["b"] * shape["h"] * shape["s"] ** 2 * shape["d"],
    reference=_reference,
    reduction_length=lambda shape: shape["d"] + shape["s"],  # a score sums d terms, an output s of them
    implementations=tuple(_implementations()),
    products=_products,
    presets=(
        Preset(
            "gpt2-small",
            Shape.of(b=1, h=12, s=1024, d=64),
            "one layer of GPT-2 small over its whole context, without its causal mask",
        ),
    ),
    samples=_samples,
)
