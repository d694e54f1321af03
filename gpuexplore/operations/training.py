"""The common parts of the training steps: inputs, weights, targets and the flat output, loss first, then gradients.

A step is a pure function: the batch, its targets and the weights go in; the mean loss over the batch and the gradient
of every weight come out, nothing is updated. It can therefore be repeated, poisoned and compared like any operation.

Targets are one row for each sample, 1 at its class and 0 elsewhere, which every dtype holds exactly. Weights are normal
numbers times a power of two near He's √(2 / terms) (https://arxiv.org/abs/1502.01852), so that numbers keep their size
from layer to layer and no dtype rounds them twice.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise
from math import log2, prod
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.model import Shape
from gpuexplore.operations.contract import Array, Arrays, Phased, Product, of_gradients

Lengths = tuple[int, ...]
Forward = Callable[..., tuple[float, Any]]  # from batch, targets and parameters to the loss and what backward needs
Backward = Callable[[Any], Sequence[Array]]  # from that to the gradients
Build = Callable[[Sequence[Any], Any, DType], Phased]
RATE = 0.125  # of optimizers: larger than in training, so that 16-bit weights show what was added to them
MOST_FLOPS = 2**41  # the float64 reference of a larger step would take minutes
TOO_LARGE = "a step has at most 2.2e12 FLOPs, so that it can be checked"


def flat_length(parameters: Iterable[Lengths]) -> tuple[int]:
    """Return the shape of the output: the loss, and the gradients of parameters of these shapes."""
    return (1 + sum(map(prod, parameters)),)


def _slices_of(parameters: Sequence[Lengths]) -> tuple[slice, ...]:
    """Return where the loss and the gradient of each parameter lie in the output."""
    ends = accumulate((1, *map(prod, parameters)), initial=0)
    return tuple(slice(*ends_of_one) for ends_of_one in pairwise(ends))


def quantities(inputs: Arrays) -> tuple[slice, ...]:
    """Return where the loss and each gradient lie in the output, from batch, targets and parameters."""
    return _slices_of([parameter.shape for parameter in inputs[2:]])


def gradient_scale(reference: Callable[..., Array]) -> Callable[..., Array]:
    """Return what tells the sizes of what the loss and each gradient of a step were summed of.

    Of few samples all may cancel: probabilities less targets, where these are right, and one sample's share with
    another's. Gradients for targets of zero are those of the probabilities alone, and what differs that of the targets.
    Of many, those of a gradient with few elements may: each sample's share is the smaller, and they add as independent.
    """

    def scale(expected: Array, batch: Array, targets: Array, *parameters: Array) -> Array:
        shapes = [parameter.shape for parameter in parameters]
        terms = expected
        samples = targets.size // targets.shape[-1]
        few_samples = 64  # shares of more do not cancel by chance in all of a gradient's elements,
        few_elements = (
            8  # but in so few they may: gradients of two classes are one number, once less than 1 % of its size
        )
        if samples <= few_samples or any(prod(shape) <= few_elements for shape in shapes):
            apart = reference(batch, np.zeros_like(targets), *parameters)
            squares = np.square(apart) + np.square(expected - apart)
            terms = np.sqrt(np.square(expected) + squares / max(1.0, samples / few_samples))
            terms[0] = max(1.0, expected[0])  # of a logarithm of a sum less a logit
        return of_gradients(terms, _slices_of(shapes), [(1,), *shapes])

    return scale


def views(out: Any, parameters: Sequence[Lengths]) -> list[Any]:
    """Return views of the flat `out`, of any library: the loss (1), and each gradient in its parameter's shape."""
    loss, *gradients = (out[part] for part in _slices_of(parameters))
    return [loss, *(flat.reshape(shape) for flat, shape in zip(gradients, parameters, strict=True))]


def flat(loss: float, gradients: Iterable[Array]) -> Array:
    """Return the output: the loss, then the gradients, row by row."""
    return np.concatenate([[loss], *(gradient.ravel() for gradient in gradients)])


def weight_scale(terms: int) -> float:
    """Return the power of two nearest to √(2 / terms), for weights of sums of `terms`."""
    return float(2.0 ** round((1 - log2(terms)) / 2))


def loss_scale(samples: int) -> float:
    """Return the factor that keeps gradients of a mean over `samples` above the smallest fp16: a power of two."""
    return float(2.0 ** (samples - 1).bit_length())


def one_hot(draws: Any) -> Any:
    """Return rows of 0 with a 1 where each row of `draws` (..., classes) has its largest number."""
    rows = np.zeros_like(draws)
    np.put_along_axis(rows, draws.argmax(axis=-1, keepdims=True), 1, axis=-1)
    return rows


def cross_entropy(logits: Array, targets: Array) -> tuple[float, Array]:
    """Return the mean cross-entropy of rows (samples, classes), and its gradient with respect to the logits.

    Both in the arrays' own format.
    """
    shifted = logits - logits.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    sums = exponentials.sum(axis=1, keepdims=True)
    loss = float((targets * (np.log(sums) - shifted)).sum() / len(logits))
    return loss, (exponentials / sums - targets) / len(logits)


def multiplied(products: Iterable[Product]) -> int:
    """Return the FLOPs of matrix products."""
    return sum(2 * product.batch * product.m * product.n * product.k for product in products)


def backward_of(product: Product) -> tuple[Product, Product]:
    """Return the products of both gradients of `product`: of its left factor, then of its right one."""
    batch, m, n, k = product
    return Product(batch, m, k, n), Product(batch, k, n, m)


def functional(forward: Forward, backward: Backward) -> Build:
    """Return the builder of a step in NumPy from functions that return newly allocated arrays.

    16-bit formats are widened to fp32 when a step begins, and the gradients rounded when it ends.
    """

    def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Phased:
        kind = DTYPES[dtype.accumulate].storage
        kept: list[Any] = []
        out_views = views(out, [array.shape for array in inputs[2:]])

        def go_forward() -> None:
            kept[:] = forward(*(array.astype(kind, copy=False) for array in inputs))

        def go_backward() -> None:
            loss, results = kept
            found: list[Any] = [loss, *backward(results)]
            for view, quantity in zip(out_views, found, strict=True):
                view[...] = quantity

        updated = [np.empty(parameter.shape, kind) for parameter in inputs[2:]]
        return in_phases(go_forward, go_backward, sgd_of(inputs[2:], out_views[1:], updated))

    return build


def sgd_of(parameters: Sequence[Any], gradients: Sequence[Any], updated: Sequence[Any]) -> Callable[[], object]:
    """Return SGD by NumPy on `parameters` by `gradients`, written to `updated`."""

    def update() -> None:
        for parameter, gradient, result in zip(parameters, gradients, updated, strict=True):
            np.multiply(gradient, RATE, out=result, dtype=result.dtype)
            np.subtract(parameter, result, out=result)

    return update


def optimizer_flop_count(shape: Shape, parameters: Callable[[Shape], Iterable[Lengths]]) -> int:
    """Return the FLOPs of SGD on the parameters of a step: a multiply-add each."""
    return 2 * (flat_length(parameters(shape))[0] - 1)


def in_phases(forward: Callable[[], object], backward: Callable[[], object], optimizer: Callable[[], object]) -> Phased:
    """Return the step that goes forward, then backward; its phases are these, and an optimizer's step after them."""

    def run() -> None:
        forward()
        backward()

    return Phased(run, {"forward": forward, "backward": backward, "optimizer": optimizer})
