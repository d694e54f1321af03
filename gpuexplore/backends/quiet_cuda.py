"""`numba.cuda` without its warnings of small grids: small sizes are asked for on purpose, and measured as they are.

Whatever launches a kernel takes `cuda` from here; it loads Numba.
"""

from numba import config, cuda

__all__ = ["cuda"]

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
