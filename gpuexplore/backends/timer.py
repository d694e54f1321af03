"""Seconds per call, by the host's clock or by events of a device.

A timer never warms up, decides or drops anything: it runs what it is given and returns every sample.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from gpuexplore.core.errors import Unsupported

Call = Callable[[], object]
Clock = Callable[[], int]  # nanoseconds, monotonic

# perf_counter_ns costs about 50 ns, so 20 µs would do for the clock; longer, because a median of single calls can
# miss the slow ones of a skewed distribution, and because a sample is to be what a loop sees
MIN_BATCH_S = 250e-6
SPIN_HZ = 2e9  # cycles of a GPU: about what they run at; how long exactly the self-test finds out


class HostTimer:
    """Wall clock around a batch of calls.

    They return when the work is done; or a wait for the device ends the batch, for one whose events do not tell the
    time. Then launches that are not hidden behind the device's work, and the wait, are timed; behind a flush each call
    is awaited by itself.
    """

    one_sample_per_call = False
    AWAITED_BATCH_S = 10e-3  # a wait takes tenths of a millisecond

    def __init__(self, clock: Clock, wait: Call | None = None) -> None:
        self._clock = clock
        self._wait = wait

    def calls_per_round(self, call_s: float) -> int:
        """Return the calls of a batch that is long against the cost of reading the clock, or against one wait."""
        batch_s = MIN_BATCH_S if self._wait is None else self.AWAITED_BATCH_S
        return max(1, ceil(batch_s / max(call_s, 1e-9)))

    def sample(self, run: Call, *, calls: int, flush: Call | None) -> list[float]:
        """Return one sample: the mean over the batch."""
        if flush is None:
            elapsed_ns = self._elapsed_ns(run, calls)
        else:
            elapsed_ns = sum(self._flushed_ns(run, flush) for _ in range(calls))
        return [elapsed_ns / calls * 1e-9]

    def _elapsed_ns(self, run: Call, calls: int) -> int:
        if self._wait is not None:
            self._wait()
        start = self._clock()
        for _ in range(calls):
            run()
        if self._wait is not None:
            self._wait()
        return self._clock() - start

    def _flushed_ns(self, run: Call, flush: Call) -> int:
        flush()
        return self._elapsed_ns(run, 1)


@dataclass(eq=False)
class EventTimer:
    """A pair of device events around every call, on the library's own stream; one wait at the end.

    The device spins while the host enqueues a round: where a host takes longer to launch than the device to compute,
    the device would wait between an event and the call, and that wait would be timed. So it may be on a stream that
    cannot spin. A round that took longer to enqueue than the device spun is taken again, with a longer spin.

    Attributes:
        new_event: returns an event that records the time.
        elapsed_s: seconds between two recorded events.
        wait: returns when the device has done everything.
        on_device: inside it, events, calls and flushes go to the device, whichever was the current one before.
        enqueue_spin: enqueues SPIN_HZ cycles for each of so many seconds, in which the device only keeps busy; None
            where nothing does so for a known time.
        meanwhile: called when a round is enqueued and the device busy: an idle GPU reports other clocks.
    """

    one_sample_per_call = True
    ROUND_S = 1e-3  # device time of one round: long against the wait at its end
    MAX_CALLS = 32
    ENQUEUE_S = 30e-6  # of a call and its flush, until it was seen
    MARGIN = 1.5  # times as long as enqueueing took last
    MOST_SPIN_S = 5e-3  # a host that needs longer for a round is not waited for
    MORE_TRIES = 2  # of a round that outlasted its spin

    _clock: Clock
    new_event: Callable[[], Any]
    elapsed_s: Callable[[Any, Any], float]
    wait: Call
    on_device: Callable[[], AbstractContextManager[object]]
    enqueue_spin: Callable[[float], object] | None
    meanwhile: Call | None = None
    _enqueue_s: float = field(default=ENQUEUE_S, init=False)

    def calls_per_round(self, call_s: float) -> int:
        """Return as many calls as fill a round."""
        return max(1, min(self.MAX_CALLS, ceil(self.ROUND_S / max(call_s, 1e-9))))

    def spin(self, seconds: float) -> None:
        """Enqueue SPIN_HZ cycles of the device for each of so many seconds: a kernel whose length is known.

        Raises:
            Unsupported: this stream cannot.
        """
        if self.enqueue_spin is None:
            raise Unsupported("no library here can keep the device busy for a known time")
        with self.on_device():
            self.enqueue_spin(seconds)

    def sample(self, run: Call, *, calls: int, flush: Call | None) -> list[float]:
        """Return one sample per call."""
        with self.on_device():
            spin_s = self._spin_s(calls)
            samples_s = self._round(run, calls, flush, spin_s)
            for _ in range(self.MORE_TRIES):
                longer_s = self._spin_s(calls)
                if self.enqueue_spin is None or self._enqueue_s * calls <= spin_s or longer_s <= spin_s:
                    break
                spin_s, samples_s = longer_s, self._round(run, calls, flush, longer_s)
            return samples_s

    def _spin_s(self, calls: int) -> float:
        return min(self.MOST_SPIN_S, self.MARGIN * self._enqueue_s * calls)

    def _round(self, run: Call, calls: int, flush: Call | None, spin_s: float) -> list[float]:
        if self.enqueue_spin is not None:
            self.enqueue_spin(spin_s)
        began_ns = self._clock()
        pairs = [self._recorded(run, flush) for _ in range(calls)]
        self._enqueue_s = (self._clock() - began_ns) * 1e-9 / calls
        if self.meanwhile is not None:
            self.meanwhile()
        self.wait()
        return [self.elapsed_s(start, end) for start, end in pairs]

    def _recorded(self, run: Call, flush: Call | None) -> tuple[Any, Any]:
        start, end = self.new_event(), self.new_event()
        if flush is not None:
            flush()
        start.record()
        run()
        end.record()
        return start, end


# Takes samples of calls on the stream its library really uses. `calls_per_round` says how many one round should have
# when a call takes so many seconds; `sample` returns seconds per call, one or more samples from so many calls, and
# runs `flush`, which empties the last-level cache, before each of them and outside the timed part.
Timer = HostTimer | EventTimer
