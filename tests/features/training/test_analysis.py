"""Which mode of a training is faster is a verdict on the ratio of its steps, wider where others had the CPU."""

import pytest

from gpuexplore.analysis.verdict.times import LEFT_IN_A_RATIO
from gpuexplore.features.training.analysis import conclusions, ratio_doubts, time_doubts
from gpuexplore.features.training.measure.contract import Timing
from tests.features.training.made_training import mode, processes, report

WIDE, FASTER, SLOWER = Timing(1.1, (0.9, 1.3), 9), Timing(1.1, (1.08, 1.12), 9), Timing(0.5, (0.49, 0.51), 9)


def trained(ratio, *, lost=0.0, speedup=None):
    together = processes(speedup=speedup) if speedup else None
    return report(mode("fp32"), mode("bf16", ratio=ratio), processes=together, lost_cpu_share=lost)


@pytest.mark.parametrize(
    ("ratio", "lost", "relation", "words"),
    [
        (FASTER, 0.0, "above", "bf16 faster than fp32"),
        (SLOWER, 0.0, "below", "almost certainly bf16 slower than fp32"),
        (SLOWER, 0.5, "below", "almost certainly bf16 slower than fp32"),
        (FASTER, 0.9, None, "unclear which is faster, bf16 or fp32"),
        (WIDE, 0.0, None, "unclear which is faster, bf16 or fp32"),
        (Timing(1.1, None, 3), 0.0, None, "unclear which"),
        (
            Timing(1.475, (0.817, 1.475), 20, 0.817),
            0.0,
            None,
            "unclear which is faster, bf16 or fp32; by the rounds 0.817×",
        ),
    ],
)
def test_a_mode_is_compared_with_the_first(ratio, lost, relation, words):
    (verdict,) = conclusions(trained(ratio, lost=lost))

    assert verdict.relation == relation
    assert words in verdict.statement


def test_processes_are_compared_with_one_and_nothing_is_told_of_what_is_not_known():
    assert "2 processes slower than one" in conclusions(trained(FASTER, speedup=SLOWER))[1].statement
    assert conclusions(trained(None)) == ()


def test_others_on_the_cpu_widen_times_more_than_ratios():
    disturbed = trained(FASTER, lost=0.5)

    left = LEFT_IN_A_RATIO * time_doubts(disturbed)[0].deviation
    assert 0 < ratio_doubts(disturbed)[0].deviation == left < time_doubts(disturbed)[0].deviation
    assert time_doubts(trained(FASTER)) == ratio_doubts(trained(FASTER)) == ()
