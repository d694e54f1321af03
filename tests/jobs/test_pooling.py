"""Results of one case from several processes, as one."""

from dataclasses import replace

import pytest

from gpuexplore.core.model import Accuracy, Case, Flag, Measurement, Options, Result, Shape, Status, WorstElement
from gpuexplore.jobs.engines import MAX_SAMPLES, pooled

CASE = Case("matmul", Shape.of(m=1, k=1, n=1), "fp32", "numpy", "cpu", Options(repeat=3))


def ok(seconds, *flags, error=1e-7, count=4):
    return Result(
        CASE,
        Status.OK,
        measurement=Measurement((seconds,) * count, 10 * seconds),
        accuracy=Accuracy(error, 1e-6),
        flags=flags,
    )


def test_one_result_stays_as_it_is():
    assert pooled([ok(1.0)]) == ok(1.0)


def test_the_pool_has_all_samples_and_the_median_of_the_processes():
    found = pooled([ok(1.0), ok(9.0, error=5e-7), ok(2.0)])

    assert found.measurement.processes == (4, 4, 4)
    assert found.measurement.samples_s == (1.0,) * 4 + (9.0,) * 4 + (2.0,) * 4
    assert found.measurement.median_s == 2.0
    assert found.measurement.first_call_s == 20.0
    assert found.accuracy.relative_error == 5e-7


def test_the_worst_element_of_any_process_stands_for_all():
    worst = WorstElement("element [3]", 1.0, 1.5, 0.6)
    second = ok(2.0)
    second = replace(second, accuracy=replace(second.accuracy, worst=worst))

    assert pooled([ok(1.0, error=5e-7), second, ok(3.0)]).accuracy.worst == worst


def test_a_flag_of_some_processes_tells_of_how_many():
    noisy, warm = Flag("noisy", "spreads"), Flag("warm", "again and again")

    found = pooled([ok(1.0, warm), ok(1.0, warm, noisy), ok(1.0, warm)])

    assert found.flags == (warm, Flag("noisy", "in 1 of 3 processes: spreads"))


@pytest.mark.parametrize(("place", "reason"), [(0, "off by 2"), (1, "in process 2 of 3: off by 2")])
def test_what_fails_in_one_process_is_not_timed(place, reason):
    results = [ok(1.0), ok(1.0), ok(1.0)]
    results[place] = Result(CASE, Status.INCORRECT, "off by 2")

    assert pooled(results) == replace(results[place], reason=reason)


def test_together_they_keep_no_more_samples_than_one_result_may():
    found = pooled([ok(1.0, count=MAX_SAMPLES), ok(2.0, count=MAX_SAMPLES), ok(3.0)])

    assert found.measurement.processes == (MAX_SAMPLES // 3, MAX_SAMPLES // 3, 4)
