"""Clocks, backends and candidates that tests lay out: nothing here waits, and nothing depends on speed."""

from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

import numpy as np

from gpuexplore.backends import HostTimer
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Device, Environment, Measurement, Options, Peak, Shape
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks

CPU = Device(
    "cpu",
    "cpu",
    "a made-up CPU",
    cores=1,
    memory_bytes=2**40,
    cache_bytes=2**10,
    native=("fp64", "fp32"),
    peaks=(
        Peak("fp32", "matrix", 1e30, "datasheet", "a test"),
        Peak("fp32", "vector", 1e30, "datasheet", "a test"),
    ),
)
GPU = Device(
    "cuda:0",
    "cuda",
    "a made-up GPU",
    memory_bytes=2**30,
    cache_bytes=2**20,
    clock_hz=1e9,
    uuid="GPU-0",
    native=("fp32",),
)


REAL = Isolation()
QUIET = Isolation(wait_for_idle_threads=lambda: None, thread_waits=dict)


def run_with(report, cancelled=lambda: False, *, clock=perf_counter_ns, isolation=REAL):
    """Return the arguments by which a measurement or an activity meets its surroundings, by default the real ones."""
    return {"clock": clock, "isolation": isolation, "progress": ProgressHooks(report, cancelled)}


class FakeClock:
    """Nanoseconds that pass by `tick_ns` with every reading, and by what work adds."""

    def __init__(self, tick_ns=0):
        self.now_ns = 0
        self.readings = 0
        self.tick_ns = tick_ns

    def __call__(self):
        self.readings += 1
        self.now_ns += self.tick_ns
        return self.now_ns

    def spend(self, seconds):
        self.now_ns += round(seconds * 1e9)


@dataclass
class FakeWork:
    """A call that takes the next of `durations_s`, then the last of them again and again."""

    clock: FakeClock
    durations_s: list[float]
    calls: int = 0
    raises_at: int | None = None

    def __call__(self):
        self.calls += 1
        if self.calls == self.raises_at:
            raise ValueError("broken in the middle")
        self.clock.spend(self.durations_s[min(self.calls, len(self.durations_s)) - 1])


@dataclass
class FakeEventTimer:
    """Gives a sample for every call, as CUDA events do."""

    clock: FakeClock
    one_sample_per_call: bool = True
    rounds: list[int] = field(default_factory=list)

    def calls_per_round(self, call_s):
        return max(1, round(1e-3 / call_s))

    def sample(self, run, *, calls, flush):
        self.rounds.append(calls)
        return [self._one(run) for _ in range(calls)]

    def _one(self, run):
        start = self.clock()
        run()
        return (self.clock() - start) * 1e-9


def case(name="fake", *, operation="vector_add", dtype="fp32", device="cpu", shape=None, **options):
    return Case(operation, shape or Shape.of(n=8), dtype, name, device, Options(**options))


def candidate(work, *, name="fake", timer: Any = None, flush=None, on=CPU, **options):
    return Candidate(
        case(name, **options),
        on,
        numpy_backend,
        DTYPES["fp32"],
        work,
        np.zeros(8, np.float32),
        timer or HostTimer(work.clock),
        flush,
    )


def measurement(*samples_s):
    return Measurement(samples_s or (1.0,) * 10, first_call_s=1.0)


def environment(device=CPU, **about):
    return Environment(device, "2026-01-02T03:04:05+00:00", "1", None, "3.12", "linux", {}, **about)


def boundaries(*, clock, report, cancelled, wait, core, exclude, speed, waits, running, checkpoint, preempted):
    """Return the arguments of `measure_cases` by which it meets clock, machine and supervisor.

    Args:
        clock: nanoseconds.
        report: gets cases and results.
        cancelled: says whether to stop.
        wait: returns when pool threads sleep.
        core: inside it, the calling thread has a core to itself.
        exclude: inside it, other processes keep off; gets seconds.
        speed: of the slowest core; gets threads and `wait`.
        waits: by thread.
        running: gets a case, and the seconds that it may take.
        checkpoint: gets a result that may be all there will be.
        preempted: says whether to leave the rest.
    """
    return {
        "clock": clock,
        "isolation": Isolation(wait, core, exclude, speed, waits),
        "progress": ProgressHooks(report, cancelled, preempted, running, checkpoint),
    }
