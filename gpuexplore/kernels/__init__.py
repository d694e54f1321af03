"""What builds our own kernels: narrow floats, CUDA intrinsics, the CPU micro-kernel, launch geometry, compiling."""

import gpuexplore.backends.numba_cuda  # noqa: F401 before the first kernel is compiled: NumPy has to have what numba-cuda asks for
