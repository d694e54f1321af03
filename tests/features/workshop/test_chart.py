"""What a room guessed and measured, as a chart."""

import pytest

from gpuexplore.core.units import format_seconds
from gpuexplore.features.workshop.chart import MOST_COLORS, OTHERS, WRONG, _results, _RoomPoint, choices, guesses
from tests.charts.conftest import _checked_once


def bars(chart):
    (data,) = chart.to_dict()["datasets"].values()
    return {row["answer"]: (row["count"], row["right"]) for row in data}


def dots(chart):
    return [row for data in chart.to_dict()["datasets"].values() for row in data if "row" in row]


def test_guesses_are_dots_that_lie_on_each_other_where_they_are_close():
    found = dots(guesses([1e-3, 1.01e-3, 1e-3, 0.03], format_seconds))

    assert [dot["row"] for dot in found] == [0.5, 1.5, 2.5, 0.5]
    assert [dot["words"] for dot in found] == ["1.00 ms", "1.01 ms", "1.00 ms", "30.0 ms"]


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ([1e-3, 0.03], ["1 ms", "2 ms", "5 ms", "10 ms", "20 ms"]),
        ([1.1e-3, 1.3e-3], ["1 ms", "1.2 ms", "1.5 ms"]),
        ([5e-3, 1e-2], ["4 ms", "5 ms", "6 ms", "8 ms", "10 ms", "12 ms"]),
    ],
)
def test_axis_of_guesses_has_round_numbers_that_are_read_out(given, labels):
    axis = guesses(given, format_seconds).to_dict()["layer"][0]["encoding"]["x"]["axis"]

    assert [label for label in labels if f"'{label}'" not in axis["labelExpr"]] == []
    assert len(axis["values"]) == len(labels)


def test_a_guess_of_nothing_is_drawn_at_the_edge():
    (nothing, *_) = dots(guesses([0, 5, 50], format_seconds))

    assert (nothing["guess"], nothing["words"]) == (5, format_seconds(0))


def test_what_was_measured_is_a_line_and_the_nearest_guess_stands_out_once_it_is_revealed():
    hidden, revealed = guesses([1e-3, 3e-3], format_seconds), guesses([1e-3, 3e-3], format_seconds, 4e-3)

    assert [dot["near"] for dot in dots(hidden)] == [False, False]
    assert [dot["near"] for dot in dots(revealed)] == [False, True]
    assert len(hidden.to_dict()["layer"]) == 1
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
