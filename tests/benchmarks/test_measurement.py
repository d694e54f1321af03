"""The arithmetic of the benchmark, with invented times."""

import pytest

from benchmarks import measurement
from benchmarks.measurement import (
    ATTEMPTS,
    BASELINE,
    DISTURBED_ABOVE,
    SHIFTED_ABOVE,
    Observed,
    Turn,
    between,
    cases,
    drift,
    joined,
    label,
    score,
    shift,
    table,
    take_turn,
    worst_error,
)

SMALL, LARGE = cases()[0], cases()[-1]


def turn(small_s, large_s, wall_s=1.0, *, lost_share=0.0, shift=0.0):
    return Turn({SMALL: small_s, LARGE: large_s}, {SMALL: 1.0, LARGE: 10.0}, wall_s, lost_share, shift)


def test_there_are_ten_cases_group_by_group():
    assert [label(case) for case in cases()[:3]] == ["numpy 32", "torch 32", "numpy 128"]
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
    ("before_s", "after_s", "expected"),
    [
        ({SMALL: 1.0, LARGE: 10.0}, {SMALL: 1.0, LARGE: 10.0}, 0.0),
        ({SMALL: 1.0, LARGE: 10.0}, {SMALL: 1.1, LARGE: 12.0}, 0.2),
        ({SMALL: 1.1, LARGE: 12.0}, {SMALL: 1.0, LARGE: 10.0}, 0.2),
        ({SMALL: 1.0, LARGE: 11.0}, {SMALL: 1.5, LARGE: 10.0}, 0.5),
    ],
    ids=["still", "slower", "faster", "both ways"],
)
def test_shift_is_that_of_the_worst_case_in_both_directions(before_s, after_s, expected):
    assert shift(before_s, after_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("lost_share", "shifted", "expected"),
    [
        (0.0, 0.0, 0.0),
        (DISTURBED_ABOVE, 0.0, 1.0),
        (0.0, SHIFTED_ABOVE, 1.0),
        (3 * DISTURBED_ABOVE, SHIFTED_ABOVE, 3.0),
    ],
)
def test_disturbance_is_the_worse_of_the_lost_cpu_and_the_shift(lost_share, shifted, expected):
    assert turn(1.0, 10.0, lost_share=lost_share, shift=shifted).disturbance == pytest.approx(expected)


def test_turns_of_all_sizes_are_one_with_the_wall_time_of_all_and_the_worst_disturbance():
    small = Turn({SMALL: 1.1}, {SMALL: 1.0}, 2.0, lost_share=0.01, shift=0.04)
    large = Turn({LARGE: 11.0}, {LARGE: 10.0}, 3.0, lost_share=0.03, shift=0.02)

    assert joined([small, large]) == Turn(
        {SMALL: 1.1, LARGE: 11.0}, {SMALL: 1.0, LARGE: 10.0}, wall_s=5.0, lost_share=0.03, shift=0.04
    )


def taken(monkeypatch, attempts, before=1.0):
    """Return the turn that counts; each attempt is the CPU that others took and the truth after it.

    What the contestant measured is the number of the attempt. Fails unless every attempt was needed.
    """
    shares, truths = (iter(some) for some in zip(*attempts, strict=True))
    measured = iter(range(len(attempts)))
    monkeypatch.setattr(measurement, "observe", lambda measure: Observed(measure(), 1.0, next(shares)))
    found = take_turn(lambda: {SMALL: next(measured)}, lambda: {SMALL: next(truths)}, {SMALL: before})
    assert list(measured) == list(shares) == list(truths) == []
    return found


def test_an_undisturbed_turn_counts_at_once(monkeypatch):
    found = taken(monkeypatch, [(DISTURBED_ABOVE, 1.02)])

    assert found == Turn({SMALL: 0}, {SMALL: 1.01}, 1.0, DISTURBED_ABOVE, pytest.approx(0.02))


def test_a_turn_is_taken_again_when_others_took_the_cpu(monkeypatch):
    found = taken(monkeypatch, [(2 * DISTURBED_ABOVE, 1.0), (0.0, 1.0)])

    assert (found.times_s, found.lost_share) == ({SMALL: 1}, 0.0)


@pytest.mark.parametrize("after", [1.5, 1 / 1.5], ids=["slower", "faster"])
def test_a_turn_is_taken_again_when_the_truth_moved_and_held_against_the_new_one(monkeypatch, after):
    found = taken(monkeypatch, [(0.0, after), (0.0, after)])

    assert (found.times_s, found.truth_s, found.shift) == ({SMALL: 1}, {SMALL: after}, 0.0)


def test_the_least_disturbed_turn_counts_where_all_are_disturbed(monkeypatch):
    lost = [(6 * DISTURBED_ABOVE, 1.0), (4 * DISTURBED_ABOVE, 1.0), (2 * DISTURBED_ABOVE, 1.0)]
    found = taken(monkeypatch, [*lost, *[(3 * DISTURBED_ABOVE, 1.0)] * (ATTEMPTS - len(lost))])

    assert (found.times_s, found.lost_share) == ({SMALL: 2}, 2 * DISTURBED_ABOVE)


def test_lost_cpu_and_shift_are_weighed_against_each_other(monkeypatch):
    moved = [(0.0, 1.0 + 2 * SHIFTED_ABOVE)]
    found = taken(monkeypatch, [*moved, *[(3 * DISTURBED_ABOVE, moved[0][1])] * (ATTEMPTS - 1)])

    assert (found.times_s, found.shift) == ({SMALL: 0}, pytest.approx(2 * SHIFTED_ABOVE))
