"""Device functions that CUDA kernels of several operations are made of."""
