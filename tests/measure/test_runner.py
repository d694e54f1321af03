"""From cases to results: each gets exactly one, and nobody gets a time without a right answer."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns
from typing import get_args

import pytest

from gpuexplore import operations
from gpuexplore.backends import load_backend
from gpuexplore.core.hardware import MachineKind
from gpuexplore.core.model import Case, Measurement, Options, Result, Shape, Status, Telemetry
from gpuexplore.core.units import format_seconds
from gpuexplore.measure import runner
from gpuexplore.measure.candidates import candidate
from gpuexplore.measure.check import group
from gpuexplore.measure.check.group import open_group
from gpuexplore.measure.conditions import environment, watch
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.flags import LEAK_BYTES
from gpuexplore.measure.runner import measure_group
from gpuexplore.measure.sample import compile_ahead, contrast, prepare, slow_cases, timing
from gpuexplore.measure.sample.timing import ENOUGH_ROUNDS, MIN_SAMPLES, ROUND_SAMPLES
from gpuexplore.operations import OPERATIONS
from tests.measure.evil import catalogue
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock, run_with
from tests.unchanged import heavy

pytestmark = pytest.mark.long

CALL_NS = 100_000
SMALL = Shape.of(n=257)


@pytest.fixture(autouse=True)
def _evil(monkeypatch):
    catalogue.register(monkeypatch.setattr, monkeypatch.setitem)
    monkeypatch.setattr(contrast, "_known", {})


def cases(*names, shape=SMALL, dtype="fp32", device="cpu", **options):
    return [Case("vector_add", shape, dtype, name, device, Options(**options)) for name in names]


REAL = {"clock": perf_counter_ns, "isolation": Isolation()}


def steady(report, cancelled=lambda: False, tick_ns=CALL_NS):
    """Return the arguments of a run whose clock moves by its readings only."""
    return run_with(report, cancelled, clock=FakeClock(tick_ns=tick_ns), isolation=QUIET)


def measured(group, *, device=CPU, cancelled=lambda: False, **surroundings):
    """Return the events and the results by implementation; the clock moves by its readings only."""
    events = []
    measure_group(group, device, **steady(events.append, cancelled) | surroundings)
    results = [event for event in events if isinstance(event, Result)]
    assert sorted(result.case.implementation for result in results) == sorted(one.implementation for one in group)
    return events, {result.case.implementation: result for result in results}


def result_of(name, **about):
    return measured(cases(name, **about))[1][name]


def test_good_implementation_ends_ok_with_all_that_belongs_to_a_number():
    result = result_of("fine")

    assert (result.status, result.reason) == (Status.OK, None)
    assert result.accuracy.within
    assert len(result.measurement.samples_s) >= 10
    assert result.measurement.first_call_s == pytest.approx(CALL_NS * 1e-9)
    assert replace(result.environment.device, machine_kind=None) == CPU
    assert result.environment.device.machine_kind in get_args(MachineKind)
    assert 0 < result.measurement.between_ratios < result.measurement.between_processes
    assert "warm" in {flag.name for flag in result.flags}


def test_each_case_is_announced_before_its_result():
    group = cases("fine", "wrong", "raising")
    events, _ = measured(group)

    for case in group:
        done = next(at for at, event in enumerate(events) if isinstance(event, Result) and event.case == case)
        assert events.index(case) < done


WRONG = [plant for plant in catalogue.PLANTS if plant.statuses == (Status.INCORRECT,)]
OF_THREADS = {"thread-counts", "blas-thread"}  # on one core they set what is set
WRONG_HERE = [plant for plant in WRONG if plant.name not in OF_THREADS]


REASONS = {  # what each begins with
    "wrong": "relative error 1",
    "partial": "the output contains NaN",
    "alternating": ("the output contains NaN", "relative error"),  # whether an even or an odd call is checked first
    "seldom": "the output contains NaN",
    "keeping": "relative error 1",
    "changing": "it changed its inputs",
    "accumulating": "it changed its inputs",
    "narrow": "relative error 0.000",
    "asynchronous": ("the output", "relative error"),
    "skipping": "relative error",
    "memorizing": "a call takes",
    "alert": "a call takes",
}
CHANGES = {  # of the process, what is named
    "clock": "time.monotonic",
    "norm": "numpy.linalg.norm",
    "check-rewritten": "Accuracy.within",
    "checks-replaced": "gpuexplore.measure.",
    "median": "Measurement.median_s",
    "guard-off": "gpuexplore.measure.",
    "swapped-names": "gpuexplore.measure.runner.",
    "raising-arithmetic": "numpy's error handling",
    "environment": "the environment",
    "collecting": "the garbage collector",
    "signals": "the handler of SIGINT",
}


@heavy("gpuexplore.operations.*", "gpuexplore.backends.*")
@pytest.mark.parametrize("plant", WRONG_HERE, ids=lambda plant: plant.name)
def test_no_plant_that_is_wrong_is_timed(plant):
    """In this process and by the real clock: `make evil` tries all of them, in processes of their own."""
    asked = [
        Case(plant.operation, plant.shape, plant.dtype, name, "cpu", Options(budget_s=0.02))
        for name in (plant.name, *plant.beside)
    ]
    _, results = measured(asked, **REAL)

    result = results[plant.name]
    assert result.status is Status.INCORRECT, result
    assert result.measurement is None
    assert result.accuracy is None or not result.accuracy.within
    assert result.reason.startswith(REASONS.get(plant.name, ""))
    if plant.name in CHANGES:
        assert result.reason.startswith("it changed the state of its process: ")
        assert CHANGES[plant.name] in result.reason
    assert {results[name].status for name in plant.beside} <= {Status.OK}


def test_plants_say_what_they_do_and_their_names_are_their_own():
    assert len(catalogue.BUILDERS) == len(catalogue.PLANTS) > 80
    assert all(plant.about for plant in catalogue.PLANTS)
    assert not [plant.name for plant in catalogue.PLANTS if Status.OK in plant.statuses and plant.operation == "matmul"]


def test_seeds_differ_from_run_to_run_and_are_kept():
    first, second = (result_of("fine").seed for _ in range(2))

    assert first != second
    assert result_of("wrong").seed is not None


def test_process_that_grows_with_every_call_is_flagged(monkeypatch):
    held = iter(range(10**6))
    monkeypatch.setattr(timing, "resident_bytes", lambda: next(held) * LEAK_BYTES)

    assert "leaks" in {flag.name for flag in result_of("fine").flags}


def test_the_state_of_the_device_is_read_before_the_timed_output_is_checked(monkeypatch):
    order, check = [], runner.checked
    monkeypatch.setattr(watch, "read_telemetry", lambda device: order.append("read") or Telemetry(clock_hz=1e9))
    monkeypatch.setattr(runner, "checked", lambda *about: order.append("checked") or check(*about))

    result = result_of("fine")

    assert order == ["read", "checked"]
    assert result.environment.after.clock_hz == 1e9


def test_answer_is_checked_on_random_numbers_whatever_is_timed():
    assert result_of("zeros", data="zeros").status is Status.INCORRECT
    assert result_of("fine", data="zeros").status is Status.OK
    assert result_of("fine", data="ones").status is Status.OK


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raising", "ValueError: illegal instruction"),
        ("unbuildable", "RuntimeError: does not compile"),
        ("tiring", "RuntimeError: tired"),
    ],
)
def test_exception_ends_its_own_case_as_error(name, reason):
    _, results = measured(cases("fine", name))

    assert (results[name].status, results[name].reason) == (Status.ERROR, reason)
    assert results["fine"].status is Status.OK


def test_out_of_memory_of_a_library_is_known_by_its_words():
    result = result_of("out-of-memory")

    assert result.status is Status.OUT_OF_MEMORY
    assert result.reason == "CUDA out of memory. Tried to allocate 80.00 GiB"


def test_missing_library_is_unsupported_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(load_backend("torch"), "is_available", lambda: False)

    result = result_of("torch")

    assert result.status is Status.UNSUPPORTED
    assert result.reason == "torch is not installed: pip install torch"


def test_missing_file_is_unsupported():
    result = result_of("missing-module")

    assert result.status is Status.UNSUPPORTED
    assert result.reason.startswith("No module named")


def test_slow_implementation_is_skipped_with_an_estimate_before_it_runs():
    _, results = measured(cases("slow", shape=Shape.of(n=2**23), budget_s=1e-3), clock=perf_counter_ns)

    assert results["slow"].status is Status.SKIPPED
    assert results["slow"].reason.startswith("one call would take about ")
    limit = f"{format_seconds(group.MAX_BUDGET_MULTIPLE * 1e-3)} ({group.MAX_BUDGET_MULTIPLE} × the budget of 0.001 s)"
    assert results["slow"].reason.endswith(f"{group.MIN_CALLS} are needed: over the limit of {limit}")


@pytest.mark.parametrize(
    ("estimates_s", "status"), [((1e6, 1e-6), Status.OK), ((1e6, 1e6, 1e-6), Status.SKIPPED), ((1e-6, 1e6), Status.OK)]
)
def test_one_long_estimate_skips_no_case(monkeypatch, estimates_s, status):
    told = iter(estimates_s)
    monkeypatch.setattr(prepare, "estimate_call_s", lambda *_: next(told))

    assert result_of("fine").status is status


def test_second_estimate_is_not_made_where_the_first_agrees_with_an_earlier_one(monkeypatch):
    estimates_s = []
    monkeypatch.setattr(prepare, "estimate_call_s", lambda *_: estimates_s.append(1e6) or 1e6)

    assert [result_of("fine").status for _ in range(3)] == [Status.SKIPPED] * 3
    assert len(estimates_s) == 2 + 1 + 1


def test_implementation_that_is_slow_only_at_this_size_is_skipped_after_its_warm_up(monkeypatch):
    monkeypatch.setattr(group, "CHEAP_WORK", 2**40)

    assert result_of("fine", budget_s=1e-6).status is Status.SKIPPED


def test_case_larger_than_the_memory_is_out_of_memory_with_both_figures(monkeypatch):
    monkeypatch.setattr(environment, "free_host_bytes", lambda: 1000)

    result = result_of("fine", shape=Shape.of(n=1000))

    assert result.status is Status.OUT_OF_MEMORY
    assert result.reason == "needs 117 KiB, cpu has 900 B free"


def test_dtype_without_meaning_is_unsupported_with_its_reason():
    result = result_of("fine", dtype="tf32")

    assert result.status is Status.UNSUPPORTED
    assert "vector_add is not a matmul" in result.reason


def test_implementation_of_another_device_is_unsupported():
    _, results = measured(cases("fine", device="cuda:0"), device=GPU)

    assert results["fine"].status is Status.UNSUPPORTED
    assert results["fine"].reason == "fine runs on cpu devices, not on cuda:0"


def test_cold_on_an_unknown_cache_says_what_it_assumed(monkeypatch):
    monkeypatch.setattr(candidate, "ASSUMED_FLUSH_BYTES", 2**20)
    result = measured(cases("fine", cache="cold"), device=replace(CPU, cache_bytes=None))[1]["fine"]

    assert result.status is Status.OK
    assert result.flags[0].name == "cold"
    assert result.flags[0].evidence.startswith("1.00 MiB overwritten before each call: assumed")
    assert result.environment.device.cache_bytes is None


def test_cancel_before_the_start_runs_nothing():
    _, results = measured(cases("fine", "endless"), cancelled=lambda: True)

    assert {result.status for result in results.values()} == {Status.CANCELLED}
    assert {result.reason for result in results.values()} == {"cancelled before it was measured"}


def test_cancel_between_rounds_keeps_what_was_measured():
    answers = iter([False, False, False, True])
    _, results = measured(cases("fine", "numpy"), cancelled=lambda: next(answers))

    assert {result.status for result in results.values()} == {Status.OK}
    assert max(len(result.measurement.samples_s) for result in results.values()) <= ENOUGH_ROUNDS * ROUND_SAMPLES


@pytest.mark.parametrize(("call_ns", "rounds"), [(CALL_NS, ENOUGH_ROUNDS), (20 * CALL_NS, 2)])
def test_a_case_gets_three_rounds_where_they_are_short_although_preparing_it_took_the_budget(call_ns, rounds):
    _, results = measured(cases("fine", "numpy", budget_s=1e-3), clock=FakeClock(tick_ns=call_ns))

    counts = {len(result.measurement.samples_s) / result.measurement.per_round for result in results.values()}
    assert counts == {rounds}


def test_leaving_off_after_the_first_pass_finishes_nothing():
    events, answers = [], iter([False, True])
    progress = ProgressHooks(events.append, preempted=lambda: next(answers, True))

    runner.measure_cases(cases("fine", "numpy"), CPU, **steady(events.append) | {"progress": progress})

    results = [event for event in events if isinstance(event, Result)]
    assert [(result.status, result.provisional) for result in results] == [(Status.OK, True)] * 2


SMALL_SLOW, LARGE_SLOW = Shape.of(n=64), Shape.of(n=2**16)


def order_of(events):
    """Return the sizes of what was reported, in order: provisional ones negative."""
    results = (event for event in events if isinstance(event, Result))
    return [(-1 if result.provisional else 1) * result.case.shape["n"] for result in results]


@pytest.mark.parametrize(
    ("is_preempted", "order"),
    [
        (False, [-64, -257, 64, 257, -(2**16), 2**16]),
        (True, [-64, -257]),
    ],
)
def test_a_slow_case_is_measured_after_the_others_and_left_where_others_go_first(is_preempted, order):
    """Its small size tells; two that were slow kept thirty waiting for minutes."""
    asked = [case for shape in (SMALL_SLOW, LARGE_SLOW) for case in cases("fine", shape=shape, budget_s=1e-3)]
    events = []
    arguments = steady(events.append, tick_ns=round(slow_cases.SHORTEST_S * 1e9))
    arguments["progress"] = replace(arguments["progress"], preempted=lambda: is_preempted)

    runner.measure_cases([*asked, *cases("numpy", budget_s=1e-3)], CPU, **arguments)

    assert order_of(events) == order


def test_slow_cases_alone_are_measured_although_others_wait():
    events, group = [], cases("fine", budget_s=1e-3)
    slow_cases.note(Result(group[0], Status.OK, measurement=Measurement((1.0,), 1.0)))

    runner.measure_cases(group, CPU, **steady(events.append))

    assert order_of(events) == [-257, 257]


def test_samples_of_a_group_can_be_paired():
    _, results = measured(cases("fine", "numpy"))
    counts = [len(result.measurement.samples_s) for result in results.values()]

    assert min(counts) >= MIN_SAMPLES
    assert [count % ROUND_SAMPLES for count in counts] == [0, 0]
    assert max(counts) - min(counts) <= ROUND_SAMPLES  # whoever began the first round last may need one more


def test_short_calls_are_held_against_the_cost_of_a_call(monkeypatch):
    monkeypatch.setattr(runner, "call_overhead_s", lambda *_, before: CALL_NS * 1e-9)

    assert "launch_bound" in {flag.name for flag in result_of("fine").flags}


def test_cost_of_a_call_is_not_measured_for_long_ones(monkeypatch):
    monkeypatch.setattr(runner, "SHORT_CALL_S", 0.0)

    assert result_of("fine").status is Status.OK
    assert contrast._known == {}


def test_cost_of_a_call_that_cannot_be_taken_stains_no_good_result(monkeypatch):
    tried = []

    def failing(case, *_):
        tried.append(case)
        raise ValueError("one element has no meaning")

    monkeypatch.setattr(contrast, "_on_one_element", failing)

    assert result_of("fine").status is Status.OK
    assert result_of("fine", shape=Shape.of(n=300)).status is Status.OK
    assert len(tried) == 1


def test_cost_of_a_call_is_measured_once_for_a_process():
    result_of("fine")
    known = dict(contrast._known)
    result_of("fine", shape=Shape.of(n=300))

    assert list(known) == [("vector_add", "fine", "fp32", "cpu", None)]
    assert contrast._known == known


class JumpingClock(FakeClock):
    """A clock that once, between two readings, moves by as long as a scheduler's whole turn."""

    def __init__(self, at):
        super().__init__(tick_ns=CALL_NS)
        self.left = at

    def __call__(self):
        self.left -= 1
        return super().__call__() + (40_000_000 if self.left < 0 else 0)


@pytest.mark.parametrize("at", [*range(6), *range(250, 270)])  # warming up reads the clock 251 times
def test_cost_of_a_call_is_not_what_one_disturbed_batch_says(at):
    (case,) = cases("fine")
    group = open_group([case], CPU, clock=JumpingClock(at), isolation=QUIET)

    assert contrast.call_overhead_s(case, group, ProgressHooks()) <= CALL_NS * 1e-9


def test_warm_up_calls_what_the_device_can_run_and_no_rung_or_extra(monkeypatch):
    called = []
    add = OPERATIONS["vector_add"]
    row = add.implementations[0]
    rows = (row, replace(row, name="a rung", rung=True), replace(row, name="an extra", optional=True))
    monkeypatch.setattr(operations, "OPERATIONS", {"vector_add": replace(add, implementations=rows)})
    monkeypatch.setattr(compile_ahead, "build_candidate", lambda case, *_, **__: FirstCall(case, case.shape, called))

    runner.warm_up(CPU)

    assert {name for name, _ in called} == {row.name}
    assert {shape for _, shape in called} == {Shape.of(n=compile_ahead.SMALL), Shape.of(n=compile_ahead.LARGE)}


class FirstCall:
    """A candidate that only says that it was called; its first call takes three seconds, the next one."""

    def __init__(self, case, shape, called):
        self.what, self.called, self.seconds = (case.implementation, shape), called, [3.0, 1.0]

    def first_call_s(self, clock):
        self.called.append(self.what)
        return self.seconds.pop(0)


def test_what_the_warm_up_spent_on_compiling_is_told_once_with_the_first_case(monkeypatch):
    (case,) = cases("fine")
    slow_cases.note_first_calls(case, 3.0, 1.0)

    assert result_of("fine").measurement.first_call_s == pytest.approx(2.0 + CALL_NS * 1e-9)
    assert result_of("fine").measurement.first_call_s == pytest.approx(CALL_NS * 1e-9)


def test_what_the_warm_up_spent_on_compiling_is_no_budget_of_a_run():
    (case,) = cases("fine")
    slow_cases.note_first_calls(case, 3.0, 1.0)
    opened = runner._prepare([case], CPU, **steady(lambda event: None))

    assert case.options.budget_s < opened.budget_s() < case.options.budget_s + 0.1
    assert opened.ready[case].first_call_s > 2.0


def test_catalogue_leaves_the_real_operations_alone():
    names = {implementation.name for implementation in OPERATIONS["vector_add"].implementations}

    assert {"numpy", "numba-cpu", "numba-cuda", "torch"} <= names
    assert names.isdisjoint(catalogue.BUILDERS)
    assert not list(Path(runner.__file__).parents[1].rglob("evil_*"))


def test_checks_after_timing_on_other_addresses_have_their_own_limit_not_that_of_a_round():
    limits = []

    def check_after(candidate, group, call_s):
        assert limits[-1] is None
        checks.append(candidate.case)

    checks, progress = [], ProgressHooks(running=lambda _, expected_s: limits.append(expected_s))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "check_reuse", check_after)
        patch.setattr(runner, "check_single_calls", lambda *_: None)
        runner.measure_cases(cases("fine"), CPU, **steady(print) | {"progress": progress})

    assert checks == cases("fine")
