"""What builds our own kernels: narrow floats, CUDA intrinsics, the CPU micro-kernel, launch geometry, compiling."""

import gpuexplore.backends.numba_cuda  # noqa: F401 before a kernel loads `numba.cuda`, NumPy has to have what it asks for
