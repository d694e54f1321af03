"""A parallel CPU loop in Numba for each product of the step, 16 rows of its output at a time.

16-bit formats are widened to fp32 when a step begins and their gradients rounded when it ends; both are timed.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit, prange

from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cpu_micro_kernel import ROWS, multiply_rows, narrow, widen
from gpuexplore.operations.optimizer_step.numba_cpu import sgd
from gpuexplore.operations.training import RATE, cross_entropy, in_phases, views


@njit(parallel=True, cache=True)
def forward(given, weights, bias, out, floor):
    """Write given (b, i) @ weights (i, o) + bias, at least `floor` (1), to `out` (b, o)."""
    for strip in prange((out.shape[0] + ROWS - 1) // ROWS):
        top = strip * ROWS
        bottom = min(out.shape[0], top + ROWS)
        multiply_rows(given[top:bottom], weights, out[top:bottom], np.zeros(1, out.dtype))
        for row in range(top, bottom):
            for j in range(out.shape[1]):
                out[row, j] = max(floor[0], out[row, j] + bias[j])


@njit(parallel=True, cache=True)
def _gradients_of(given, error, weights_out, bias_out):
    """Write givenᵀ (i, b) @ error (b, o) to `weights_out` (i, o), and the sums of error's columns to `bias_out` (o)."""
    transposed = given.T
    for strip in prange((weights_out.shape[0] + ROWS - 1) // ROWS):
        top = strip * ROWS
        bottom = min(weights_out.shape[0], top + ROWS)
        rows = transposed[top:bottom].copy()
        multiply_rows(rows, error, weights_out[top:bottom], np.zeros(1, error.dtype))
    bias_out[:] = 0
    for row in range(error.shape[0]):
        for j in range(error.shape[1]):
            bias_out[j] += error[row, j]


@njit(parallel=True, cache=True)
def backward(error, weights, given, out):
    """Write error (b, o) @ weightsᵀ (o, i) to `out` (b, i), 0 where `given` (b, i), after ReLU, is 0."""
    transposed = weights.T.copy()
    for strip in prange((out.shape[0] + ROWS - 1) // ROWS):
        top = strip * ROWS
        bottom = min(out.shape[0], top + ROWS)
        multiply_rows(error[top:bottom], transposed, out[top:bottom], np.zeros(1, out.dtype))
        for row in range(top, bottom):
            for j in range(out.shape[1]):
                if given[row, j] <= 0:
                    out[row, j] = 0


@njit(parallel=True, cache=True)
def _convert(given, out):
    """Write `given` (n) to `out` (n) in its format."""
    for i in prange(given.size):
        out[i] = narrow(widen(given[i]), out.dtype)


def build(inputs: Sequence[Any], out: Any, dtype: DType) -> Callable[[], object]:
    """Return the step that writes the loss and all gradients, flat, to `out`."""
    kind = DTYPES[dtype.accumulate].storage
    wide_out = out if out.dtype == kind else np.empty(out.shape, kind)
    wide = [array if array.dtype == kind else np.empty(array.shape, kind) for array in inputs]
    converted = [
        (given.ravel(), array.ravel()) for given, array in zip(inputs, wide, strict=True) if array is not given
    ]
    batch, targets, *parameters = wide
    loss, *gradients = views(wide_out, [parameter.shape for parameter in parameters])
    sums = [batch, *(np.empty((len(batch), bias.size), kind) for bias in parameters[1::2])]
    errors = [np.empty_like(array) for array in sums]

    def go_forward() -> None:
        for given, array in converted:
            _convert(given, array)
        _forward(sums, parameters)
        loss[0], errors[-1][...] = cross_entropy(sums[-1], targets)

    def go_backward() -> None:
        for layer in range(len(sums) - 2, -1, -1):
            _gradients_of(sums[layer], errors[layer + 1], gradients[2 * layer], gradients[2 * layer + 1])
            if layer:
                backward(errors[layer + 1], parameters[2 * layer], sums[layer], errors[layer])
        if wide_out is not out:
            _convert(wide_out, out)

    rates = np.full(1, RATE, kind)
    updates = [
        (gradient.ravel(), parameter.reshape(1, -1), np.empty((1, parameter.size), kind), rates)
        for parameter, gradient in zip(parameters, gradients, strict=True)
    ]

    def optimizer() -> None:
        for arrays in updates:
            sgd(*arrays)

    return in_phases(go_forward, go_backward, optimizer)


def _forward(sums: list[Any], parameters: list[Any]) -> None:
    floors = np.zeros(1, sums[0].dtype), np.full(1, -np.inf, sums[0].dtype)
    for (given, result), weights, bias in zip(pairwise(sums), parameters[::2], parameters[1::2], strict=True):
        forward(given, weights, bias, result, floors[result is sums[-1]])
