"""What would end or stop a measuring process ends only its own case, with the real runner in a real worker."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Case, Options, Result, Shape, Status
from gpuexplore.jobs.engines import WorkerLimits
from gpuexplore.jobs.engines.local import LocalEngine
from tests.made_ceiling import save_made_ceiling
from tests.measure.fakes import CPU

pytestmark = pytest.mark.slow
LIMITS = WorkerLimits(start_s=120, build_s=60, per_budget=0, grace_s=0.3)


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Return how to measure implementations in a worker; its ceiling is made up, so that nothing waits for one."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    save_made_ceiling(CPU, 1e30)

    def measure(*names, **limited):
        cases = [Case("vector_add", Shape.of(n=257), "fp32", name, "cpu", Options(budget_s=1.0)) for name in names]
        limits = replace(LIMITS, **limited)
        engine, events = LocalEngine([CPU], runner="tests.measure.evil.runner", limits=limits), []
        try:
            engine.warm(CPU)
            engine.measure(cases, events.append, lambda: False)
        finally:
            engine.close()
        results = [event for event in events if isinstance(event, Result) and not event.provisional]
        assert sorted(result.case.implementation for result in results) == sorted(names)
        return {result.case.implementation: result for result in results}

    return measure


def test_crash_ends_crashed_and_the_others_are_measured(measured):
    results = measured("fine", "crashing", "wrong")

    assert (results["crashing"].status, results["crashing"].reason) == (
        Status.CRASHED,
        "the worker was ended by SIGSEGV",
    )
    assert results["fine"].status is Status.OK
    assert results["wrong"].status is Status.INCORRECT


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("segfault", "the worker was ended by SIGSEGV"),
        ("terminated", "the worker was ended by SIGTERM"),
        ("exit-3", "the worker ended with exit code 3"),
    ],
)
def test_what_ends_the_process_by_itself_is_named(measured, name, reason):
    result = measured(name)[name]

    assert (result.status, result.reason) == (Status.CRASHED, reason)


@pytest.mark.parametrize(
    ("name", "error"),
    [("interrupting", "KeyboardInterrupt"), ("base-exception", "Odd"), ("sys-exit", "SystemExit")],
)
def test_exception_that_ends_a_process_is_named(measured, name, error):
    result = measured(name)[name]

    assert result.status is Status.ERROR
    assert result.reason == f"{error}: it ended the measuring process"


def test_copy_of_the_worker_reports_nothing_twice(measured):
    results = measured("twin", "fine")

    assert {name: result.status for name, result in results.items()} == {"twin": Status.OK, "fine": Status.OK}


def test_thread_that_is_left_behind_ends_with_its_worker(measured, caplog):
    results = measured("dozing-thread", "fine")

    assert {result.status for result in results.values()} == {Status.OK}
    assert [told for told in caplog.messages if told.endswith("left running on cpu: they are ended with their worker")]


def test_one_that_holds_the_interpreter_ends_as_timeout(measured):
    assert measured("holding", build_s=1.5)["holding"].status is Status.TIMEOUT


def test_endless_one_ends_as_timeout(measured):
    result = measured("endless", build_s=1.5)["endless"]

    assert (result.status, result.reason) == (
        Status.TIMEOUT,
        "no result within 1.50 s: --time-limit sets another limit",
    )


def test_one_that_stalls_between_samples_costs_the_limit_of_a_round_and_no_other_case(measured):
    results = measured("fine", "stalling", round_s=0.5)

    assert results["stalling"].status is Status.TIMEOUT
    assert results["stalling"].reason.startswith("no result within 5")  # of 60 s that it had to be built
    assert results["fine"].status is Status.OK


def test_leaking_one_ends_out_of_memory_and_the_worker_goes_on(measured):
    results = measured("leaking", "fine")
    leaking = results["leaking"]

    if leaking.status is Status.OK:  # where memory is so slow that three calls are enough
        assert "leaks" in {flag.name for flag in leaking.flags}
        assert results["fine"].status in (Status.OK, Status.OUT_OF_MEMORY, Status.ERROR)
    else:
        assert (leaking.status, "Unable to allocate 32.0 MiB" in leaking.reason) == (Status.OUT_OF_MEMORY, True)
        assert results["fine"].status is Status.OK, results["fine"].reason


def test_one_that_grows_with_each_slow_call_is_flagged(measured):
    result = measured("growing-slowly")["growing-slowly"]

    assert (result.status, "leaks" in {flag.name for flag in result.flags}) == (Status.OK, True)


def test_one_that_ends_the_process_as_if_all_were_well_is_noticed_at_once(measured):
    result = measured("leaving", build_s=600)["leaving"]  # a limit that would stop the test first

    assert (result.status, result.reason) == (Status.CRASHED, "the worker ended with exit code 0")


@pytest.mark.parametrize("name", ["leaving-at-one-element", "endless-at-one-element"])
def test_call_on_one_element_that_never_comes_back_takes_no_right_result_away(measured, name):
    results = measured(name, "fine", round_s=0.5, per_round=0.2)

    assert results[name].status is results["fine"].status is Status.OK
    assert "launch_bound" not in [flag.name for flag in results[name].flags]
    assert "launch_bound" in [flag.name for flag in results["fine"].flags]


def test_what_is_printed_below_python_neither_floods_a_log_nor_colours_it(measured, caplog):
    result = measured("printing")["printing"]

    assert result.status is Status.OK
    assert "truncated" in [flag.name for flag in result.flags]
    assert sum(map(len, caplog.messages)) < 2 * 64_000
    assert all("\x1b" not in message for message in caplog.messages)
