"""Collective functions of the 32 threads of a warp; in Numba's simulator, which has no warps, a barrier for each."""

from collections.abc import Callable
from typing import Any

from numba import config, cuda

from gpuexplore.kernels.geometry import WARP

EVERY_LANE = 0xFFFFFFFF

if config.ENABLE_CUDASIM:
    import threading

    BARRIER_TIMEOUT_S = 60  # a lane that failed never arrives
    _LOCK = threading.Lock()

    def _exchange_over_barrier(lanes: int) -> Callable[[int, Any], list[Any]]:
        """Return what leaves a lane's value and waits for the others'; two alternating buffers, so one wait does."""
        buffers: list[list[Any]] = [[None] * lanes, [None] * lanes]
        current = [0] * lanes
        barrier = threading.Barrier(lanes)

        def exchange(lane: int, value: Any) -> list[Any]:
            buffer = buffers[current[lane]]
            current[lane] = 1 - current[lane]
            buffer[lane] = value
            barrier.wait(BARRIER_TIMEOUT_S)
            return list(buffer)

        return exchange

    def from_every_lane(value: Any) -> list[Any]:
        """Return what each lane of this thread's warp passed, in the order of the lanes."""
        thread: Any = threading.current_thread()
        warp, lane = divmod(thread.thread_id, WARP)
        with _LOCK:
            exchanges = vars(thread._manager).setdefault("exchanges", {})  # of this block
            exchange = exchanges.setdefault(warp, _exchange_over_barrier(WARP))
        found: list[Any] = exchange(lane, value)
        return found

    def this_lane() -> int:
        """Return which lane of its warp this thread is."""
        thread: Any = threading.current_thread()
        return int(thread.thread_id % WARP)

    def warp_max(value: Any) -> Any:
        """Return the largest of what every lane passed."""
        return max(from_every_lane(value))

    def half_warp_max(value: Any) -> Any:
        """Return the largest of what the lanes of this half of the warp passed."""
        return max(_half(value))

    def half_warp_sum(value: Any) -> Any:
        """Return the sum of what the lanes of this half of the warp passed."""
        return _sum(_half(value))

    def warp_sum(value: Any) -> Any:
        """Return the sum of what every lane passed."""
        return _sum(from_every_lane(value))

    def _half(value: Any) -> list[Any]:
        found, half = from_every_lane(value), WARP // 2
        return found[half:] if this_lane() >= half else found[:half]

    def _sum(found: list[Any]) -> Any:
        """Return the sum, added in the order that the GPU adds it."""
        while len(found) > 1:
            half = len(found) // 2
            found = [left + right for left, right in zip(found[:half], found[half:], strict=True)]
        return found[0]

else:

    @cuda.jit(device=True, inline="always")
    def half_warp_max(value: Any) -> Any:
        """Return the largest of what the lanes of this half of the warp passed, in all of them."""
        for distance in (8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, distance))
        return value

    @cuda.jit(device=True, inline="always")
    def half_warp_sum(value: Any) -> Any:
        """Return the sum of what the lanes of this half of the warp passed, in all of them."""
        for distance in (8, 4, 2, 1):
            value += cuda.shfl_xor_sync(EVERY_LANE, value, distance)
        return value

    @cuda.jit(device=True, inline="always")
    def warp_max(value: Any) -> Any:
        """Return the largest of what every lane passed, in all of them."""
        for distance in (16, 8, 4, 2, 1):
            value = max(value, cuda.shfl_xor_sync(EVERY_LANE, value, distance))
        return value

    @cuda.jit(device=True, inline="always")  # a call would make Numba compile for the GPU at hand, which need not exist
    def warp_sum(value: Any) -> Any:
        """Return the sum of what every lane passed, in all of them."""
        for distance in (16, 8, 4, 2, 1):
            value += cuda.shfl_xor_sync(EVERY_LANE, value, distance)
        return value
