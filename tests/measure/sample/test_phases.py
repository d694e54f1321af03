"""Phases of a call: timed one by one after it, and only where they compute what the whole computes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Contrast, Measurement, Phase, Shape
from gpuexplore.core.serialization import decode, encode
from gpuexplore.measure.check.inputs import Reference
from gpuexplore.measure.check.process_snapshot import ProcessSnapshot
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.sample.contrast import take_phases
from gpuexplore.measure.sample.timing import MIN_SAMPLES, Sampling
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.implementation import AS_SUMMED
from tests.measure.fakes import CPU, QUIET, FakeClock, FakeWork, candidate

ADD = replace(OPERATIONS["vector_add"], phases={"forward": lambda shape: 3, "backward": lambda shape: 5})
SHAPE = Shape.of(n=8)


def taken(phases, clock):
    """Return the phases of a fake call whose right output is twos."""
    inputs = (np.ones(8, np.float32), np.ones(8, np.float32))
    made = replace(candidate(FakeWork(clock, [3e-3]), name="numpy"), phases=phases)
    for call in phases.values():
        call.out = made.out
    reference = Reference(ADD, DTYPES["fp32"], inputs)
    group = SimpleNamespace(
        operation=ADD,
        shape=SHAPE,
        dtype=DTYPES["fp32"],
        device=CPU,
        clock=clock,
        isolation=QUIET,
        timed_reference=reference,
        process=ProcessSnapshot(threads=None),
        growth=lambda *_: AS_SUMMED,
    )
    return take_phases(Sampling(made, 3e-3, first_call_s=1.0), group, ProgressHooks())


class Writes(FakeWork):
    """A call that takes a time, and writes a number."""

    number = 2.0

    def __call__(self):
        super().__call__()
        self.out[:] = self.number


def test_each_phase_gets_samples_of_its_own_until_it_has_settled():
    clock = FakeClock()
    forward, backward = taken({"forward": Writes(clock, [1e-3]), "backward": Writes(clock, [2e-3])}, clock)

    assert (forward.name, backward.name) == ("forward", "backward")
    assert (forward.median_s, backward.median_s) == (pytest.approx(1e-3), pytest.approx(2e-3))
    assert len(backward.samples_s) >= MIN_SAMPLES
    assert backward.ci95_s == (pytest.approx(2e-3), pytest.approx(2e-3))


def test_phases_that_do_not_leave_the_right_output_have_no_times():
    clock = FakeClock()
    backward = Writes(clock, [2e-3])
    backward.number = 3.0
    found = taken({"forward": Writes(clock, [1e-3]), "backward": backward}, clock)

    assert [phase.median_s for phase in found] == [None, None]
    assert "relative error 0.5" in found[0].reason


def test_phase_that_raises_says_why_and_the_whole_stands():
    clock = FakeClock()
    broken = Writes(clock, [1e-3], raises_at=2)
    found = taken({"forward": broken, "backward": Writes(clock, [1e-3])}, clock)

    assert [phase.samples_s for phase in found] == [(), ()]
    assert "broken in the middle" in found[1].reason


def test_call_without_phases_of_its_own_says_so_where_the_operation_names_some():
    found = taken({}, FakeClock())

    assert [phase.reason for phase in found] == ["numpy has no calls of its phases"] * 2


@pytest.mark.parametrize("about", [{}, {"samples_s": (1.0,), "reason": "both"}, {"samples_s": (float("nan"),)}])
@pytest.mark.parametrize(("kind", "name"), [(Phase, "forward"), (Contrast, "warm")])
def test_phase_and_contrast_have_samples_or_a_reason_never_both_or_neither(kind, name, about):
    with pytest.raises(InvalidInput, match=rf"a {kind.__name__.lower()} has samples, or else a reason|samples"):
        kind(name, **about)


def test_measurement_keeps_its_phases_and_older_ones_have_none():
    made = Measurement((1.0,) * 10, 1.0, phases=(Phase("forward", (0.5,)), Phase("backward", reason="freed")))
    encoded = encode(made)

    assert decode(Measurement, encoded) == made
    del encoded["phases"]
    assert decode(Measurement, encoded).phases == ()
