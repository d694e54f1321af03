"""`numba.cuda` without its warnings of small grids, and kernels of its backend: to empty the cache, to stay busy.

Small sizes are asked for on purpose, and measured as they are. Whatever launches a kernel takes `cuda` from here; it
loads Numba.
"""

from itertools import count
from typing import Any

from numba import config, cuda

__all__ = ["cuda", "overwrite", "read", "spin"]

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

if config.ENABLE_CUDASIM:
    _CYCLES = count(step=2**40)

    def clock() -> int:
        """Return a number that grows far with every call: the simulator has no clock, and nothing to wait for."""
        return next(_CYCLES)

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def clock(_typing: Any) -> Any:
        """Return the cycles that this multiprocessor has counted."""

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            read = ir.FunctionType(ir.IntType(64), ())
            return builder.asm(read, "mov.u64 $0, %clock64;", "=l", (), side_effect=True)

        return types.int64(), emit


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
        total = totals.dtype.type(0)
        for place in range(thread, array.size, cuda.gridsize(1)):
            total += array[place]
        totals[thread] = total


@cuda.jit
def spin(cycles: int) -> None:
    """Keep busy for so many cycles."""
    began = clock()
    while clock() - began < cycles:
        pass
