"""How seconds per call are taken: the contract of every timer, and the host's.

A timer never warms up, decides or drops anything: it runs what it is told and returns every sample.
"""

from collections.abc import Callable
from math import ceil
from typing import Protocol

Run = Callable[[], object]
Clock = Callable[[], int]  # nanoseconds, monotonic

LONG_ENOUGH_S = 20e-6  # a batch this long is hundreds of clock ticks: perf_counter_ns costs about 50 ns


class Timer(Protocol):
    """Takes samples of `run` on the stream its library really uses."""

    def calls_per_round(self, call_s: float) -> int:
        """Return how many calls one round should hold when a call takes about `call_s` seconds."""
        ...

    def sample(self, run: Run, *, calls: int, flush: Run | None) -> list[float]:
        """Return seconds per call, one or more samples from `calls` calls of `run`.

        `flush` empties the last-level cache; it runs before each call, outside the timed part.
        """
        ...


class HostTimer:
    """Wall clock around a batch of calls that return only when the work is done."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def calls_per_round(self, call_s: float) -> int:
        """Return the batch that makes the clock not matter."""
        return max(1, ceil(LONG_ENOUGH_S / max(call_s, 1e-9)))

    def sample(self, run: Run, *, calls: int, flush: Run | None) -> list[float]:
        """Return one sample: the mean over the batch."""
        if flush is None:
            elapsed_ns = self._elapsed_ns(run, calls)
        else:
            elapsed_ns = sum(self._flushed_ns(run, flush) for _ in range(calls))
        return [elapsed_ns / calls * 1e-9]

    def _elapsed_ns(self, run: Run, calls: int) -> int:
        start = self._clock()
        for _ in range(calls):
            run()
        return self._clock() - start

    def _flushed_ns(self, run: Run, flush: Run) -> int:
        flush()
        return self._elapsed_ns(run, 1)
