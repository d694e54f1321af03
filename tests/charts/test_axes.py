import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.charts.axes import log_ticks, powers_of_two, si_label
from gpuexplore.charts.lines import _size_axis
from gpuexplore.charts.reference_lines import labelled_rule, peak_rules
from gpuexplore.operations import OPERATIONS

VALUES = st.lists(st.floats(1e-9, 1e15), min_size=1, max_size=20)


@given(VALUES)
def test_log_ticks_enclose_the_values(values):
    ticks = log_ticks(values)
    assert ticks[0] <= min(values)
    assert ticks[-1] >= max(values)
    assert len(ticks) >= 2
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1.2e-3, 1.9e-3], [1e-3, 2e-3]),
        ([1e-3], [1e-3, 2e-3]),
        ([0.9, 30], [0.5, 1, 2, 5, 10, 20, 50]),
        ([], [1, 10]),
    ],
)
def test_log_ticks_are_1_2_5(values, ticks):
    assert log_ticks(values) == pytest.approx(ticks)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_powers_of_two_hold_one_and_stay_few(values):
    ticks = powers_of_two([1.0, *values])
    assert 1.0 in ticks
    assert len(ticks) <= 11


def test_labels_carry_their_unit():
    assert si_label("FLOP/s").endswith("' $1FLOP/s')")


def test_crowded_labels_stand_at_alternate_ends():
    ends = [text.to_dict()["mark"]["align"] for _, _, text in peak_rules({"a": 4.0, "b": 3.0, "c": 2.0, "d": 0.1})]
    assert ends == ["left", "right", "left", "left"]


def test_a_label_has_a_rim_in_the_colour_of_the_background_that_lines_do_not_cross():
    (rim, text) = (one.to_dict()["mark"] for one in labelled_rule(1.0, "one")[1:])
    assert (rim["stroke"], rim["tooltip"]) == ({"expr": "background"}, None)
    assert "stroke" not in text


@pytest.mark.parametrize(
    ("name", "title"),
    [("matmul", "m = k = n"), ("attention", "s"), ("conv2d", "h = w"), ("linear", "k"), ("copy", "n")],
)
def test_size_axis_is_named_by_the_lengths_that_follow_the_size(name, title):
    assert _size_axis(pd.DataFrame({"size": [64, 128]}), OPERATIONS[name]).to_dict()["title"] == title
