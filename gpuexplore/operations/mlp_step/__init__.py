"""A training step of a multilayer perceptron: linear layers with ReLU between them, cross-entropy, all gradients.

With B samples, L layers and the weights W_l, forward z_l = h_(l-1) W_l + b_l, h_l = max(0, z_l): 2·B·W FLOPs, W all
weights; backward dW_l = h_(l-1)ᵀ dz_l and dh_(l-1) = dz_l W_lᵀ: twice as many, less the gradient of the batch, which
is not needed: 3·L - 1 products. Biases, ReLU and the loss are not counted, as torch's own counter does not.
On the roofline: products, each weight used 3·B times; small layers are launch-bound, for a step is dozens of calls.
"""

from itertools import pairwise

import numpy as np

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


def _widths(shape: Shape) -> tuple[int, ...]:
    """Return the numbers of units: of the inputs, of each hidden layer and of the outputs."""
    return (shape["inputs"], *[shape["hidden"]] * (shape["layers"] - 1), shape["outputs"])


def _parameters(shape: Shape) -> tuple[tuple[int, ...], ...]:
    return tuple(lengths for fan_in, fan_out in pairwise(_widths(shape)) for lengths in ((fan_in, fan_out), (fan_out,)))


def _prepared(arrays: Arrays) -> Arrays:
    batch, targets, *parameters = arrays
    scales = [weight_scale(len(weights)) for weights in parameters[::2] for _ in range(2)]  # a bias like its weights
    scaled = (parameter * parameter.dtype.type(scale) for parameter, scale in zip(parameters, scales, strict=True))
    return (batch, one_hot(targets), *scaled)


def _activations(batch: Array, parameters: Arrays) -> list[Array]:
    """Return what goes into each layer, before ReLU: the batch, each hidden layer's sums, and last the logits."""
    sums = [batch]
    for weights, bias in zip(parameters[::2], parameters[1::2], strict=True):
        sums.append((np.maximum(sums[-1], 0) if len(sums) > 1 else batch) @ weights + bias)
    return sums


def _gradients(sums: list[Array], targets: Array, parameters: Arrays, kinks: list[float]) -> Array:
    """Return loss and gradients; a unit of layer l passes its gradient on where its sum is above `kinks[l]`."""
    loss, arriving = cross_entropy(sums[-1], targets)
    gradients: list[Array] = []
    for layer in range(len(sums) - 2, -1, -1):
        given = np.maximum(sums[layer], 0) if layer else sums[0]
        gradients = [given.T @ arriving, arriving.sum(axis=0), *gradients]
        arriving = (arriving @ parameters[2 * layer].T) * (sums[layer] > kinks[layer]) if layer else arriving
    return flat(loss, gradients)


def _reference(batch: Array, targets: Array, *parameters: Array) -> Array:
    sums = _activations(batch, parameters)
    return _gradients(sums, targets, parameters, [0.0] * len(sums))


def _across_kinks(inputs: Arrays, rounded: float, summed: float) -> tuple[Array, Array] | None:
    """Return the outputs with the units within rounding of zero on and off; None where there is no such unit.

    The sums of the first layer have exact terms; of a later one, terms rounded once in each layer before.
    """
    batch, targets, *parameters = inputs
    sums = _activations(batch, tuple(parameters))
    margins = [0.0] * len(sums)
    for layer in range(1, len(sums) - 1):
        error = (
            rounded * (layer - 1) ** 0.5 + summed * sum(len(weights) for weights in parameters[: 2 * layer : 2]) ** 0.5
        )
        margins[layer] = error * float(np.sqrt(np.mean(sums[layer] ** 2)))
    if not any((abs(z) <= margin).any() for z, margin in zip(sums[1:-1], margins[1:-1], strict=True)):
        return None
    on = [-margin for margin in margins]
    off = margins
    return tuple(_gradients(sums, targets, tuple(parameters), kinks) for kinks in (on, off))  # type: ignore[return-value]


def _forward(shape: Shape) -> tuple[Product, ...]:
    return tuple(Product(1, shape["batch"], fan_out, fan_in) for fan_in, fan_out in pairwise(_widths(shape)))


def _products(shape: Shape) -> tuple[Product, ...]:
    """Return the products: forward, then both gradients of each; that of the batch is not needed."""
    forward = _forward(shape)
    return forward + tuple(gradient for product in forward for gradient in backward_of(product))[1:]


def _problem(shape: Shape) -> str | None:
    if shape["outputs"] < 2:
        return "outputs is 2 or more, so that there are classes to distinguish"
    return None if multiplied(_products(shape)) <= MOST_FLOPS else TOO_LARGE


def _halved(shape: Shape) -> Shape:
    """Return the shape with half the batch and half the widths: the depth and the classes stay."""
    return Shape.of(**dict(shape.scaled(0.5).axes) | {"outputs": shape["outputs"], "layers": shape["layers"]})


OPERATION = Operation(
    name="mlp_step",
    title="Training step of an MLP",
    formula="loss and gradients of softmax(… max(0, x W₁ + b₁) … W_L + b_L), x (batch, inputs)",
    about="Forward and backward through linear layers with ReLU: 3·layers - 1 products, and many small calls.",
    axes=("batch", "inputs", "hidden", "outputs", "layers"),
    limits={"batch": 65536, "inputs": 2**20, "hidden": 2**17, "outputs": 2**20, "layers": 128},
    default_sizes=(64, 128, 256, 512),
    shape_of_size=lambda size: Shape.of(batch=128, inputs=size, hidden=size, outputs=10, layers=2),
    inputs=lambda shape: (
        (shape["batch"], shape["inputs"]),
        (shape["batch"], shape["outputs"]),
        *_parameters(shape),
    ),
    output=lambda shape: flat_length(_parameters(shape)),
    flop_count=lambda shape: multiplied(_products(shape)),
    reference=_reference,
    reduction_length=lambda shape: shape["batch"] + sum(_widths(shape)[:-1]) + sum(_widths(shape)[2:]),
    implementations=(
        row(
            "numpy",
            "numpy.matmul and ufuncs into buffers that are kept, 16-bit formats widened to fp32 first",
            unit="matrix",
        ),
        row(
            "numba_cpu",
            "a parallel Numba loop for each product, 16 rows at a time, 16-bit formats widened to fp32 first",
            unit="matrix",
        ),
        *torch_variants(),
    ),
    examples=(
        Example(
            Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2),
            flop_count=24_000,
            fp32_bytes=4 * (300 + 200 + 62 + 1 + 62),
            terms=100 + 13 + 2,
        ),
    ),
    products=_products,
    presets=(
        Preset(
            "notebook-3-10-2",
            Shape.of(batch=100, inputs=3, hidden=10, outputs=2, layers=2),
            "the notebook's training loop, 24,000 FLOPs per step: nearly all of its time is call overhead",
        ),
        Preset(
            "notebook-784-784-10",
            Shape.of(batch=128, inputs=784, hidden=784, outputs=10, layers=2),
            "the notebook's network for digits: 3.2e8 FLOPs per step, where 6 × samples × parameters gives 4.8e8",
        ),
    ),
    problem=_problem,
    halved=_halved,
    prepared=_prepared,
    scale=gradient_scale(_reference),
    quantities=quantities,
    roundings=lambda shape: 2 * shape["layers"] + 1,  # a sum of each layer, the gradient of each, and the output
    phases={
        "forward": lambda shape: multiplied(_forward(shape)),
        "backward": lambda shape: multiplied(_products(shape)) - multiplied(_forward(shape)),
        "optimizer": lambda shape: optimizer_flop_count(shape, _parameters),
    },
    calls=lambda shape: 6 * shape["layers"],  # 3L - 1 products, 2L - 2 of ReLU, L sums for biases, 3 of the loss
    across_kinks=_across_kinks,
    awkward=((1, 1, 1, 2, 2), (5, 3, 9, 7, 1), (33, 17, 65, 11, 3), (100, 3, 10, 2, 2)),
    simulated=((1, 1, 1, 2, 2),),
)
