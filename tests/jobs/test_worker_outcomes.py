"""Faults of a worker process caused by an implementation: its own case fails, the others are measured."""

import json
from dataclasses import replace

import psutil
import pytest

from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Status
from gpuexplore.core.serialization import encode
from gpuexplore.jobs.engines.worker_process import PASSWORDS
from gpuexplore.store.database import URL_VARIABLE
from tests.jobs.engine_outcomes import GPU, measured, performed, wait_until_gone

pytestmark = pytest.mark.long
NOT_BUILT = "no result within 400 ms: --time-limit sets another limit"


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


CRASHES = {
    "leave": (Status.CRASHED, "the worker ended with exit code 7"),
    "leave-with-0": (Status.CRASHED, "the worker ended with exit code 0"),
    "kill": (Status.CRASHED, "the worker was ended by SIGKILL, but not because memory ran out"),
    "touch-nothing": (Status.CRASHED, "the worker was ended by SIGSEGV"),
    "leave-politely": (Status.ERROR, "SystemExit: it ended the measuring process"),
    "interrupt": (Status.ERROR, "KeyboardInterrupt: it ended the measuring process"),
}
FINE = {"fine": (Status.OK, None), "fine-too": (Status.OK, None)}


def said_of(results):
    return {name: (result.status, result.reason) for name, result in results.items()}


def test_crash_ends_only_its_own_case(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("fine", *CRASHES, "fine-too", operation="crash-test"))

    assert said_of(results) == CRASHES | FINE
    wait_until_gone("crash-test")


def test_crash_while_implementations_take_turns_is_put_down_to_the_right_one(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("crashes-in-turns", "takes-turns"))

    assert results["crashes-in-turns"].status is Status.CRASHED
    assert results["takes-turns"].status is Status.OK


def test_hang_ends_as_timeout_with_all_its_descendants_also_in_a_loop_that_hears_nothing(engine_with, cases_of):
    hanging = ("hang", "hang-in-c", "hang-in-python")
    with engine_with(build_s=0.4) as engine:
        results = measured(engine, cases_of("fine", *hanging, "fine-too", operation="hang-test"))

    assert said_of(results) == dict.fromkeys(hanging, (Status.TIMEOUT, NOT_BUILT)) | FINE
    wait_until_gone("hang-test")


def test_hang_costs_the_limit_of_its_own_turn_and_is_put_down_to_its_case(engine_with, cases_of):
    with engine_with(build_s=60, round_s=0.2, per_round=10) as engine:
        results = measured(engine, cases_of("takes-turns", "hangs-in-its-round", "fine"))

    assert (results["hangs-in-its-round"].status, results["hangs-in-its-round"].reason) == (
        Status.TIMEOUT,
        "no result within 300 ms",
    )
    assert results["takes-turns"].status is results["fine"].status is Status.OK


BROKEN = {
    "exhaust-memory": (Status.OUT_OF_MEMORY, "Unable to allocate 8 GiB"),
    "raising": (Status.ERROR, "ValueError: broken runner"),
    "silent": (Status.ERROR, "the runner reported no result for this case"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_runner_that_breaks_its_promise_is_an_error(engine_with, cases_of, name):
    with engine_with() as engine:
        assert said_of(measured(engine, cases_of(name))) == {name: BROKEN[name]}


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


def test_too_much_output_and_too_many_samples_are_cut_and_flagged_with_their_cases_alone(engine_with, cases_of):
    with engine_with() as engine:
        results = measured(engine, cases_of("print-a-line", "flood", "sample-too-often", "fine"))

    flags = {name: [flag.name for flag in result.flags] for name, result in results.items()}
    many = results["sample-too-often"]
    assert flags.pop("sample-too-often") == ["truncated"]
    assert flags == {"print-a-line": ["one_sample"], "flood": ["truncated", "one_sample"], "fine": ["one_sample"]}
    assert "more than 64 kB" in results["flood"].flags[0].evidence
    assert [flag.evidence for flag in many.flags] == ["40,000 of 200,000 samples are kept, the first ones"]
    assert len(many.measurement.samples_s) == len(many.measurement.contrasts[0].samples_s) == 20_000
    assert len(json.dumps(encode(many))) < 1_000_000


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


def test_activity_that_reports_nothing_is_ended(engine_with, cases_of):
    with engine_with(build_s=60) as engine:
        measured(engine, cases_of("fine"))  # its worker is warm
        engine._limits = replace(engine._limits, start_s=0.3)
        with pytest.raises(GpuExploreError, match="within 300 ms"):
            performed(engine, cases_of("fine"), "hang")
