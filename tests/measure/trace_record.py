"""A made run whose boundaries write down each of their calls: clock, hooks, reports, backend, implementations, checks.

No library is fast or slow here: calls take what `DURATIONS_S` says, on a clock that nothing else moves.
"""

from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

import gpuexplore.operations
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.backends import numpy_returned  # noqa: F401 binds functions of the other one as it is imported
from gpuexplore.core.model import Case, Options, Result, Shape
from gpuexplore.measure import runner
from gpuexplore.measure.candidates import candidate
from gpuexplore.measure.check import group, spot_checks, stress
from gpuexplore.measure.check.inputs import SEED
from gpuexplore.measure.conditions import watch
from gpuexplore.measure.sample import contrast, slow_cases, timing
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.implementation import Implementation
from tests.measure.fakes import CPU, FakeClock, boundaries

OPERATION = "vector_add"
BACKEND_CALLS = ("empty", "to_device", "load", "poison", "stored", "synchronize", "set_threads", "timer")
DURATIONS_S = {"steady": 400e-6, "rival": 390e-6, "wrong": 100e-6, "failing": 500e-6, "numpy:mine": 2e-3, "slow": 50e-3}
SCATTER = (0.0, 0.06, 0.02, 0.1, 0.04)  # of a call's time: so that intervals are no points
FAILS_AT = 60  # a call within the rounds
FIRST, SECOND = Shape.of(n=257), Shape.of(n=64)
CASES = tuple(
    Case(OPERATION, shape, "fp32", name, "cpu", Options(budget_s=0.3))
    for shape, names in ((FIRST, ("steady", "wrong", "rival", "failing", "numpy:mine")), (SECOND, ("slow", "steady")))
    for name in names
)
LONGEST_BLOCK = 10


class Trace:
    """What was called, in order.

    Attributes:
        cancelled_at: from which poll on the run is cancelled; None: never.
        preempted: whether it is preempted between rounds.
    """

    def __init__(self, *, cancelled_at=None, preempted=False):
        self.events = []
        self.cancelled_at, self.preempted = cancelled_at, preempted
        self.polls = 0
        self._clock = FakeClock(tick_ns=1000)
        self._calls = dict.fromkeys(DURATIONS_S, 0)

    def add(self, *words):
        self.events.append(" ".join(map(str, words)))

    def install(self, monkeypatch):
        """Have the boundaries of measuring write here, and what is read of the machine always the same."""
        operation = OPERATIONS[OPERATION]
        fakes = tuple(Implementation(name, "fake", "numpy", "vector", "a test") for name in DURATIONS_S)
        known = replace(operation, implementations=(*operation.implementations, *fakes))
        monkeypatch.setattr(gpuexplore.operations, "OPERATIONS", MappingProxyType({**OPERATIONS, OPERATION: known}))
        for loading in (candidate, group, stress):
            monkeypatch.setattr(loading, "load_build", self._load_build)
        for name in BACKEND_CALLS:
            monkeypatch.setattr(numpy_backend, name, partial(self._backend_call, name, getattr(numpy_backend, name)))
        monkeypatch.setattr(spot_checks, "judge", partial(self._judge, "judge", spot_checks.judge))
        monkeypatch.setattr(stress, "judge", partial(self._judge, "judge stressed", stress.judge))
        monkeypatch.setattr(stress, "thread_runs", dict)
        monkeypatch.setattr(runner.secrets, "randbelow", lambda _: SEED)
        monkeypatch.setattr(contrast, "_known", {})
        monkeypatch.setattr(slow_cases, "_seen", {})
        monkeypatch.setattr(slow_cases, "_first_calls_s", {})
        monkeypatch.setattr(timing, "resident_bytes", lambda: 0)
        monkeypatch.setattr(watch, "read_cpu_times", partial(self._read, "read CPU times", None))
        monkeypatch.setattr(watch, "clock_probe", partial(self._read, "probe the clock", 1e9))
        monkeypatch.setattr(watch, "prepare_clock_probe", lambda: None)

    def run(self):
        """Measure the cases; return what was called, repetitions folded."""
        hooks = boundaries(
            clock=self.clock,
            report=self.report,
            cancelled=self._is_cancelled,
            wait=partial(self._read, "wait for idle threads", True),
            core=partial(self._inside, "core"),
            exclude=self._exclude,
            speed=self._speed,
            waits=partial(self._read, "read waits", {1: 0.0}),
            running=self._running,
            checkpoint=self._checkpoint,
            preempted=self._is_preempted,
        )
        runner.measure_cases(CASES, CPU, **hooks)
        return folded(self.events)

    def clock(self):
        self.add("clock")
        return self._clock()

    def report(self, event):
        if isinstance(event, Case):
            self.add("report that", named(event), "starts")
        else:
            self.add("report", described(event))

    def _is_cancelled(self):
        self.polls += 1
        self.add("cancelled?")
        return self.cancelled_at is not None and self.polls >= self.cancelled_at

    def _is_preempted(self):
        self.add("preempted?")
        return self.preempted

    def _running(self, case, expected_s):
        self.add("running", named(case), "for", "?" if expected_s is None else f"{expected_s:.3g} s")

    def _checkpoint(self, result):
        self.add("checkpoint", described(result))

    def _read(self, words, value):
        self.add(words)
        return value

    @contextmanager
    def _inside(self, words):
        self.add(words, "{")
        try:
            yield
        finally:
            self.add(words, "}")

    @contextmanager
    def _exclude(self, expected_s):
        with self._inside(f"exclude for {expected_s:.3g} s"):
            yield partial(self._read, "excluded?", 0.0)

    def _speed(self, threads, wait):
        self.add("speed of", threads)
        return 1.0

    def _backend_call(self, name, function, *arguments):
        self.add("backend", name)
        return function(*arguments)

    def _judge(self, words, judge, out, reference, shape, growth):
        accuracy = judge(out, reference, shape, growth)
        self.add(words, shape, "seed", f"+{reference.seed - SEED}", "right" if accuracy.within else "wrong")
        return accuracy

    def _load_build(self, operation, implementation):
        self.add("load", implementation.name)
        return partial(self._build, implementation.name)

    def _build(self, name, inputs, out, dtype):
        self.add("build", name, "of", inputs[0].size)
        compute = np.subtract if name == "wrong" else np.add
        written = getattr(out, "array", out)  # what a user's function returns is kept in a holder

        def run():
            self.add("call", name)
            self._calls[name] += 1
            calls = self._calls[name]
            if name == "failing" and calls == FAILS_AT:
                raise ValueError("broken in the middle")
            self._clock.spend(DURATIONS_S[name] * (1 + SCATTER[calls % len(SCATTER)]))
            compute(*inputs, out=written)

        return run


def named(case):
    return f"{case.implementation} {case.shape}"


def described(result: Result):
    """Return what stays the same in a result on every machine."""
    words = [named(result.case), result.status.value]
    words += ["provisional"] if result.provisional else []
    words += [result.reason] if result.reason else []
    if measurement := result.measurement:
        words.append(f"{len(measurement.samples_s)} samples, {measurement.per_round} a round")
        words.append(f"median {measurement.median_s:.4g} s, first {measurement.first_call_s:.4g} s")
        words += [f"{each.name} {len(each.samples_s)} {each.reason}" for each in measurement.phases]
        words += [f"{each.state} {len(each.samples_s)} {each.reason}" for each in measurement.contrasts]
    words += [f"{flag.name}: {flag.evidence}" for flag in result.flags]
    words.append(f"seed {result.seed}")
    return "; ".join(words)


def folded(events):
    """Return events with blocks that repeat written once, shorter blocks first."""
    for width in range(1, LONGEST_BLOCK + 1):
        written, index = [], 0
        while index < len(events):
            block, count = events[index : index + width], 1
            while len(block) == width and events[index + count * width : index + (count + 1) * width] == block:
                count += 1
            written += [f"{count} x [{' | '.join(block)}]"] if count > 1 else block[:1]
            index += count * width if count > 1 else 1
        events = written
    return events
