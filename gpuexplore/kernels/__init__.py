"""What builds our own kernels: narrow floats, CUDA intrinsics, the CPU micro-kernel, launch geometry, compiling."""
