"""CUDA instructions that Numba has no call for: vector loads, asynchronous copies, warp sums, tensor cores."""
