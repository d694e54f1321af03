"""Every CUDA kernel compiles for every generation of GPU that is in use, on a machine without one."""

from importlib import import_module

import numpy as np
import pytest

from gpuexplore.dtypes import DTYPES
from gpuexplore.operations import OPERATIONS

cuda = pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
COMPUTE_CAPABILITIES = ((7, 5), (8, 0), (9, 0), (10, 0))
STORED = {"fp64": "float64", "fp32": "float32", "bf16": "uint16", "fp16": "float16"}

KERNELS = [
    pytest.param(operation, implementation, dtype, id=f"{operation.name}-{implementation.name}-{dtype.name}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    for dtype in DTYPES.values()
    if implementation.backend == "numba_cuda" and not dtype.matrix_only
]


def compiled(operation, implementation, dtype, capability):
    """Return the kernel's PTX for arrays of `dtype` in C order."""
    module = import_module(f"gpuexplore.operations.{operation.name}.{implementation.module}")
    sums = DTYPES[dtype.accumulate].storage
    kernel = module.kernel if hasattr(module, "kernel") else module.kernel_for(np.dtype(sums))
    shape = operation.shape_of_size(2)
    element = getattr(cuda.types, dtype.storage.name)
    signature = tuple(
        element[(slice(None),) * (len(one) - 1) + (slice(None, None, 1),)]
        for one in kernel_shapes(kernel, operation, shape)
    )
    text, _ = cuda.compile(kernel, signature, cc=capability, device=False, abi="numba", output="ptx")
    return text


def kernel_shapes(kernel, operation, shape):
    """Return the shapes a kernel is given: the element-wise ones get every array as a line."""
    shapes = (*operation.inputs(shape), operation.output(shape))
    return shapes if operation.is_matrix_product else [(2,)] * len(shapes)


@pytest.mark.parametrize("capability", COMPUTE_CAPABILITIES, ids=lambda one: f"sm_{one[0]}{one[1]}")
@pytest.mark.parametrize(("operation", "implementation", "dtype"), KERNELS)
def test_kernel_compiles_to_ptx(operation, implementation, dtype, capability):
    lines = compiled(operation, implementation, dtype, capability).splitlines()

    assert f".target sm_{capability[0]}{capability[1]}" in lines
    assert sum(".visible .entry" in one for one in lines) == 1
    assert dtype.storage.name == STORED[dtype.name]


@pytest.mark.parametrize(("operation", "implementation", "dtype"), KERNELS)
def test_kernel_computes_in_no_wider_format_than_it_says(operation, implementation, dtype):
    """A Python float in a kernel is a double: on most cards it would run 32 or 64 times slower."""
    text = compiled(operation, implementation, dtype, (8, 0))

    assert (".f64" in text) == (dtype.name == "fp64")


@pytest.mark.parametrize(("operation", "implementation", "dtype"), KERNELS)
def test_kernel_links_to_machine_code(operation, implementation, dtype):
    core = pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    text = compiled(operation, implementation, dtype, (9, 0))
    linker = core.Linker(core.ObjectCode.from_ptx(text.encode()), options=core.LinkerOptions(arch="sm_90"))

    assert bytes(linker.link("cubin").code).startswith(b"\x7fELF")
