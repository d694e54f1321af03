"""A row of the table of results: what its interval holds for, and what to know of it."""

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from gpuexplore.analysis.model import Comparison, Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.model import Flag
from gpuexplore.ui.run.table import shown_row
from tests.analysis.made import ok


def row_of(*results):
    return shown_row(analyze(results, Comparison("numpy"), Context()).results[-1])


@pytest.mark.parametrize(
    ("count", "changed", "holds_for"),
    [
        (9, {}, "this run"),
        (9, {"between_processes": 0.1}, "any process"),
        (9, {"processes": (3, 3, 3)}, "3 processes"),
        (5, {}, "this run"),
        (1, {}, None),
        (1, {"between_processes": 0.1}, None),
    ],
)
def test_an_interval_says_what_it_holds_for(count, changed, holds_for):
    result = ok(count=count)
    shown = row_of(replace(result, measurement=replace(result.measurement, **changed)))

    assert shown["Interval for"] == holds_for
    assert (shown["95 % low"] is None) is (holds_for is None)


def test_a_speedup_that_the_rounds_say_otherwise_is_marked():
    samples_s = [1e-3] * 8 + [2e-3] * 3, [3e-3] * 8 + [9e-3] * 13
    this, baseline = (
        replace(ok(implementation=name), measurement=replace(ok().measurement, samples_s=tuple(samples)))
        for name, samples in zip(("torch", "numpy"), samples_s, strict=True)
    )
    shown = row_of(baseline, this)

    assert shown["Speedup"] == pytest.approx(9)
    assert shown["Flags"] == ["rounds disagree"]
    assert shown["Remarks"] == "rounds_disagree: round by round the speedup is 3.00×"
    assert row_of(baseline, replace(this, measurement=ok(3e-3, count=21).measurement))["Flags"] == []


def machines_page(analysis):
    """Show the notes on the machine."""
    from gpuexplore.ui.run.results import _show_machines

    _show_machines(analysis)


def test_what_the_machine_does_to_all_times_is_said_once_with_its_evidence_on_demand():
    flags = [Flag("drifted", "slow in half of the rounds", 0.2)]
    analysis = analyze([ok(size=size, flags=flags) for size in (10, 20, 30)])
    app = AppTest.from_function(machines_page, args=(analysis,)).run()

    (told,) = app.expander
    assert told.label == "This machine is shared: times vary by about 20.0 % from run to run."
    assert "3 of 3 measurements ran on cores that were slower for a while" in told.markdown[0].value
    assert shown_row(analysis.results[0])["Flags"] == []
