"""Outcomes common to all engines, in real processes; faults of a worker are in `test_worker_outcomes.py`.

The files of the engines import these tests, and say by `engine_with` and `cases_of` which engine it is.
"""

import psutil
import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Device, Result, Status
from tests.waiting import wait_until

pytestmark = pytest.mark.long
GPU = Device("cuda:1", "cuda", "a GPU", uuid="GPU-1234")


def measured(engine, cases, cancelled=lambda: False):
    events = []
    engine.measure(cases, events.append, cancelled)
    results = [event for event in events if isinstance(event, Result) and not event.provisional]
    assert sorted(result.case.implementation for result in results) == sorted(case.implementation for case in cases)
    return {result.case.implementation: result for result in results}


def processes_marked(mark):
    return [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or [])]


def wait_until_gone(mark):
    wait_until(lambda: not processes_marked(mark), what="the end of all that the worker started")


def test_events_arrive_in_order_while_the_worker_is_still_measuring(engine_with, cases_of):
    fine, patient = cases_of("fine", "patient")
    events = []

    with engine_with() as engine:
        engine.measure([fine, patient], events.append, lambda: len(events) == 3)

    assert [event if event in (fine, patient) else event.case for event in events] == [fine, fine, patient, patient]


def test_worker_is_warm_for_the_next_group(engine_with, cases_of):
    with engine_with() as engine:
        first, second = (measured(engine, cases_of("fine"))["fine"].measurement for _ in range(2))

    assert first == second


def test_first_pass_is_reported_before_any_final_result(engine_with, cases_of):
    first, second = cases_of("passes", operation="matmul") + cases_of("passes", operation="vector_add")
    events = []

    with engine_with() as engine:
        engine.measure([first, second], events.append, lambda: False)

    assert events[0] == first
    results = [event for event in events if isinstance(event, Result)]
    assert [(result.case, result.provisional) for result in results] == [
        (first, True),
        (second, True),
        (first, False),
        (second, False),
    ]


@pytest.mark.parametrize(
    ("guilty", "status"), [("passes-and-crashes", Status.CRASHED), ("passes-and-hangs", Status.TIMEOUT)]
)
def test_what_ends_the_worker_after_a_first_pass_is_the_case_whose_turn_it_was(engine_with, cases_of, guilty, status):
    cases = cases_of("passes", guilty, operation="matmul") + cases_of("passes", operation="vector_add")
    events = []

    with engine_with(round_s=0.2) as engine:
        engine.measure(cases, events.append, lambda: False)

    final = {event.case: event.status for event in events if isinstance(event, Result) and not event.provisional}
    assert final == {cases[0]: Status.OK, cases[1]: status, cases[2]: Status.OK}


def test_cancelled_run_keeps_its_first_pass_though_its_worker_hears_nothing(engine_with, cases_of):
    cases = cases_of("passes-and-hangs", "passes")
    events = []

    with engine_with(grace_s=0.1) as engine:
        engine.measure(cases, events.append, lambda: sum(isinstance(event, Result) for event in events) == 2)

    final = [event for event in events if isinstance(event, Result) and not event.provisional]
    assert [(result.case, result.status) for result in final] == [(case, Status.OK) for case in cases]


def test_cancel_stops_between_rounds_and_leaves_the_worker_warm(engine_with, cases_of):
    with engine_with(grace_s=10) as engine:
        before = measured(engine, cases_of("fine"))["fine"].measurement
        events = []
        engine.measure(cases_of("patient"), events.append, lambda: bool(events))
        after = measured(engine, cases_of("fine"))["fine"].measurement

    assert [event.reason for event in events if isinstance(event, Result)] == ["stopped between two rounds"]
    assert before == after


def test_worker_that_ignores_a_cancel_is_killed(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("hang", "fine", operation="deaf-test"), cancelled=Later(3))

    assert {result.status for result in results.values()} == {Status.CANCELLED}
    assert {result.reason for result in results.values()} == {"the run was cancelled"}
    wait_until_gone("deaf-test")


class Later:
    """True from the n-th time it is asked."""

    def __init__(self, count):
        self.left = count

    def __call__(self):
        self.left -= 1
        return self.left <= 0


def test_group_that_is_cancelled_before_it_starts_starts_no_worker(engine_with, cases_of):
    children = psutil.Process().children()

    with engine_with(build_s=60) as engine:  # a new one
        results = measured(engine, cases_of("fine", "fine-too"), cancelled=lambda: True)
        assert psutil.Process().children() == children

    assert {result.status for result in results.values()} == {Status.CANCELLED}


def test_worker_that_never_takes_up_a_case_breaks_the_engine(engine_with, cases_of):
    with (
        engine_with(start_s=0) as engine,
        pytest.raises(GpuExploreError, match="did not start within 0 s, 3 times before it started a case"),
    ):
        engine.measure(cases_of("fine", "fine-too"), lambda event: None, lambda: False)


def test_failing_listener_stops_the_worker(engine_with, cases_of):
    def refuse(event):
        raise OSError("disk full")

    with engine_with() as engine:
        with pytest.raises(OSError, match="disk full"):
            engine.measure(cases_of("hang", operation="listener-test"), refuse, lambda: False)
        wait_until_gone("listener-test")


def performed(engine, cases, does, cancelled=lambda: False):
    """Do an activity on the device of `cases`; return what was observed."""
    observed = []
    engine.perform(
        of_kind("mistake", {"does": does}, device=cases[0].device),
        lambda event: observed.append(event.payload),
        cancelled,
    )
    return observed


def test_activity_reports_from_the_worker_that_measures(engine_with, cases_of):
    with engine_with() as engine:
        worker = measured(engine, cases_of("fine"))["fine"].measurement.median_s
        observed = performed(engine, cases_of("fine"), "observe")

    assert observed == [{"step": 1}, {"step": 2, "pid": worker}]


def test_activity_that_fails_says_why_and_its_worker_goes_on(engine_with, cases_of):
    with engine_with() as engine:
        worker = measured(engine, cases_of("fine"))["fine"].measurement.median_s
        with pytest.raises(GpuExploreError, match="no such thing"):
            performed(engine, cases_of("fine"), "fail")

        assert performed(engine, cases_of("fine"), "observe")[1]["pid"] == worker


def test_activity_whose_worker_dies_fails_and_the_next_one_is_done(engine_with, cases_of):
    with engine_with() as engine:
        with pytest.raises(GpuExploreError, match="exit code 3"):
            performed(engine, cases_of("fine"), "crash")

        assert len(performed(engine, cases_of("fine"), "observe")) == 2


def test_cancelled_activity_ends_with_what_it_has(engine_with, cases_of):
    observed = []
    with engine_with() as engine:
        activity = of_kind("mistake", {"does": "wait"}, device=cases_of("fine")[0].device)
        engine.perform(activity, observed.append, lambda: bool(observed))

    assert [event.payload for event in observed] == [{"step": 1}]
