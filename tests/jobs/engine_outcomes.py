"""What every engine does, in real processes: whatever an implementation does, every case has exactly one result.

The files of the engines import these tests, and say by `engine_with` and `cases_of` which engine it is.
"""

import json

import psutil
import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Device, Result, Status
from gpuexplore.core.serialization import encode
from gpuexplore.jobs.engines.worker_process import PASSWORDS
from gpuexplore.store.database import URL_VARIABLE
from tests.waiting import wait_until

pytestmark = pytest.mark.long
NOT_BUILT = "no result within 400 ms: --time-limit sets another limit"
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


def test_worker_has_its_environment_before_numpy_is_loaded(engine_with, cases_of, monkeypatch):
    for name in PASSWORDS:
        monkeypatch.setenv(name, "secret")
    with engine_with(GPU) as engine:
        told = json.loads(measured(engine, cases_of("tell", device="cuda:1"))["tell"].reason)

    assert told["CUDA_VISIBLE_DEVICES"] == "GPU-1234"
    assert int(told["OMP_NUM_THREADS"]) >= 1
    assert told["leads_its_group"]
    assert told["database"] == []
    assert URL_VARIABLE in PASSWORDS
    assert "sqlalchemy" not in told["loaded"]
    assert "streamlit" not in told["loaded"]


@pytest.mark.parametrize(
    ("implementation", "status", "reason"),
    [
        ("leave", Status.CRASHED, "the worker ended with exit code 7"),
        ("leave-with-0", Status.CRASHED, "the worker ended with exit code 0"),
        ("kill", Status.CRASHED, "the worker was ended by SIGKILL, but not because memory ran out"),
        ("touch-nothing", Status.CRASHED, "the worker was ended by SIGSEGV"),
        ("leave-politely", Status.ERROR, "SystemExit: it ends the process that raises it"),
        ("interrupt", Status.ERROR, "KeyboardInterrupt: it ends the process that raises it"),
    ],
)
def test_crash_ends_only_its_own_case(engine_with, cases_of, implementation, status, reason):
    with engine_with() as engine:
        results = measured(engine, cases_of("fine", implementation, "fine-too", operation="crash-test"))

    assert (results[implementation].status, results[implementation].reason) == (status, reason)
    assert results["fine"].status is results["fine-too"].status is Status.OK
    wait_until_gone("crash-test")


def test_crash_while_implementations_take_turns_is_put_down_to_the_right_one(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("crashes-in-turns", "takes-turns"))

    assert results["crashes-in-turns"].status is Status.CRASHED
    assert results["takes-turns"].status is Status.OK


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


def test_hang_ends_as_timeout_with_all_its_descendants(engine_with, cases_of):
    with engine_with(build_s=0.4) as engine:
        results = measured(engine, cases_of("hang", "fine", operation="hang-test"))

    assert (results["hang"].status, results["hang"].reason) == (Status.TIMEOUT, NOT_BUILT)
    assert results["fine"].status is Status.OK
    wait_until_gone("hang-test")


@pytest.mark.parametrize("implementation", ["hang-in-c", "hang-in-python"])
def test_loop_that_hears_nothing_ends_as_timeout(engine_with, cases_of, implementation):
    with engine_with(build_s=0.4) as engine:
        results = measured(engine, cases_of("fine", implementation, "fine-too"))

    assert (results[implementation].status, results[implementation].reason) == (
        Status.TIMEOUT,
        NOT_BUILT,
    )
    assert results["fine"].status is results["fine-too"].status is Status.OK


def test_hang_costs_the_limit_of_its_own_turn_and_is_put_down_to_its_case(engine_with, cases_of):
    with engine_with(build_s=60, round_s=0.2, per_round=10) as engine:
        results = measured(engine, cases_of("takes-turns", "hangs-in-its-round", "fine"))

    assert (results["hangs-in-its-round"].status, results["hangs-in-its-round"].reason) == (
        Status.TIMEOUT,
        "no result within 300 ms",
    )
    assert results["takes-turns"].status is results["fine"].status is Status.OK


def test_memory_that_is_exhausted_between_cases_is_called_so(engine_with, cases_of):
    with engine_with() as engine:
        result = measured(engine, cases_of("exhaust-memory"))["exhaust-memory"]

    assert (result.status, result.reason) == (Status.OUT_OF_MEMORY, "Unable to allocate 8 GiB")


def test_what_a_good_case_left_behind_is_ended_and_the_next_one_starts_clean(engine_with, cases_of):
    with engine_with() as engine:
        first = measured(engine, cases_of("fine-with-children", operation="orphans-test"))["fine-with-children"]
        wait_until_gone("orphans-test")
        second = measured(engine, cases_of("fine"))["fine"]

    assert first.status is second.status is Status.OK
    assert first.measurement != second.measurement


def test_child_that_ended_by_itself_leaves_the_worker_warm(engine_with, cases_of):
    with engine_with() as engine:
        first, second = (measured(engine, cases_of(name))[name] for name in ("fine-with-a-child-that-ended", "fine"))

    assert first.measurement == second.measurement


def test_flood_of_output_is_cut_and_flagged_with_its_case_alone(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("print-a-line", "flood", "fine"))

    assert {name: [flag.name for flag in result.flags] for name, result in results.items()} == {
        "print-a-line": ["one_sample"],
        "flood": ["truncated", "one_sample"],
        "fine": ["one_sample"],
    }
    assert "more than 64 kB" in results["flood"].flags[0].evidence


def test_result_with_too_many_samples_keeps_the_first_and_says_so(engine_with, cases_of):
    with engine_with() as engine:
        result = measured(engine, cases_of("sample-too-often"))["sample-too-often"]

    assert len(result.measurement.samples_s) == len(result.measurement.contrasts[0].samples_s) == 20_000
    assert len(json.dumps(encode(result))) < 1_000_000
    assert [flag.evidence for flag in result.flags] == ["40,000 of 200,000 samples are kept, the first ones"]


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

    with engine_with() as engine:
        results = measured(engine, cases_of("fine", "fine-too"), cancelled=lambda: True)
        assert psutil.Process().children() == children

    assert {result.status for result in results.values()} == {Status.CANCELLED}


@pytest.mark.parametrize(
    ("implementation", "reason"),
    [("raising", "ValueError: broken runner"), ("silent", "the runner reported no result for this case")],
)
def test_runner_that_breaks_its_promise_is_an_error(engine_with, cases_of, implementation, reason):
    with engine_with() as engine:
        result = measured(engine, cases_of(implementation))[implementation]

    assert (result.status, result.reason) == (Status.ERROR, reason)


def test_gpu_that_ran_out_of_memory_gets_a_fresh_process(engine_with, cases_of):
    with engine_with(GPU) as engine:
        before = measured(engine, cases_of("fine", device="cuda:1"))["fine"].measurement
        assert measured(engine, cases_of("out-of-memory", device="cuda:1"))
        after = measured(engine, cases_of("fine", device="cuda:1"))["fine"].measurement

    assert before != after


@pytest.mark.parametrize(
    "implementations",
    [
        ("fine", "illegal", "fine-too"),
        ("illegal", "fine", "fine-too"),
        ("illegal-in-turns", "takes-turns", "fine"),
        ("takes-turns", "illegal-in-turns"),
        ("takes-turns", "fine", "illegal"),
        ("late", "takes-turns", "fine"),
    ],
)
def test_illegal_access_ends_its_own_case_and_the_others_are_measured_in_a_fresh_process(
    engine_with, cases_of, implementations
):
    """Every case after it in the same process would get its error: CUDA's context is broken for good."""
    with engine_with(GPU) as engine:
        results = measured(engine, cases_of(*implementations, device="cuda:1"))

    (guilty,) = set(implementations) & {"illegal", "illegal-in-turns", "late"}
    assert (results[guilty].status, "CUDA_ERROR_ILLEGAL_ADDRESS" in results[guilty].reason) == (Status.ERROR, True)
    assert {result.status for name, result in results.items() if name != guilty} == {Status.OK}


def test_worker_that_dies_between_two_groups_is_replaced(engine_with, cases_of):
    with engine_with() as engine:
        worker = psutil.Process(int(measured(engine, cases_of("fine"))["fine"].measurement.min_s))
        worker.kill()

        assert measured(engine, cases_of("fine"))["fine"].status is Status.OK


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


def test_activity_that_reports_nothing_is_ended(engine_with, cases_of):
    with engine_with(start_s=5) as engine:
        measured(engine, cases_of("fine"))  # its worker is warm
        with pytest.raises(GpuExploreError, match="within 5"):
            performed(engine, cases_of("fine"), "hang")


def test_cancelled_activity_ends_with_what_it_has(engine_with, cases_of):
    observed = []
    with engine_with() as engine:
        activity = of_kind("mistake", {"does": "wait"}, device=cases_of("fine")[0].device)
        engine.perform(activity, observed.append, lambda: bool(observed))

    assert [event.payload for event in observed] == [{"step": 1}]
