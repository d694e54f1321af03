"""A kernel of known length, by the timer of one library.

On a GPU the kernel counts cycles. How long a cycle is, the host's clock tells: of two kernels of many milliseconds, the
difference of their times has no launch in it. On a CPU the call reads the clock until its time is over.
"""

from collections.abc import Callable, Iterator
from time import perf_counter_ns
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.backends.timer import Call, EventTimer, Timer
from gpuexplore.measure.candidates.candidate import device_for, new_flush
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.model import Device
from gpuexplore.statistics import median

LENGTHS_S = (5e-6, 20e-6, 100e-6)
LONG_S, LONGER_S = 10e-3, 30e-3  # kernels that the host's clock can time
TRIES, ROUNDS, CALLS = 3, 9, 8


def probe(device: Device, time: Timekeeper, library: str) -> Iterator[dict[str, Any]]:
    """Yield what `library` reads for each length, cold and warm; `known_s` are the bounds of how long it took."""
    backend = load_backend(library)
    device = device_for(backend, device)
    timer = backend.timer(device.id, time.clock)
    call_of, scale = _known_calls(timer, lambda: backend.synchronize(device.id))
    yield {"library": library, "length_s": 0.0, "cache": "warm", "read_s": _read_s(timer, lambda: None, None)}
    for cache in ("warm", "cold"):
        flush = new_flush(cache, device, backend)
        for length_s in LENGTHS_S:
            before = scale()
            nominal_s = length_s / before
            read_s = _read_s(timer, call_of(nominal_s), flush)
            known_s = sorted((nominal_s * before, nominal_s * scale()))
            yield {"library": library, "length_s": length_s, "cache": cache, "known_s": known_s, "read_s": read_s}


def _known_calls(timer: Timer, wait: Call) -> tuple[Callable[[float], Call], Callable[[], float]]:
    """Return what makes a call of so many nominal seconds, and what measures a real second over a nominal one."""
    if isinstance(timer, EventTimer):
        spin = timer.spin
        return lambda nominal_s: lambda: spin(nominal_s), lambda: _seconds_of_a_nominal_one(spin, wait)
    return _busy, lambda: 1.0


def _seconds_of_a_nominal_one(spin: Callable[[float], object], wait: Call) -> float:
    def lasted_s(nominal_s: float) -> float:
        began_ns = perf_counter_ns()
        spin(nominal_s)
        wait()
        return (perf_counter_ns() - began_ns) * 1e-9

    lasted_s(LONG_S)  # compiled, and the clock up
    slopes = [(lasted_s(LONGER_S) - lasted_s(LONG_S)) / (LONGER_S - LONG_S) for _ in range(TRIES)]
    return median(slopes)


def _busy(length_s: float) -> Call:
    length_ns = round(length_s * 1e9)

    def run() -> None:
        end_ns = perf_counter_ns() + length_ns
        while perf_counter_ns() < end_ns:
            pass

    return run


def _read_s(timer: Timer, run: Call, flush: Call | None) -> float:
    timer.sample(run, calls=CALLS, flush=flush)
    return median([sample_s for _ in range(ROUNDS) for sample_s in timer.sample(run, calls=CALLS, flush=flush)])
