"""What a list says of a run."""

import pytest

from gpuexplore.analysis.run.summary import summary_of
from gpuexplore.core.model import Flag, RunSummary, Shape
from tests.analysis.made import analyzed, failed, ok

CONTENDED = Flag("contended", "others took 40 % of the CPU", 0.4)
DRIFTED = Flag("drifted", "3 of 9 rounds took 1.5 times as long", 0.5)


def test_the_best_result_is_told_with_its_share_of_the_peak_and_its_device():
    slow, fast = ok(1e-3, size=512), ok(4e-3, size=1024)

    summary = summary_of(analyzed(slow, fast, failed(size=64)))

    assert summary.best == "torch in fp32, 1,024 × 1,024 × 1,024"
    assert summary.rate == pytest.approx(2 * 1024**3 / 4e-3)
    assert summary.unit == "FLOP/s"
    (result,) = [found for found in analyzed(slow, fast).results if found.case.shape["m"] == 1024]
    assert summary.share == result.default_mfu


def test_an_operation_that_moves_data_is_told_in_bytes_per_second():
    summary = summary_of(analyzed(ok(30e-3, operation="vector_add", shape=Shape.of(n=10**8))))

    assert summary.unit == "B/s"
    assert summary.rate == pytest.approx(12e8 / 30e-3)


@pytest.mark.parametrize(
    ("flags", "quality", "why"),
    [
        ([(), (), ()], "clean", "hardly any measurement was disturbed: 0 of 3"),
        ([(DRIFTED,), (), ()], "noisy", "times varied during the measurement: 1 of 3 measurements, e.g. 3 of 9"),
        ([(CONTENDED, DRIFTED), (DRIFTED,), ()], "contended", "1 of 3 measurements, e.g. others took 40 % of the CPU"),
        ([(DRIFTED,), *[()] * 10], "clean", "hardly any measurement was disturbed: 1 of 11"),
    ],
)
def test_quality_is_the_worst_that_more_than_a_tenth_of_the_results_say(flags, quality, why):
    summary = summary_of(analyzed(*(ok(1e-3, size=size + 8, flags=found) for size, found in enumerate(flags))))

    assert summary.quality == quality
    assert why in summary.why


def test_of_a_run_without_measurements_nothing_is_known():
    assert summary_of(analyzed(failed())) == summary_of(analyzed()) == RunSummary()
