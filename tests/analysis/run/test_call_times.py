"""Call times before a run: own results before recorded ones, only by the same arithmetic, and scaled by the work."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.run.estimate import _call_times
from tests.analysis.made import case, device, ok

HERE = replace(device(), native=("fp64", "fp32"))


def test_own_results_count_before_recorded_ones_and_are_scaled_by_work():
    found = _call_times(device(), [ok(1.0, size=1000), ok(2.0, size=2000)])

    assert found(case(size=2000)) == pytest.approx(2.0)
    assert 1.0 < found(case(size=1500)) < 2.0
    assert found(case(size=4000)) == pytest.approx(16.0, rel=0.01)


def test_recorded_fp16_loops_are_slow_where_fp16_is_emulated_and_fast_units_are_judged_by_their_peak():
    slow = _call_times(HERE)(case(size=512, dtype="fp16", implementation="numpy"))
    assert slow > 50 * _call_times(HERE)(case(size=512, implementation="numpy"))

    units = replace(device(), native=("fp32", "bf16"))
    fast = _call_times(units)(case(size=1000, dtype="bf16"))
    assert fast < _call_times(HERE)(case(size=1000))
