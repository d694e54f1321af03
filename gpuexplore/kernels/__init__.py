"""The parts of our own kernels: narrow floats, CUDA intrinsics, the CPU micro-kernel, launch geometry, compiling.

`cpu_*` and `cuda_kernel.py` widen and narrow 16-bit formats; `intrinsics/` are PTX instructions that numba-cuda lacks,
made of `llvm_values.py`; `register_tiles/` and `cpu_micro_kernel.py` are loops that several operations share;
`cuda_compile.py` compiles a kernel for any GPU without one. `ptx/` interprets PTX, `sass/` reads machine code, `files/`
cubins and PTX of strangers; `exhibits/` are small kernels with mistakes that lessons show.

It imports backends, devices and values. A kernel of an operation is a file of that operation, not of this folder;
what two of them share belongs here.
"""

import gpuexplore.backends.numba_cuda  # noqa: F401 before the first kernel is compiled: NumPy has to have what numba-cuda asks for
