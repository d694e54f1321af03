"""The accuracy lost by Winograd's algorithm F(m x m, r x r), for libraries that may choose it for a convolution.

It computes m x m outputs at once as Aᵀ[(G g Gᵀ) ⊙ (Bᵀ d B)]A, products in a transformed space added up over channels
there. Numbers of one size get different sizes in that space, and the output is what is left when they are put together
again: roundings grow. Let numbers be independent, and element i of a row be ‖G_i‖ ‖B_i‖ times as large there. Output y
adds element i up A_yi times, so the variance of its error is, over that of a direct sum of r terms as precise,

    (Σ_i A_yi² ‖G_i‖² ‖B_i‖²) / r

for each of the two axes: 1.7 for F(2, 3), up to 31 for F(4, 3), whose last output meets 8 to the square twice. Of
r² C terms only C are added up in that space, one by one; the transforms there and back round r + 2 n times along each
axis, where n = m + r - 1 (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2016,
https://arxiv.org/abs/1509.09308; B. Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd Convolution
for Deep Neural Networks", 2020, https://doi.org/10.1145/3412380, bounds the worst case, which grows alike).
"""

from functools import cache
from math import sqrt

import numpy as np

from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Device, Shape
from gpuexplore.hardware import GPU_KINDS
from gpuexplore.operations.implementation import AS_SUMMED, Growth

Matrix = np.typing.NDArray[np.float64]
REACH = 3  # of the filters that libraries have it for; cuDNN's for 5 x 5 is of unknown points, and gets no allowance


@cache
def _transforms(outputs: int, taps: int = REACH) -> tuple[Matrix, Matrix, Matrix]:
    """Return the matrices of F(`outputs`, `taps`) after Toom and Cook.

    By them y = Aᵀ [(G g) ⊙ (Bᵀ d)] for n = outputs + taps - 1 inputs d: Aᵀ, (outputs, n), G, (n, taps), and Bᵀ, (n, n).
    """
    count = outputs + taps - 1
    points = (0.0, 1.0, -1.0, 2.0, -2.0)[: count - 1]  # in the usual order; the last one is infinity
    others = [[other for other in points if other != point] for point in points]
    scale = np.array([np.prod([point - other for other in rest]) for point, rest in zip(points, others, strict=True)])
    infinity = np.eye(count)[-1]
    output = np.column_stack([np.vander(points, outputs, increasing=True).T, infinity[-outputs:]])
    weights = np.vstack([np.vander(points, taps, increasing=True) / scale[:, None], infinity[-taps:]])
    polynomials = [[*np.poly(rest)[::-1], 0.0] for rest in others]
    return output, weights, np.array([*polynomials, np.poly(points)[::-1]])


def growth_in_fp32(shape: Shape, dtype: DType, device: Device) -> Growth:
    """Return how roundings of a convolution (b, c, h, w) * (o, c, r, r) grow where a library may choose the algorithm.

    That is in fp32 on a GPU, by cuDNN or what its maker has instead, for filters of 3 x 3: in 16 bits the tolerance is
    wider than what it adds.
    """
    if device.kind not in GPU_KINDS or dtype.name != "fp32" or shape["r"] != REACH:
        return AS_SUMMED
    return _growth_of(4, shape["c"])  # the largest that libraries have: F(4 x 4, 3 x 3)


def _growth_of(outputs: int, channels: int, taps: int = REACH) -> Growth:
    """Return the growth of F(`outputs` x `outputs`, `taps` x `taps`) over as many `channels`."""
    output, weights, inputs = _transforms(outputs, taps)
    sizes = np.square(weights).sum(axis=1) * np.square(inputs).sum(axis=1)
    variances = np.square(output) @ sizes / taps
    summed = channels + 2 * (taps + 2 * len(sizes))
    of_terms = sqrt(summed / (channels * taps**2))
    return Growth(max(1.0, float(variances.mean()) * of_terms), max(1.0, float(variances.max()) * of_terms))
