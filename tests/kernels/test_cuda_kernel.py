"""Launches of our CUDA kernels are configured without a word: the tests on a GPU take every warning for an error."""

import numpy as np
import pytest

from gpuexplore.dtypes import DTYPES
from gpuexplore.operations import OPERATIONS, load_build
from tests.measure.fakes import GPU
from tests.operations.shapes import awkward_shapes

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")

KERNELS = [
    pytest.param(operation, implementation, id=f"{operation.name}-{implementation.name}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    if implementation.backend == "numba_cuda"
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("operation", "implementation"), KERNELS)
def test_small_grid_is_configured_silently(operation, implementation):
    """numba-cuda warns of every grid under 128 blocks, which most awkward shapes have."""
    build = load_build(operation, implementation)
    for dtype in DTYPES.values():
        if operation.unsupported(dtype) or implementation.unsupported(dtype, GPU):
            continue
        for shape in awkward_shapes(operation):
            inputs = tuple(np.empty(lengths, dtype.storage) for lengths in operation.inputs(shape))

            assert callable(build(inputs, np.empty(operation.output(shape), dtype.storage), dtype))
