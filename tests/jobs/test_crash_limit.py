"""Three crashes in a row end a run, and keep what it has."""

import pytest

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Measurement, Result, Status
from gpuexplore.jobs.queue_loop import _crash_limit

THREE = "3 crashes in a row: matmul a fp32 n=1 on fake; matmul b fp32 n=1 on fake; matmul c fp32 n=1 on fake"


@pytest.fixture
def crashed(cases_of):
    return lambda *names: [Result(case, Status.CRASHED, "SIGSEGV") for case in cases_of(*names)]


@pytest.fixture
def fine(cases_of):
    return Result(cases_of("fine")[0], Status.OK, measurement=Measurement((1.0,), 1.0))


def test_third_crash_in_a_row_is_kept_and_names_all_three(crashed, cases_of):
    kept, (first, second, third) = [], crashed("a", "b", "c")
    take = _crash_limit(kept.append)
    for event in (first, *cases_of("b"), second, *cases_of("c")):
        take(event)

    with pytest.raises(GpuExploreError, match=THREE):
        take(third)

    assert [event for event in kept if isinstance(event, Result)] == [first, second, third]


def test_any_other_result_between_them_begins_a_new_row(crashed, fine):
    kept, (first, second, third) = [], crashed("a", "b", "c")
    take = _crash_limit(kept.append)

    for event in (first, second, fine, third):
        take(event)

    assert kept == [first, second, fine, third]


@pytest.mark.slow
def test_engine_stops_where_three_cases_crash_and_measures_the_next_run(engine_with, cases_of):
    kept = []
    with engine_with() as engine:
        with pytest.raises(GpuExploreError, match="matmul kill fp32 n=1 on fake"):
            engine.measure(
                cases_of("fine", "kill", "leave", "touch-nothing", "fine-too"), _crash_limit(kept.append), _never
            )
        engine.measure(cases_of("tell"), kept.append, _never)

    results = {event.case.implementation: event.status for event in kept if isinstance(event, Result)}
    assert results.pop("fine") is Status.OK
    assert results.pop("tell") is Status.ERROR
    assert [results.pop(name) for name in ("kill", "leave", "touch-nothing")] == [Status.CRASHED] * 3


def _never():
    return False
