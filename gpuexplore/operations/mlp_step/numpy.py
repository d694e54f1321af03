"""numpy.matmul and ufuncs, layer by layer, into buffers that are kept; gradients are written where they belong.

16-bit formats are widened to fp32 when a step begins and their gradients rounded when it ends; both are timed.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.operations.training import cross_entropy, in_phases, sgd_of, views


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the step that writes the loss and all gradients, flat, to `out`."""
    kind = DTYPES[dtype.accumulate].storage
    wide_out = out if out.dtype == kind else np.empty(out.shape, kind)
    wide = [array if array.dtype == kind else np.empty(array.shape, kind) for array in inputs]
    batch, targets, *parameters = wide
    loss, *gradients = views(wide_out, [parameter.shape for parameter in parameters])
    layers = list(zip(parameters[::2], parameters[1::2], strict=True))
    sums = [batch, *(np.empty((len(batch), bias.size), kind) for _, bias in layers)]
    errors = [np.empty_like(array) for array in sums]

    def forward() -> None:
        for array, given in zip(wide, inputs, strict=True):
            if array is not given:
                array[...] = given
        _forward(sums, layers)
        loss[0], errors[-1][...] = cross_entropy(sums[-1], targets)

    def backward() -> None:
        # Write the gradients of weights and biases, from the last layer to the first.
        for layer in range(len(layers) - 1, -1, -1):
            np.matmul(sums[layer].T, errors[layer + 1], out=gradients[2 * layer])
            np.sum(errors[layer + 1], axis=0, out=gradients[2 * layer + 1])
            if layer:
                np.matmul(errors[layer + 1], layers[layer][0].T, out=errors[layer])
                np.multiply(errors[layer], sums[layer] > 0, out=errors[layer])
        if wide_out is not out:
            out[...] = wide_out

    return in_phases(forward, backward, sgd_of(parameters, gradients, [np.empty_like(given) for given in parameters]))


def _forward(sums: list[Any], layers: list[Any]) -> None:
    """Write each layer's output, after ReLU but for the last one's, to `sums`."""
    for (given, result), (weights, bias) in zip(pairwise(sums), layers, strict=True):
        np.matmul(given, weights, out=result)
        np.add(result, bias, out=result)
        if result is not sums[-1]:
            np.maximum(result, 0, out=result)
