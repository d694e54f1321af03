"""The kernel of known length of numba-cuda: it counts the cycles of its multiprocessor."""

import re

from numba import types

from gpuexplore.backends import cuda_kernels
from gpuexplore.kernels.cuda_compile import compile_kernel


def test_spin_reads_the_clock_again_and_again_until_its_cycles_are_over():
    made = compile_kernel(cuda_kernels.spin.py_func, (types.int64,), compute_capability="8.0", options={})
    (loop,) = re.findall(r"(?s)^(\$L\S+):(.*?)@%p\d+ bra \t?\1;", made.ptx, re.M)

    assert "%clock64" in loop[1]
    assert "nanosleep" not in made.ptx
