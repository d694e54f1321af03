"""A training step of a small convolutional network: 3 × 3 convolution, ReLU, mean of 2 × 2, linear layer, gradients.

Images (batch, channels, size, size) with zeros around them, stride 1; `filters` channels after the convolution,
filters·(size/2)² inputs of the linear layer, cross-entropy. FLOPs are those of both layers: forward, backward for the
weights, and what the linear layer passes back; the mean, ReLU and the loss are not counted, as torch does not. The mean
and not the maximum of four, for with that the right gradient would depend on the rounding of near ties.
On the roofline: the convolution is compute-bound, but its maps, batch·filters·size² numbers, are read and written by
each step between the products, which is what small networks wait for.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Array, Arrays, Example, Operation, Preset, Product
from gpuexplore.operations.implementation import row, torch_variants
from gpuexplore.operations.training import (
    MOST_FLOPS,
    TOO_LARGE,
    backward_of,
    cross_entropy,
    flat,
    flat_length,
    gradient_scale,
    multiplied,
    one_hot,
    optimizer_flop_count,
    quantities,
    weight_scale,
)

KERNEL = 3
POOL = 2
Kept = tuple[Array, Array, Array, Array, Array]  # batch, sums of the convolution, pooled, linear weights, error


def _parameters(shape: Shape) -> tuple[tuple[int, ...], ...]:
    filters = shape["filters"]
    features = shape["filters"] * (shape["size"] // POOL) ** 2
    return (
        (filters, shape["channels"], KERNEL, KERNEL),
        (filters,),
        (features, shape["outputs"]),
        (shape["outputs"],),
    )


def _prepared(arrays: Arrays) -> Arrays:
    batch, targets, filters, bias, weights, last_bias = arrays
    scale = weight_scale(filters[0].size)
    last = weight_scale(len(weights))
    return (batch, one_hot(targets), filters * scale, bias * scale, weights * last, last_bias * last)


def _patches(images: Array) -> Array:
    """Return the 3 × 3 neighbourhoods (batch·size², channels·9) of images (batch, channels, size, size)."""
    windows = sliding_window_view(np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1))), (KERNEL, KERNEL), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, images.shape[1] * KERNEL * KERNEL)


def forward(batch: Array, targets: Array, *parameters: Array) -> tuple[float, Kept]:
    """Return the loss, and what backward needs."""
    filters, bias, weights, last_bias = parameters
    images, _, size, _ = batch.shape
    flat_filters = filters.reshape(len(filters), -1).T
    sums = np.concatenate([_patches(image[None]) @ flat_filters for image in batch]).reshape(images, size, size, -1)
    sums = (sums + bias).transpose(0, 3, 1, 2)
    halves = np.maximum(sums, 0).reshape(images, len(filters), size // POOL, POOL, size // POOL, POOL)
    pooled = halves.mean(axis=(3, 5)).reshape(images, -1)
    loss, error = cross_entropy(pooled @ weights + last_bias, targets)
    return loss, (batch, sums, pooled, weights, error)


def backward(kept: Kept, kink: float | Array = 0.0) -> list[Array]:
    """Return the gradients; a unit passes its gradient on where its sum is above `kink`."""
    batch, sums, pooled, weights, error = kept
    back = (error @ weights.T).reshape(*sums.shape[:2], sums.shape[2] // POOL, sums.shape[3] // POOL)
    spread = back.repeat(POOL, axis=2).repeat(POOL, axis=3) * (sums > kink) / POOL**2
    maps = spread.astype(sums.dtype, copy=False).transpose(0, 2, 3, 1).reshape(len(batch), -1, sums.shape[1])
    filters = sum(_patches(image[None]).T @ given for image, given in zip(batch, maps, strict=True))
    of_filters = np.asarray(filters).T.reshape(sums.shape[1], batch.shape[1], KERNEL, KERNEL)
    return [of_filters, maps.sum(axis=(0, 1)), pooled.T @ error, error.sum(axis=0)]


def _reference(*inputs: Array) -> Array:
    loss, kept = forward(*inputs)
    return flat(loss, backward(kept))


def _across_kinks(inputs: Arrays, rounded: float, summed: float) -> tuple[Array, Array] | None:
    """Return the outputs with the units within rounding of zero on and off.

    The terms of their sums are exact. Where the bias is added by itself, as torch does it on a GPU, the convolution
    was rounded before, by half of `rounded` at most.
    """
    loss, kept = forward(*inputs)
    sums = kept[1]
    terms = inputs[2][0].size
    bias = inputs[3][:, None, None]
    margin = summed * terms**0.5 * np.sqrt(np.mean(sums**2)) + rounded / 2 * abs(sums - bias)
    if not (abs(sums) <= margin).any():
        return None
    return flat(loss, backward(kept, -margin)), flat(loss, backward(kept, margin))


def _forward(shape: Shape) -> tuple[Product, ...]:
    pixels = shape["size"] ** 2
    features = shape["filters"] * (shape["size"] // POOL) ** 2
    return (
        Product(shape["batch"], pixels, shape["filters"], shape["channels"] * KERNEL**2),
        Product(1, shape["batch"], shape["outputs"], features),
    )


def _products(shape: Shape) -> tuple[Product, ...]:
    """Return the products: forward, then both gradients of each; that of the images is not needed."""
    made = _forward(shape)
    return made + tuple(gradient for product in made for gradient in backward_of(product))[1:]


def _problem(shape: Shape) -> str | None:
    if shape["size"] % POOL:
        return "size is even, so that the mean of 2 × 2 covers the image"
    if shape["outputs"] < 2:
        return "outputs is 2 or more, so that there are classes to distinguish"
    return None if multiplied(_products(shape)) <= MOST_FLOPS else TOO_LARGE


def _halved(shape: Shape) -> Shape:
    """Return the shape with half the batch and about half the size, which stays even: the rest stays."""
    size = max(POOL, shape["size"] // 2 // POOL * POOL)
    return Shape.of(**dict(shape.axes) | {"batch": max(1, shape["batch"] // 2), "size": size})


OPERATION = Operation(
    name="cnn_step",
    title="Training step of a CNN",
    formula="loss and gradients of softmax(mean₂ₓ₂(max(0, x * W₁ + b₁)) W₂ + b₂), x (batch, channels, size, size)",
    about="A convolution and a linear layer, forward and backward: intermediate maps pass through memory.",
    axes=("batch", "channels", "size", "filters", "outputs"),
    limits={"batch": 2**16, "channels": 4096, "size": 4096, "filters": 8192, "outputs": 2**17},
    default_sizes=(8, 16, 32, 64),
    shape_of_size=lambda size: Shape.of(batch=64, channels=3, size=size + size % 2, filters=16, outputs=10),
    inputs=lambda shape: (
        (shape["batch"], shape["channels"], shape["size"], shape["size"]),
        (shape["batch"], shape["outputs"]),
        *_parameters(shape),
    ),
    output=lambda shape: flat_length(_parameters(shape)),
    flop_count=lambda shape: multiplied(_products(shape)),
    reference=_reference,
    reduction_length=lambda shape: (
        shape["channels"] * KERNEL**2
        + shape["filters"] * (shape["size"] // POOL) ** 2
        + shape["outputs"]
        + shape["batch"] * shape["size"] ** 2
    ),
    implementations=(
        row(
            "numpy",
            "each 3 × 3 patch is copied to a row, then numpy.matmul, image by image; 16-bit formats widened to fp32",
            unit="matrix",
        ),
        *torch_variants(),
    ),
    examples=(
        Example(
            Shape.of(batch=2, channels=3, size=4, filters=5, outputs=7),
            flop_count=2 * (2 * 2 * 5 * 16 * 27) + 3 * (2 * 2 * 20 * 7),
            fp32_bytes=4 * (96 + 14 + 2 * (135 + 5 + 140 + 7) + 1),
            terms=27 + 20 + 7 + 32,
        ),
    ),
    products=_products,
    presets=(
        Preset(
            "digits",
            Shape.of(batch=64, channels=1, size=28, filters=32, outputs=10),
            "images of handwritten digits, 64 at a time: moving the maps takes longer than the matmuls",
        ),
    ),
    problem=_problem,
    halved=_halved,
    prepared=_prepared,
    scale=gradient_scale(_reference),
    quantities=quantities,
    roundings=lambda _: 8,  # sums, mean, logits, the error, what passes back through both, spread, and the output
    phases={
        "forward": lambda shape: multiplied(_forward(shape)),
        "backward": lambda shape: multiplied(_products(shape)) - multiplied(_forward(shape)),
        "optimizer": lambda shape: optimizer_flop_count(shape, _parameters),
    },
    calls=lambda _: 15,  # 5 products, a sum for each bias, ReLU and the mean there and back, 3 of the loss
    across_kinks=_across_kinks,
    awkward=((1, 1, 2, 1, 2), (3, 2, 6, 5, 7), (5, 3, 10, 17, 3)),
    simulated=((1, 1, 2, 1, 2),),
)
