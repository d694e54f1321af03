"""The notebook's matrix-vector product (B4): its sum is a float64, so it is to be read and not to be run."""

from numba import cuda

from gpuexplore.kernels.cuda_kernel import Kernel

DIMENSIONS = (2, 1, 1)


def make() -> Kernel:
    """Return the kernel that writes (m, n) @ (n) to `u` (m), one row a thread."""

    def matvec(a, b, u):
        i = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
        if i < u.shape[0]:
            tmp = 0.  # fmt: skip
            for j in range(a.shape[1]):
                tmp += a[i, j] * b[j]
            u[i] = tmp

    return matvec
