"""The notebook's vector add (B3): it accumulates, so it is to be read and not to be run."""

from numba import cuda

from gpuexplore.kernels.cuda_kernel import Kernel

DIMENSIONS = (1, 1, 1)


def make() -> Kernel:
    """Return the kernel that adds (n) + (n) to what `u` (n) holds."""

    def vector_add(a, b, u):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < u.shape[0]:
            u[i] += a[i] + b[i]

    return vector_add
