"""Launches of our CUDA kernels are configured without a word: the tests on a GPU take every warning for an error."""

from types import SimpleNamespace

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
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


class Dispatcher:
    """Stands in for what `cuda.jit` returns: notes how it is launched, and what the driver is asked for, in order."""

    def __init__(self):
        self.log = []

    def __getitem__(self, launch):
        return lambda *_: self.log.append(launch)

    def typeof_pyval(self, array):
        return array.shape

    def compile(self, kinds):
        function = SimpleNamespace(handle=kinds, device=SimpleNamespace(id=1))
        return SimpleNamespace(_codelibrary=SimpleNamespace(get_cufunc=lambda: function))


@pytest.mark.parametrize(
    ("operation", "name", "block", "shared_bytes"),
    [
        ("matmul", "tensorcore", (16, 16), 98304),
        ("matmul", "wgmma", (16, 16), 98304),
        ("matmul", "vector", (16, 16), 0),
        ("conv2d", "tensorcore", (8, 8), 49152),  # 48 KiB, and in addition arrays of fixed size
    ],
)
def test_dynamic_shared_memory_is_asked_for_before_the_first_launch(monkeypatch, operation, name, block, shared_bytes):
    operation, dispatcher = OPERATIONS[operation], Dispatcher()
    monkeypatch.setattr("gpuexplore.kernels.cuda_kernel._compiled", lambda *_: dispatcher)
    stand_in = SimpleNamespace(cuKernelSetAttribute=lambda what, *rest: dispatcher.log.append((what.name, *rest)))
    monkeypatch.setattr("numba.cuda.cudadrv.driver.driver", stand_in)
    a = np.zeros((300, 300) if operation.name == "matmul" else (1, 1, 300, 300), np.uint16)

    run = load_build(operation, operation.implementation_named(f"numba-cuda-{name}"))((a, a), a, DTYPES["bf16"], block)
    run()
    run()

    launch = (dispatcher.log[-1][0], (*block, 1), 0, shared_bytes)
    asked = ("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", shared_bytes, (a.shape,) * 3, 1)
    assert dispatcher.log == ([asked] if shared_bytes else []) + [launch, launch]
