"""Two-dimensional convolution: (b, c, h, w) * (o, c, r, r) -> (b, o, h, w), stride 1, zeros around the image.

2·b·o·h·w·c·r² FLOPs, products with the zeros counted too, as torch's own counter does. On the roofline: every
number of the image is used o·r² times and every weight b·h·w times, so all but the thinnest layers are
compute-bound; written as a matrix product, (o, c·r²) @ (c·r², h·w), the image is copied r² times first, and a
library's algorithm decides how much of that ever reaches memory.
"""

from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpuexplore.core.model import Shape
from gpuexplore.kernels.geometry import Geometry, Lengths
from gpuexplore.operations.contract import Array, Arrays, Example, Operation, Preset, Product, norms
from gpuexplore.operations.implementation import row
from gpuexplore.operations.matmul import warp_tile
from gpuexplore.operations.sampling import CHECK_WHOLE_UP_TO, EVERY, Parts, lines
from gpuexplore.operations.winograd import growth_in_fp32

ON_TENSOR_CORES = ("bf16", "fp16")  # tf32 would take more registers than a thread has
THREAD_TILE = 8, 8  # rows and columns of sums a thread keeps in registers


def _tiled(output: Lengths) -> Lengths:
    """Return what tiles cover: a row for each channel of the output, and a column for each pixel of the batch."""
    return output[1], output[0] * prod(output[2:])


PATCH_TILES = Geometry(
    ((16, 8), (16, 16), (8, 8), (16, 4)),
    tile=lambda block: (THREAD_TILE[0] * block[1], THREAD_TILE[1] * block[0]),
    domain=_tiled,
)
WARP_PATCH_TILES = Geometry(((16, 16), (16, 8), (8, 8)), tile=warp_tile, domain=_tiled)
PIXELS_AT_A_TIME = 2**16  # keeps the reference's copies of a large image small


def _reference(x: Array, weights: Array) -> Array:
    pad = weights.shape[-1] // 2
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    windows = sliding_window_view(padded, weights.shape[2:], axis=(2, 3))
    out = np.empty((x.shape[0], weights.shape[0], height, width))
    rows = max(1, PIXELS_AT_A_TIME // width)
    for image, top in np.ndindex(len(x), -(-height // rows)):
        strip = slice(top * rows, (top + 1) * rows)
        out[image, :, strip] = np.tensordot(weights, windows[image, :, strip], axes=((1, 2, 3), (0, 3, 4)))
    return out


def _scale(expected: Array, x: Array, weights: Array) -> Array:
    """Return |patch|·|weights|/√terms, each patch no smaller than the usual: fast algorithms mix neighbours."""
    reach = weights.shape[-1]
    height, width = x.shape[2:]
    energy = np.einsum("bchw,bchw->bhw", x, x)
    pad = weights.shape[-1] // 2
    wide = np.pad(energy, ((0, 0), (pad, pad), (pad, pad)))
    for axis, length in ((1, height), (2, width)):
        sums = np.cumsum(np.insert(wide, 0, 0, axis=axis), axis=axis)
        wide = np.take(sums, range(reach, reach + length), axis) - np.take(sums, range(length), axis)
    usual = energy.mean(axis=(1, 2), keepdims=True) * reach**2
    return np.sqrt((wide + usual)[:, None] / weights[0].size) * norms(
        weights.reshape(len(weights), -1), axis=-1
    ).reshape(-1, 1, 1)


def _samples(inputs: Arrays, generator: np.random.Generator) -> Parts:
    """Return some channels of some images, whole: every tile of the image is crossed."""
    x, weights = inputs
    if x[:, 0].size * weights.size <= CHECK_WHOLE_UP_TO:
        return (((EVERY, EVERY), inputs),)
    images = lines(len(x), generator)
    channels = lines(len(weights), generator)
    return ((np.ix_(images, channels), (x[images], weights[channels])),)


def _problem(shape: Shape) -> str | None:
    return None if shape["r"] % 2 else "r is odd, so that the output is as large as the image"


def _halved(shape: Shape) -> Shape:
    """Return the shape with every length halved but the kernel's: an even one would have no middle."""
    return Shape.of(**dict(shape.scaled(0.5).axes) | {"r": shape["r"]})


OPERATION = Operation(
    name="conv2d",
    title="Two-dimensional convolution",
    formula="(b, c, h, w) * (o, c, r, r) → (b, o, h, w)",
    about="Every number is used many times: compute-bound, if the algorithm keeps the copied patches out of memory.",
    axes=("b", "c", "h", "w", "o", "r"),
    limits={"b": 4096, "c": 16384, "h": 16384, "w": 16384, "o": 16384, "r": 31},
    default_sizes=(14, 28, 56, 112),
    shape_of_size=lambda size: Shape.of(b=1, c=16, h=size, w=size, o=32, r=3),
    inputs=lambda shape: (
        (shape["b"], shape["c"], shape["h"], shape["w"]),
        (shape["o"], shape["c"], shape["r"], shape["r"]),
    ),
    output=lambda shape: (shape["b"], shape["o"], shape["h"], shape["w"]),
    flop_count=lambda shape: 2 * shape["b"] * shape["o"] * shape["h"] * shape["w"] * shape["c"] * shape["r"] ** 2,
    reference=_reference,
    reduction_length=lambda shape: shape["c"] * shape["r"] ** 2,
    implementations=(
        row(
            "numpy",
            "each r × r patch is copied to a column, 16-bit formats widened to fp32, then numpy.matmul",
            unit="matrix",
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop over strips of the image: patches to columns in the cache, then products of 16 rows",
            unit="matrix",
        ),
        row(
            "numba_cuda",
            "a Numba CUDA kernel: weights times patches by tiles, 8 x 8 sums in each thread; 8 numbers read from the "
            "image for 512 multiply-adds, 70 % of the main loop",
            geometry=PATCH_TILES,
        ),
        row(
            "numba_cuda",
            "the same product on the tensor cores in bf16 and fp16, weights by asynchronous copies: 36 % of the main "
            "loop are HMMA, where c is a multiple of 32, h x w of 4 and r at most 7",
            geometry=WARP_PATCH_TILES,
            name="numba-cuda-tensorcore",
            dtypes=ON_TENSOR_CORES,
            on_matrix_units=ON_TENSOR_CORES,
            arithmetic={},
            compute_capability="8.0",
            otherwise="numba-cuda",
            module="numba_cuda_tensorcore",
        ),
        row(
            "torch",
            "torch's convolution: oneDNN on a CPU, each result newly allocated; on CUDA the way cuDNN expects to be "
            "best",
            unit="matrix",
            vendor_library=True,
            growth=growth_in_fp32,
        ),
        row(
            "torch",
            "the same with cudnn.benchmark on: the first call tries cuDNN's algorithms, later calls use the fastest",
            name="torch-autotune",
            unit="matrix",
            device_kinds=("cuda",),
            growth=growth_in_fp32,
            export="build_autotune",
        ),
    ),
    examples=(
        Example(
            Shape.of(b=2, c=3, h=5, w=7, o=11, r=3),
            flop_count=2 * 2 * 11 * 35 * 27,
            fp32_bytes=4 * (2 * 105 + 11 * 27 + 2 * 385),
            terms=27,
        ),
    ),
    products=lambda shape: (Product(shape["b"], shape["o"], shape["h"] * shape["w"], shape["c"] * shape["r"] ** 2),),
    presets=(
        Preset(
            "notebook-conv",
            Shape.of(b=1, c=3, h=224, w=224, o=64, r=3),
            "the notebook's first layer: 3 channels to 64 over a 224 × 224 image; try torch against torch-autotune",
        ),
        Preset(
            "resnet-50",
            Shape.of(b=64, c=256, h=14, w=14, o=256, r=3),
            "ResNet-50's 3 × 3 layer of 256 channels, 64 images at a time: enough channels for tensor cores",
        ),
    ),
    problem=_problem,
    halved=_halved,
    scale=_scale,
    samples=_samples,
    linear=(0, 1),
    awkward=(
        (1, 1, 1, 1, 1, 1),
        (1, 1, 1, 1, 1, 5),
        (2, 3, 5, 7, 17, 3),
        (1, 3, 33, 257, 2, 3),
        (3, 17, 2, 3, 33, 7),
        (1, 65, 17, 15, 5, 1),
    ),
    simulated=(
        (1, 1, 1, 1, 1, 5),
        (2, 3, 5, 7, 17, 3),
        (2, 8, 9, 8, 65, 3),
        (1, 5, 17, 15, 5, 1),
        (3, 8, 3, 5, 7, 5),
        (1, 1, 2, 3, 1, 5),
    ),
)
