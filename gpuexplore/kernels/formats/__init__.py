"""How Numba kernels read and write the 16-bit formats: widened to fp32, computed, narrowed."""
