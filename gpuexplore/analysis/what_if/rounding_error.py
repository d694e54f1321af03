"""The error a number format is expected to cost: against fp64 on the unrounded inputs, for random normal data.

Three roundings add up as independent errors do, by their squares, each relative to the norm of the output:

- every input is rounded once: c·u for an input, times how much the operation passes on (√2 for a product);
- every partial sum is rounded in the format sums are kept in: after k terms c·u·√((k + 1) / 2), for sums one term
  after the other; libraries that split their sums stay below;
- the output is rounded once: c·u; where roundings follow one another, r of them: c·u·√r.

u = 2**-p is the unit roundoff of a format of p significant bits, and c·u the root mean square of its rounding errors
over that of the numbers: numbers between 2**e and 2**(e+1) are rounded by at most 2**e·u, evenly, so by 2**e·u/√3 in
the root mean square; over normal numbers c = 0.425. N. Higham, "Accuracy and Stability of Numerical Algorithms",
chapters 2 to 4.
"""

from math import erf, sqrt

import numpy as np

from gpuexplore.core import Accuracy, Shape, once
from gpuexplore.core.dtypes import DType, format_named
from gpuexplore.operations import operation_named


def _c() -> float:
    """Return c for standard normal numbers: √(E[4**e] / 3), e the exponent of a number; E[x²] = 1."""
    exponents = range(-40, 6)  # normal numbers below 2**-40 or above 2**6 do not count
    share = [erf(2.0 ** (e + 1) / sqrt(2)) - erf(2.0**e / sqrt(2)) for e in exponents]
    return sqrt(sum(4.0**e * probability for e, probability in zip(exponents, share, strict=True)) / 3)


C = _c()


def _rounding(dtype: DType) -> float:
    """Return the root mean square of the relative error of rounding normal numbers once to `dtype`."""
    return C * dtype.unit_roundoff


@once
def _error_amplification(operation: str) -> float:
    """Return how many times the relative error of the inputs an operation's output has: √2 for a product.

    Found by disturbing normal inputs of the operation's own reference, once; it hardly depends on the shape.
    """
    contract = operation_named(operation)
    generator = np.random.default_rng(20)
    lengths = contract.inputs(contract.shape_of_size(contract.default_sizes[1]))
    exact = tuple(generator.standard_normal(length) for length in lengths)
    small = 1e-6  # small against 1, large against fp64
    disturbed = tuple(array * (1 + small * generator.standard_normal(array.shape)) for array in exact)
    right, wrong = (contract.reference(*contract.prepared(arrays)) for arrays in (exact, disturbed))
    return float(np.linalg.norm(wrong - right) / np.linalg.norm(right) / small)


def _input_error(operation: str, dtype: DType) -> float:
    """Return the relative error of the output that comes from rounding the inputs to `dtype`."""
    exact = dtype.significand_bits >= format_named("fp64").significand_bits
    return 0.0 if exact else _error_amplification(operation) * _rounding(dtype)


def expected_error(operation: str, shape: Shape, dtype: DType) -> float:
    """Return norm(out - right) / norm(right) to expect, the right answer in fp64 from unrounded inputs.

    The output is in `dtype`, or in the format that is paired with it.
    """
    contract = operation_named(operation)
    out = format_named(dtype.output_format or dtype.name)
    sums = format_named(dtype.accumulate)
    computes = contract.flop_count(shape) > 0  # a copy rounds nothing twice
    added = _rounding(sums) * sqrt((contract.reduction_length(shape) + 1) / 2) if computes else 0.0
    rounded = computes and out.significand_bits < sums.significand_bits
    stored = _rounding(out) * sqrt(contract.roundings(shape)) if rounded else 0.0
    return sqrt(_input_error(operation, dtype) ** 2 + added**2 + stored**2)


def with_input_error(accuracy: Accuracy, operation: str, dtype: DType) -> float | None:
    """Return a measured error as one against unrounded inputs: measured is against the inputs an implementation got.

    None when the output contained no numbers.
    """
    if accuracy.relative_error is None:
        return None
    return sqrt(_input_error(operation, dtype) ** 2 + accuracy.relative_error**2)
