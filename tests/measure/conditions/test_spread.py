"""The spread between processes from the first day, and what earlier processes teach of it."""

from dataclasses import replace
from math import exp
from typing import get_args

import pytest

from gpuexplore.core.hardware import MachineKind
from gpuexplore.core.model import Case, Device, Environment, Measurement, Result, Shape, Status, Telemetry
from gpuexplore.measure.conditions.repeatability import Repeatability, Spread, save_repeatability
from gpuexplore.measure.conditions.spread import (
    MOST_CASES,
    MOST_PROCESSES,
    Length,
    Threads,
    _load_log,
    length_of,
    note_results,
    prior,
    with_spread,
    with_spread_of_calls,
)

CPU = Device("cpu", "cpu", "Made CPU", cores=2)
GPU = Device("cuda:0", "cuda", "Made GPU")
ASSUMED = prior("shared", "to 1 ms", "one")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    return tmp_path


def ok(median_s=1e-4, implementation="numpy", device=CPU, *, n=1000, probe=None):
    case = Case("vector_add", Shape.of(n=n), "fp32", implementation, device.id)
    environment = Environment(device, "", "1", None, "", "", {}, before=Telemetry(probe_flop_per_s=probe))
    return Result(case, Status.OK, measurement=Measurement((median_s,) * 6, 1.0), environment=environment)


def both(result):
    measurement = with_spread(result).measurement
    return measurement.between_processes, measurement.between_ratios


@pytest.mark.parametrize("kind", [*get_args(MachineKind), None])
@pytest.mark.parametrize("threads", get_args(Threads))
def test_each_class_has_a_spread_before_anything_was_measured_and_ratios_a_smaller_one(kind, threads):
    for length in get_args(Length):
        assumed = prior(kind, length, threads)
        assert 0 < assumed.ratios < assumed.times < 1


@pytest.mark.parametrize(
    ("median_s", "length"), [(2e-5, "to 20 µs"), (1e-3, "to 1 ms"), (0.04, "to 40 ms"), (1, "longer")]
)
def test_a_class_is_of_calls_about_as_long(median_s, length):
    assert length_of(median_s) == length


def test_on_the_first_day_a_result_has_what_is_assumed_of_a_shared_machine(monkeypatch):
    monkeypatch.setattr("gpuexplore.measure.conditions.spread.machine_kind", lambda probes: "shared")

    assert both(ok()) == pytest.approx((ASSUMED.times, ASSUMED.ratios))
    assert with_spread(ok()).environment.device.machine_kind == "shared"


def test_a_gpu_has_an_assumed_spread_and_no_kind_of_machine():
    found = with_spread(ok(device=GPU))

    assert found.measurement.between_processes == pytest.approx(prior(None, "to 1 ms", "many").times)
    assert found.environment.device == GPU


def test_what_is_no_case_has_the_spread_of_calls_as_long():
    for number in range(MOST_PROCESSES):
        note_results(CPU, f"process {number}", [ok(1e-4 * exp(0.001 * number), "torch", n=10**6)])

    found = with_spread_of_calls(Measurement((1e-4,) * 6, 1.0), CPU)

    assert found.between_processes < prior("shared", "to 1 ms", "many").times
    assert found.between_ratios == pytest.approx(prior("shared", "to 1 ms", "many").ratios)


@pytest.mark.parametrize(("step", "is_narrower"), [(0.001, True), (0.1, False)])
def test_processes_that_agree_narrow_the_spread_and_others_widen_it(step, is_narrower):
    for number in range(MOST_PROCESSES):
        note_results(CPU, f"process {number}", [ok(1e-4 * exp(step * number))])

    times, ratios = both(ok())
    other_case, _ = both(ok(n=2000))

    assert (times < ASSUMED.times) == is_narrower
    assert (other_case < ASSUMED.times) == is_narrower  # of the same class, though less
    assert abs(other_case - ASSUMED.times) < abs(times - ASSUMED.times)
    assert ratios == pytest.approx(ASSUMED.ratios)  # nothing was compared


def test_what_slows_all_of_a_process_widens_times_and_not_ratios():
    for number in range(MOST_PROCESSES):
        slow = 1e-4 * exp(0.1 * number)
        note_results(CPU, f"process {number}", [ok(slow), ok(2 * slow, "torch")])

    times, ratios = both(ok())

    assert times > ASSUMED.times
    assert ratios < ASSUMED.ratios


def test_a_process_counts_once_however_often_it_measures():
    for number in range(MOST_PROCESSES):
        note_results(CPU, "the same", [ok(1e-4 * exp(number))])

    assert both(ok())[0] == pytest.approx(ASSUMED.times)
    (seen,) = _load_log(CPU).seen
    assert list(seen.medians_s) == ["the same"]


def test_what_is_kept_is_bounded_and_the_latest():
    note_results(CPU, "first", [ok(n=n, probe=1e9 + n) for n in range(1, MOST_CASES + 10)])
    for number in range(MOST_PROCESSES + 3):
        note_results(CPU, f"process {number}", [ok(n=5000)])

    log = _load_log(CPU)

    assert len(log.seen) == MOST_CASES
    assert list(log.seen[-1].medians_s) == [f"process {number}" for number in range(3, MOST_PROCESSES + 3)]
    assert log.probes_flop_per_s[-1] == 1e9 + MOST_CASES + 9


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"seen": 3}', '{"probes_flop_per_s": [-1]}'])
def test_a_log_that_cannot_be_read_teaches_nothing(home, text):
    note_results(CPU, "one", [ok()])
    next((home / "cache").glob("spread-*.json")).write_text(text)

    assert _load_log(CPU).seen == ()


def test_a_home_that_cannot_be_written_leaves_the_results_alone(home, monkeypatch):
    (home / "cache").mkdir()
    monkeypatch.setattr("pathlib.Path.write_text", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))

    note_results(CPU, "one", [ok()])

    assert _load_log(CPU).seen == ()


def test_a_measured_table_goes_before_what_was_learned():
    save_repeatability(CPU, Repeatability("2026-11-22T00:00:00+00:00", 12, (Spread("numpy", "one", "memory", 0.02),)))

    assert both(ok()) == pytest.approx((0.02, ASSUMED.ratios))


def test_what_was_not_measured_stays_as_it_is():
    failed = Result(ok().case, Status.ERROR, "it failed")

    assert with_spread(failed) == failed
    assert with_spread(replace(ok(), environment=None)) == replace(ok(), environment=None)
