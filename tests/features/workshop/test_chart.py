"""What a room guessed and measured, as a chart."""

import pytest

from gpuexplore.core.units import format_seconds
from gpuexplore.features.workshop.chart import MOST_COLORS, OTHERS, WRONG, _results, _RoomPoint, choices, guesses
from tests.charts.conftest import _checked_once


def bars(chart):
    (data,) = chart.to_dict()["datasets"].values()
    return {row["answer"]: (row["count"], row["right"]) for row in data}


@pytest.mark.parametrize(
    ("given", "truth", "expected"),
    [
        ([1e-3, 3e-3, 4e-3, 0.03], None, {"1 ms – 2 ms": 1, "2 ms – 5 ms": 2, "20 ms – 50 ms": 1}),
        ([1.1e-3, 1.3e-3], None, {"1 ms – 1.2 ms": 1, "1.2 ms – 1.5 ms": 1}),
        ([5e-3, 9.9e-3, 1e-2], None, {"5 ms – 6 ms": 1, "8 ms – 12 ms": 2}),
    ],
)
def test_guesses_fall_into_bins_that_one_reads_out(given, truth, expected):
    found = {answer: count for answer, (count, _) in bars(guesses(given, format_seconds, truth)).items() if count}

    assert found == expected


def test_a_guess_of_nothing_has_a_bin_too():
    counts = [count for count, _ in bars(guesses([0, 5, 50], format_seconds)).values()]

    assert (counts[0], counts[-1], sum(counts)) == (2, 1, 3)


def test_what_was_measured_marks_its_bin_once_it_is_revealed():
    hidden, revealed = guesses([1e-3, 3e-3], format_seconds), guesses([1e-3, 3e-3], format_seconds, 4e-3)

    assert not any(right for _, right in bars(hidden).values())
    assert [answer for answer, (_, right) in bars(revealed).items() if right] == ["3 ms – 5 ms"]
    assert "measured: 4.00 ms" in revealed.to_dict()["description"]


def test_choices_stay_in_their_order():
    assert list(bars(choices({"bf16": 2, "fp32": 0}, {"fp32"}))) == ["bf16", "fp32"]


def test_results_have_the_medians_of_the_room_and_leave_out_what_cannot_be_true():
    points = [
        _RoomPoint(64, 1e9, "Ada", "a"),
        _RoomPoint(64, 3e9, "Bob", "b"),
        _RoomPoint(64, 9e12, "Eve", "e", is_wrong=True),
    ]
    made = _results(points, {"peak": 1e10}, unit="FLOP/s", title="Compute rate", by_size=True).to_dict()
    rows = [row for data in made["datasets"].values() for row in data]

    assert [row["value"] for row in rows if row.keys() == {"size", "value"}] == [2e9]
    assert {row["who"] for row in rows if "who" in row} == {"Ada", "Bob"}
    (cross,) = [row for row in rows if "label" in row and WRONG in row["label"]]
    assert cross["value"] == 4e10  # drawn at the upper edge, four times the peak
    assert "1 results above the limit" in made["description"]


def test_more_people_than_colours_share_one():
    points = [_RoomPoint(64, 1e9 + n, f"P{n}", "x") for n in range(MOST_COLORS + 5)]
    made = _results(points, {}, unit="FLOP/s", title="Compute rate", by_size=True).to_dict()
    people = {row["who"] for data in made["datasets"].values() for row in data if "who" in row}

    assert len(people) == MOST_COLORS
    assert OTHERS in people
