"""The arithmetic of the benchmark, with invented times."""

import pytest

from benchmarks import measurement
from benchmarks.measurement import BASELINE, Observed, Turn, between, cases, drift, label, score, table, worst_error

SMALL, LARGE = cases()[0], cases()[-1]


def turn(small_s, large_s, wall_s=1.0):
    return Turn({SMALL: small_s, LARGE: large_s}, {SMALL: 1.0, LARGE: 10.0}, wall_s, 0.0)


def test_there_are_ten_cases_group_by_group():
    assert [label(one) for one in cases()[:3]] == ["numpy 32", "torch 32", "numpy 128"]
    assert len(cases()) == 10


def test_an_error_counts_in_both_directions():
    assert worst_error({SMALL: 0.5, LARGE: 11.0}, {SMALL: 1.0, LARGE: 10.0}) == (0.5, SMALL)


def test_a_case_without_a_time_is_wholly_wrong():
    assert worst_error({SMALL: 1.0}, {SMALL: 1.0, LARGE: 10.0}) == (1.0, LARGE)


def test_the_truth_of_a_turn_is_the_mean_of_the_slices_around_it():
    assert between({SMALL: 1.0}, {SMALL: 3.0}) == {SMALL: 2.0}


def test_drift_is_that_of_the_worst_case():
    assert drift([{SMALL: 1.0, LARGE: 10.0}, {SMALL: 1.5, LARGE: 11.0}]) == pytest.approx(0.5)


def test_scores_are_medians_over_the_turns_and_ratios_to_the_baseline():
    turns = {
        BASELINE: [turn(1.1, 10.0, 2.0), turn(1.2, 10.0, 2.0), turn(1.3, 10.0, 9.0)],
        "other": [turn(1.0, 10.5, 0.5), turn(1.0, 11.0, 1.0), turn(1.0, 14.0, 1.0)],
    }

    baseline, other = score(turns)

    assert (baseline.wall_ratio, baseline.worst_error_ratio) == (1.0, 1.0)
    assert other.wall_ratio == pytest.approx(0.5)
    assert other.worst_error == pytest.approx(0.1)
    assert other.worst_error_ratio == pytest.approx(0.5)
    assert (other.largest_error, other.worst_case) == (pytest.approx(0.4), "torch 1024")


def test_the_table_has_a_line_for_each_contestant():
    lines = table(score({BASELINE: [turn(1.1, 10.0)], "other": [turn(1.0, 10.5)]})).splitlines()

    assert [line.split()[0] for line in lines] == ["contestant", "blocked_autorange", "other"]


@pytest.mark.parametrize(
    ("shares", "kept"),
    [([0.0], 0.0), ([0.4, 0.01], 0.01), ([0.4, 0.2, *[0.3] * (measurement.ATTEMPTS - 2)], 0.2)],
    ids=["at once", "again", "never quiet"],
)
def test_what_others_disturbed_is_taken_again_and_at_last_the_least_disturbed_counts(monkeypatch, shares, kept):
    left = iter(shares)
    monkeypatch.setattr(measurement, "observe", lambda measure: Observed(measure(), 1.0, next(left)))

    assert measurement.undisturbed(dict, sleep=lambda _: None).lost_share == kept
    assert list(left) == []
