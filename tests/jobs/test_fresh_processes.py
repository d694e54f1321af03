"""A case that asks for fresh processes is measured in as many, and reported once."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Options, Result, Status
from gpuexplore.jobs.engines import local

pytestmark = pytest.mark.long


@pytest.fixture
def results_of(engine_with, cases_of):
    """Return the only result of each named implementation, measured in three processes."""

    def measured(*names, cancelled=lambda: False):
        events = []
        with engine_with() as engine:
            cases = [replace(case, options=Options(repeat=3)) for case in cases_of(*names)]
            engine.measure(cases, events.append, cancelled)
        results = [event for event in events if isinstance(event, Result)]
        assert len(results) == len(names)
        return {result.case.implementation: result for result in results}

    return measured


def test_each_case_is_measured_in_three_processes_and_reported_once(results_of, monkeypatch):
    noted = {}
    monkeypatch.setattr(local, "RUNNER", "tests.jobs.fake_runner")
    monkeypatch.setattr(local, "note_results", lambda _, process, results: noted.update({process: len(results)}))

    results = results_of("fine", "fine-too")

    assert {len(set(result.measurement.samples_s)) for result in results.values()} == {3}  # each sample is a process id
    assert results["fine"].measurement.samples_s == results["fine-too"].measurement.samples_s
    assert results["fine"].measurement.processes == (1, 1, 1)
    assert list(noted.values()) == [2, 2, 2]  # each process by a name of its own, for later intervals


def test_what_crashes_is_not_tried_again_and_spoils_nothing(results_of):
    results = results_of("fine", "leave-with-0")

    assert results["leave-with-0"].status is Status.CRASHED
    assert len(results["fine"].measurement.processes) == 3


def test_a_cancelled_case_ends_cancelled(results_of):
    assert results_of("fine", cancelled=lambda: True)["fine"].status is Status.CANCELLED
