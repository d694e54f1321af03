"""The kernel that is shown is the kernel that runs: what we compile is what `cuda.jit` compiles on the GPU."""

import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.operations import OPERATIONS

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from numba.cuda import codegen, dispatcher

from gpuexplore.kernels.cuda_compile import array_type
from gpuexplore.kernels.cuda_kernel import _compiled
from gpuexplore.operations.kernel_targets import compile_for, kernel_of
from tests.operations.changed import unless_changed

MATMUL = OPERATIONS["matmul"]


def launched(implementation, dtype, capability, monkeypatch):
    """Return the PTX of the kernel that `cuda.jit` makes for a launch on a GPU of this compute capability."""
    major, minor = map(int, capability.split("."))
    gpu = SimpleNamespace(compute_capability=(major, minor))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: gpu)
    monkeypatch.setattr(codegen.devices, "get_context", lambda: SimpleNamespace(device=gpu))
    kernel = kernel_of(MATMUL, implementation)
    jitted = _compiled(kernel, dtype, kernel.geometry.checked(None))
    types = tuple(array_type(dtype.storage.name, 2) for _ in range(3))
    made = dispatcher._Kernel(jitted.py_func, types, **jitted.targetoptions)
    return made.library.get_lto_ptx()


def without_names(ptx):
    """Return PTX without comments, Python's mangled names and numbers of arrays, which count what was compiled."""
    lines = (re.sub(r"_Z\w+|_cudapy_\w+", "NAME", line) for line in ptx.strip("\0\n").splitlines())
    return [line for line in lines if line.strip() and not line.startswith("//")]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "dtype", "capability"),
    [
        ("numba-cuda-vector", "fp32", "8.0"),
        pytest.param(
            *("numba-cuda-tensorcore", "bf16", "9.0"), marks=unless_changed("matmul", "numba-cuda-tensorcore")
        ),  # takes half a minute
        ("numba-cuda-vector", "fp32", "9.0"),
        ("numba-cuda-vector", "fp32", "12.0"),
    ],
)
def test_what_is_shown_is_what_is_launched(name, dtype, capability, monkeypatch):
    implementation, stored = MATMUL.implementation_named(name), DTYPES[dtype]

    ran = launched(implementation, stored, capability, monkeypatch)
    shown = compile_for(MATMUL, implementation, stored, None, capability)

    assert without_names(shown.ptx) == without_names(ran)
    assert shown.target == {"8.0": "sm_80", "9.0": "sm_90a", "12.0": "sm_120a"}[capability]
    assert f".target {shown.target}" in shown.ptx


def test_toolkit_is_named_with_what_it_compiled():
    made = compile_for(MATMUL, MATMUL.implementation_named("numba-cuda-naive"), DTYPES["fp32"], None, "8.0")

    assert re.fullmatch(r"\d+\.\d+", made.toolkit)
    assert made.cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize("first", ["gpuexplore.kernels.cuda_compile", "gpuexplore.backends.numba_cuda"])
def test_numba_cuda_compiles_beside_a_numpy_without_row_stack(first):
    """NumPy 2.5 has none, and numba-cuda 0.30 asks for it when it first compiles."""
    words = f"import numpy; vars(numpy).pop('row_stack', None); import {first}; from numba import cuda; "
    words += "print(cuda.compile_ptx(lambda x: None, (cuda.types.float32[:],), cc=(9, 0))[0])"

    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)

    assert ".visible .func" in done.stdout or ".visible .entry" in done.stdout, done.stderr
