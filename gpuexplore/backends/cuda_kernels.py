"""What Numba's CUDA needs kernels of its own for: to empty the cache, and to keep the device busy.

Only `numba_cuda` imports this, inside its functions: it loads Numba.
"""

from typing import Any

from numba import config, cuda

SIMULATED = bool(config.ENABLE_CUDASIM)
SPIN_STEP_NS = 1000  # what `nanosleep` sleeps about


@cuda.jit
def overwrite(array: Any) -> None:
    """Overwrite all elements."""
    for place in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[place] = 0


@cuda.jit
def read(array: Any, totals: Any) -> None:
    """Read all elements; each thread adds up those it read."""
    thread = cuda.grid(1)
    if thread < totals.size:
        total = totals[thread] - totals[thread]
        for place in range(thread, array.size, cuda.gridsize(1)):
            total += array[place]
        totals[thread] = total


@cuda.jit
def spin(steps: int) -> None:
    """Sleep so many steps; the simulator has no sleep."""
    if not SIMULATED:
        for _ in range(steps):
            cuda.nanosleep(SPIN_STEP_NS)
