"""Stages whose clock only passes when work spends time on it, and subjects whose calls last as long as a test says."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import count

import numpy as np

from gpuexplore.backends import HostTimer
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.core.model import Case, Options, Peak
from gpuexplore.features.mistakes.catalog import Detection, Factor, MistakeObservation, Stage, WayReading
from gpuexplore.features.mistakes.catalog.subject import Subject
from gpuexplore.measure.candidates.candidate import Candidate
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.operations import operation_named
from tests.measure.fakes import CPU, QUIET, FakeClock, environment


def stage(clock=None, device=CPU, cancelled=lambda: False):
    isolation = replace(QUIET, isolate_core=nullcontext)
    return Stage(device, clock or FakeClock(), isolation, ProgressHooks(cancelled=cancelled))


def with_peak(flop_per_s, device=CPU):
    """Return the made-up device with one compute peak for fp32, on either kind of unit."""
    units = ("matrix", "vector")
    return replace(device, peaks=tuple(Peak("fp32", unit, flop_per_s, "datasheet", "a leaflet") for unit in units))


class Lasting:
    """A call that lasts as long as `seconds` says of its number, from 0."""

    def __init__(self, clock, seconds):
        self.clock = clock
        self.seconds = seconds if callable(seconds) else lambda _: seconds
        self.numbers = count()

    def __call__(self):
        self.clock.spend(self.seconds(next(self.numbers)))


def subject(run, *, operation="matmul", size=100, on=CPU, implementation="numpy", threads=None, **options):
    """Return a subject whose call is `run`; it is about as long as its first seconds."""
    shape = operation_named(operation).shape_of_size(size)
    case = Case(operation, shape, "fp32", implementation, on.id, Options(threads=threads, **options))
    dtype = dtype_named("fp32")
    clock = run.clock
    group = Group(
        operation_named(operation),
        dtype,
        shape,
        on,
        environment(on, threads=threads),
        "normal",
        clock,
        stage(clock, on).isolation,
    )
    candidate = Candidate(case, on, numpy_backend, dtype, run, np.zeros(1, np.float32), HostTimer(clock), None)
    return Subject(candidate, group, run.seconds(0))


def observation(**about):
    """Return an observation with round numbers: twice too fast, given away."""
    seen = MistakeObservation(
        mistake="first-call",
        quantity="time",
        what="a made-up computation",
        how="measured",
        wrong=WayReading(2e-3, (1.9e-3, 2.1e-3)),
        right=WayReading(1e-3, (0.9e-3, 1.1e-3)),
        detection=Detection(True, "it shows"),
        factor=Factor(2.0, (1.8, 2.2)),
        rounds=10,
        environment=environment(),
    )
    return replace(seen, **about)
