"""Collective functions of the 32 threads of a warp, or of half of one: the result reaches all of them.

They are inlined: a call would make Numba compile for the GPU at hand, which need not exist.
"""

from typing import Any

from numba import cuda

EVERY_LANE = 0xFFFFFFFF


@cuda.jit(device=True, inline="always")
def half_warp_max(value: Any) -> Any:
    """Return the largest value of the lanes of this half of the warp."""
    for distance in (8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, distance))
    return value


@cuda.jit(device=True, inline="always")
def half_warp_sum(value: Any) -> Any:
    """Return the sum of the values of the lanes of this half of the warp."""
    for distance in (8, 4, 2, 1):
        value += cuda.shfl_xor_sync(EVERY_LANE, value, distance)
    return value


@cuda.jit(device=True, inline="always")
def warp_max(value: Any) -> Any:
    """Return the largest value of all lanes."""
    for distance in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, distance))
    return value


@cuda.jit(device=True, inline="always")
def warp_sum(value: Any) -> Any:
    """Return the sum of the values of all lanes."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(EVERY_LANE, value, distance)
    return value
