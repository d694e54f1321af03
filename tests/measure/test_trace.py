"""The order in which measuring calls what it is made of, written down: clock, hooks, reports, backend, checks.

`trace.json` beside this file is what it was. Where a change of the order is meant, write it anew, and read the
difference: `python -m tests.measure.test_trace`.
"""

import json
from pathlib import Path

import pytest

from tests.measure.trace_record import Trace

RECORDED = Path(__file__).with_name("trace.json")
RUNS = {"whole": {}, "cancelled": {"cancelled_at": 7}, "preempted": {"preempted": True}}


def traced(name):
    """Return the folded trace of a run."""
    with pytest.MonkeyPatch.context() as patch:
        trace = Trace(**RUNS[name])
        trace.install(patch)
        return trace.run()


@pytest.mark.parametrize("name", RUNS)
def test_measuring_calls_its_boundaries_in_the_recorded_order(name):
    assert traced(name) == json.loads(RECORDED.read_text(encoding="utf-8"))[name]


def test_a_run_meets_every_end_of_a_case():
    reports = [line for line in traced("whole") + traced("cancelled") if line.startswith("report ")]

    for status in ("; ok;", "; incorrect;", "; error;", "; cancelled;", "provisional"):
        assert any(status in line for line in reports), status


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: traced(name) for name in RUNS}, indent=1) + "\n", encoding="utf-8")
