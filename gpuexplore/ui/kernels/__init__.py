"""The page Kernels."""
