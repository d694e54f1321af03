"""Attention: softmax(q kᵀ / √d) v over (b, h, s, d), 4·b·h·s²·d FLOPs: the two products.

With `causal` each query attends to the keys up to its own: 4·b·h·d FLOPs for each of the s·(s+1)/2 pairs that are left.
The exponentials, one for each pair, are not counted, as is usual. On the roofline: the inputs hold
4·b·h·s·d numbers, so the intensity grows with s and long sequences are compute-bound, if the s × s scores
never reach memory: a kernel that writes and reads them back is memory-bound at any length.
"""

from dataclasses import replace
from functools import partial
from math import ceil, prod

import numpy as np

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import WARP, Geometry
from gpuexplore.operations.contract import Array, Arrays, Example, Operation, Preset, Product, norms
from gpuexplore.operations.implementation import row
from gpuexplore.operations.sampling import CHECK_WHOLE_UP_TO, EVERY, Parts, lines

ON_TENSOR_CORES = ("bf16", "fp16")
SPAN = 64  # keys, and columns of the output, that a block of our CUDA kernel takes at a time
TILED_ROWS = Geometry(  # 16 rows a warp, of every head whole spans
    ((128,), (64,)),
    tile=lambda block: (SPAN, block[0] // WARP * 16),
    domain=lambda output: (output[3], prod(output[:2]) * ceil(output[2] / SPAN) * SPAN),
)


def attended_pairs(
    queries: int,
    keys: int,
    *,
    causal: bool,
    bottom_right: bool = False,
    window: tuple[int | None, int | None] = (None, None),
) -> int:
    """Return how many pairs of a query and a key have a score: all, or those that a mask leaves.

    Args:
        bottom_right: the mask ends at the last query and the last key, as flash-attn's from 2.1 on; else it begins at
            the first of both, as torch's `is_causal`. They differ where `queries` and `keys` do.
        window: how many keys before its own position a query sees, and how many after it; None: all.
    """
    own = keys - queries if bottom_right else 0
    before, after = window

    after = 0 if causal else after

    def triangle(rows: int) -> int:
        """Sum min(row, keys) over the rows from 1 on."""
        corner = min(max(rows, 0), keys)
        return corner * (corner + 1) // 2 + max(rows - keys, 0) * keys

    def up_to(shift: int) -> int:
        """Count the pairs whose key's number is at most that of the query plus `shift`."""
        return triangle(queries + shift) - triangle(shift)

    seen = queries * keys if after is None else up_to(own + after)
    return seen if before is None else seen - up_to(own - before - 1)


def _lengths(shape: Shape) -> tuple[int, ...]:
    return tuple(shape)[:4]


def _pairs(shape: Shape) -> int:
    return attended_pairs(shape["s"], shape["s"], causal="causal" in dict(shape.axes))


def _products(shape: Shape) -> tuple[Product, ...]:
    """Return the two products, each row with the keys that it attends to on average."""
    heads = shape["b"] * shape["h"]
    length = shape["s"]
    depth = shape["d"]
    keys = ceil(_pairs(shape) / length)
    return (Product(heads, length, keys, depth), Product(heads, length, depth, keys))


def _reference(q: Array, k: Array, v: Array, *, causal: bool = False) -> Array:
    """Return the attention of some queries to some keys; a causal mask ends at the last of both."""
    out = np.empty(q.shape)
    hidden = ~np.tri(q.shape[2], k.shape[2], k.shape[2] - q.shape[2], dtype=bool) if causal else False
    for head in np.ndindex(q.shape[:2]):
        scores = np.where(hidden, -np.inf, q[head] @ k[head].T / np.sqrt(q.shape[-1]))
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[head] = weights @ v[head] / weights.sum(axis=1, keepdims=True)
    return out


def _scale(expected: Array, q: Array, k: Array, v: Array) -> Array:
    """Return the size of each row, times 1 + that of its scores: an error of a score is a relative one of a weight.

    A short row may be small by chance: it counts as no less than a share of the values.
    """
    square = np.square(expected).mean(axis=-1, keepdims=True)
    depth = v.shape[-1]
    size = np.sqrt(square + np.square(v).mean(axis=(-2, -1), keepdims=True) / depth**2)
    scores = norms(q, axis=-1)[..., None] * norms(k, axis=-1).max(axis=-1)[..., None, None] / depth
    return size * (1 + scores)


def _samples(inputs: Arrays, generator: np.random.Generator) -> Parts:
    """Return some rows of every head: each row attends to all keys."""
    q, k, v = inputs
    if 2 * q.size * k.shape[2] <= CHECK_WHOLE_UP_TO:
        return (((EVERY, EVERY, EVERY), inputs),)
    rows = lines(q.shape[2], generator)
    return (((EVERY, EVERY, rows), (q[:, :, rows], k, v)),)


def _causal_samples(inputs: Arrays, generator: np.random.Generator) -> Parts:
    """Return some rows of every head, each with the keys up to its own."""
    ((_, _, rows), _), *_ = parts = _samples(inputs, generator)
    if isinstance(rows, slice):
        return parts
    upto = ((slice(row, row + 1), slice(row + 1)) for row in rows.tolist())
    q, k, v = inputs
    return tuple(((EVERY, EVERY, row), (q[:, :, row], k[:, :, keys], v[:, :, keys])) for row, keys in upto)


def _causal(attention: Operation) -> Operation:
    return replace(attention, reference=partial(_reference, causal=True), samples=_causal_samples)


OPERATION = Operation(
    name="attention",
    title="Attention",
    formula="softmax((b, h, s, d) @ (b, h, d, s) / √d) @ (b, h, s, d) → (b, h, s, d)",
    about="Two matmuls with a softmax between them: compute-bound, if the scores stay on the chip.",
    axes=("b", "h", "s", "d"),
    limits={"b": 4096, "h": 1024, "s": 32768, "d": 256},
    default_sizes=(32, 64, 128, 256),
    shape_of_size=lambda size: Shape.of(b=1, h=8, s=size, d=64),
    inputs=lambda shape: (_lengths(shape),) * 3,
    output=_lengths,
    flop_count=lambda shape: 4 * shape["b"] * shape["h"] * shape["d"] * _pairs(shape),
    reference=_reference,
    reduction_length=lambda shape: shape["d"] + shape["s"],  # a score sums d terms, an output s of them
    implementations=(
        row(
            "numpy",
            "two numpy.matmul and numpy.exp between them, 256 rows at a time, 16-bit formats widened to fp32",
            unit="matrix",
            flags=("causal",),
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop over 16 rows of a head at a time; their scores stay in the cache",
            unit="matrix",
            flags=("causal",),
        ),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: a block of 64 rows walks the keys once and stores no score; each thread does 32 "
            "multiply-adds for three 128-bit loads from shared memory",
            geometry=TILED_ROWS,
            name="numba-cuda-online",
            module="numba_cuda_online",
        ),
        row(
            "numba_cuda",
            "tensor cores in bf16 and fp16: a warp multiplies 32 rows by 64 keys, 40 loads for 128 products, and the "
            "scores stay where they were summed: 19 % of the main loop are HMMA; else numba-cuda-online",
            geometry=TILED_ROWS,
            on_matrix_units=ON_TENSOR_CORES,
            arithmetic={},
            compute_capability="8.0",
            otherwise="numba-cuda-online",
        ),
        row(
            "torch",
            "scaled_dot_product_attention: one fused kernel where torch has it for the dtype, each result newly "
            "allocated",
            unit="matrix",
            vendor_library=True,
            flags=("causal",),
        ),
    ),
    examples=(
        Example(Shape.of(b=2, h=3, s=5, d=7), flop_count=4 * 6 * 25 * 7, fp32_bytes=4 * (4 * 6 * 5 * 7), terms=7 + 5),
    ),
    products=_products,
    presets=(
        Preset(
            "gpt2-small",
            Shape.of(b=1, h=12, s=1024, d=64),
            "one layer of GPT-2 small over its full context, without the causal mask",
        ),
        Preset(
            "gpt2-small-causal",
            Shape.of(b=1, h=12, s=1024, d=64, causal=1),
            "the same with the causal mask: each token attends only to itself and earlier tokens",
        ),
    ),
    scale=_scale,
    samples=_samples,
    roundings=lambda _: 2,  # the weights between the products, and the output
    awkward=(
        *((1, 1, 1, 1), (1, 2, 1, 65), (2, 3, 33, 17), (1, 1, 257, 64), (3, 1, 65, 256)),
        *((1, 1, 1, 1, 1), (2, 3, 33, 17, 1), (1, 1, 257, 64, 1)),
    ),
    flags={"causal": _causal},
    simulated=((1, 1, 1, 1), (1, 2, 17, 33), (1, 1, 65, 8), (1, 1, 3, 72), (2, 1, 2, 65)),
)
