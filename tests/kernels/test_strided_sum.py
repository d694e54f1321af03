"""The kernel that reads strided tensors on a GPU, in Numba's simulator, and what it compiles to."""

import os
import subprocess
import sys

import pytest

from tests.waiting import DEADLINE_S

PROGRAM = """
import numpy as np
from gpuexplore.kernels.strided_sum.numba_cuda import build

for shape, strides in ((5, 3), (1, 5)), ((2, 1, 2, 2100), (2100, 0, 0, 1)), ((4,), (0,)), ((7, 1), (2, 5)):
    lengths = np.array([1] * (4 - len(shape)) + list(shape), np.uint64)
    steps = np.array([0] * (4 - len(shape)) + list(strides), np.uint64)
    storage = np.random.default_rng(0).integers(1, 2**32, 30_000, np.uint32)
    run, output = build(storage, lengths, steps, "cuda:0")
    for _ in range(2):
        run()
    view = np.lib.stride_tricks.as_strided(storage, shape, [4 * stride for stride in strides])
    print(output()[0] == view.sum(dtype=np.uint64))
"""


@pytest.mark.long
def test_the_kernel_reads_every_element_once_in_the_simulator():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )

    assert done.stdout.split() == ["True"] * 4, done.stderr


@pytest.mark.long
def test_the_kernel_compiles_without_floats():
    from numba import cuda, types

    from gpuexplore.kernels.strided_sum.numba_cuda import _strided_sum_kernel

    line = types.int64[::1]
    ptx, _ = cuda.compile_ptx(_strided_sum_kernel.py_func, (types.uint32[::1], line, line, line), cc=(8, 0))

    assert "ld.global.u32" in ptx
    assert ".f64" not in ptx
    assert ".f32" not in ptx
