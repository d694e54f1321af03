"""The libraries that can be measured, a file each: `Backend` says what each offers, `tests/backends` tests all of them.

A backend is a module of this package that satisfies `Backend`. It imports its library inside its functions, so that
the web process can ask a backend for facts without loading torch or numba.

Seconds per call, by the host's clock or by events of a device.

A timer never warms up, decides or drops anything: it runs what it is given and returns every sample.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from math import ceil
from typing import Any, Protocol, cast

from gpuexplore.core import Device, Environment, Unsupported, check_known
from gpuexplore.core.dtypes import DType, Stored

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


BACKENDS = ("numpy", "numpy_returned", "numba_cpu", "numba_cuda", "torch", "torch_compile", "triton", "cupy")


@dataclass(frozen=True, slots=True)
class DriverFacts:
    """Facts about a device from CUDA through one library; unknown is None.

    Attributes:
        uuid: of the GPU this library computes on, without the prefix of NVML's: libraries may number GPUs otherwise.
        cache_bytes: its L2 cache.
        problem: why the library finds no GPU at all.
    """

    uuid: str | None = None
    cache_bytes: int | None = None
    problem: str | None = None


class Backend(Protocol):
    """A library that allocates arrays on a device and runs on them."""

    INSTALL: str
    DEVICE_KINDS: tuple[str, ...]

    def is_available(self) -> bool:
        """Return whether the library is installed; imports nothing heavy."""
        ...

    def unsupported(self, dtype: DType, device: Device) -> str | None:
        """Return why this library cannot compute in `dtype` on `device`, or None when it can."""
        ...

    def driver_facts(self, device: str) -> DriverFacts:
        """Return what CUDA says of `device` to this library; nothing for a CPU, and a problem where it finds no GPU."""
        ...

    def to_device(self, values: Stored, dtype: DType, device: str) -> Any:
        """Return a contiguous copy on `device` of `values`, which are in the storage of `dtype`."""
        ...

    def load(self, array: Any, values: Stored) -> None:
        """Overwrite `array`, which `to_device` made, with `values` of the same shape and storage."""
        ...

    def stored(self, array: Any, dtype: DType) -> Stored:
        """Return the bits of `array` in host memory, after the work on it is done; perhaps a view of it."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: DType, device: str) -> Any:
        """Return an uninitialised array of `shape` for outputs."""
        ...

    def poison(self, array: Any) -> None:
        """Fill `array` with NaN, so that an element that is never written shows."""
        ...

    def synchronize(self, device: str) -> None:
        """Wait until all work on `device` is done."""
        ...

    def timer(self, device: str, clock: Clock) -> Timer:
        """Return the timer for the stream this library uses on `device`."""
        ...

    def flusher(self, device: str, size_bytes: int) -> Call:
        """Return a call that overwrites a buffer of `size_bytes` on `device`; on a GPU it then reads as many others."""
        ...

    def capture(self, run: Call, device: str, calls: int) -> Call | None:
        """Return a call that replays `calls` calls of `run` as one graph, without their launches.

        None where the library or the device has no graphs.
        """
        ...

    def set_threads(self, count: int) -> None:
        """Pin the CPU threads of this library.

        Raises:
            Unsupported: the count cannot be set.
        """
        ...

    def versions(self) -> Mapping[str, str]:
        """Return the versions that explain this library's numbers, by name."""
        ...

    def slow_product(self, dtype: DType, environment: Environment) -> str | None:
        """Return why this library's large products in `dtype` can be slow on that CPU, and what to change.

        Half a sentence; None when it has no kernels of its own to choose from.
        """
        ...


@cache
def load_backend(name: str) -> Backend:
    """Return the backend module called `name`; this loads nothing heavy.

    Raises:
        InvalidInput: no such backend.
    """
    check_known("backend", name, BACKENDS)
    return cast(Backend, import_module(f"gpuexplore.backends.{name}"))
