"""Prints the PTX of two matrix-vector kernels as JSON: one whose sum starts at `0.`, one at a zero of its own type.

A process of its own, because it loads Numba's CUDA compiler; its argument is a compute capability, such as 7.5.
"""

import json
import sys
from typing import Any

import numpy as np


def main() -> None:
    """Compile both kernels for the compute capability that was given, and print their PTX."""
    from gpuexplore.kernels.cuda_compile import array_type, compile_kernel

    signature = [array_type("float32", dimensions) for dimensions in (2, 1, 1)]
    compiled = [
        compile_kernel(kernel, signature, compute_capability=sys.argv[1], options={}).ptx for kernel in _kernels()
    ]
    json.dump(compiled, sys.stdout)


def _kernels() -> tuple[Any, Any]:
    from numba import cuda

    def wrong_kernel(a: Any, x: Any, out: Any) -> None:
        row = cuda.grid(1)
        if row < out.size:
            total = 0.0
            for j in range(x.size):
                total += a[row, j] * x[j]
            out[row] = total

    def right_kernel(a: Any, x: Any, out: Any) -> None:
        row = cuda.grid(1)
        if row < out.size:
            total = np.float32(0)
            for j in range(x.size):
                total += a[row, j] * x[j]
            out[row] = total

    return wrong_kernel, right_kernel


if __name__ == "__main__":
    main()
