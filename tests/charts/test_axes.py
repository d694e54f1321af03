import re

import pandas as pd
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.charts.lines import _axis_of_names, _size_axis
from gpuexplore.charts.points import labelled_rule, peak_rules
from gpuexplore.charts.series import log_ticks, powers_of_two, si_label
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


@pytest.mark.parametrize(
    ("ticks", "words"),
    [
        ([1e-4, 1e-3, 1e-2, 1e-1], ["0.1 ms", "1 ms", "10 ms", "100 ms"]),
        ([1e-2, 1e-1, 1.0], ["10 ms", "100 ms", "1 s"]),
        ([1e-6, 1e-3, 1.0, 1e2], ["1 µs", "1 ms", "1 s", "100 s"]),
        ([1e-3, 1.0, 5e3], ["1 ms", "1 s", "5,000 s"]),
    ],
)
def test_an_axis_has_one_unit_where_every_tick_reads_well_in_it(ticks, words):
    spec = {
        "data": {"values": [{"value": tick} for tick in ticks]},
        "transform": [{"calculate": si_label("s", ticks), "as": "words"}],
        "mark": "text",
        "encoding": {"text": {"field": "words"}},
    }
    assert re.findall(">([^<]+)</text>", vl_convert.vegalite_to_svg(spec)) == words


def places_of(rules):
    """Return where the label of each rule lies, by what it says: align, and above or below the line."""
    texts = [text.to_dict() for *_, text in rules]
    return {
        text["datasets"][text["data"]["name"]][0]["label"]
        if "name" in text["data"]
        else text["data"]["values"][0]["label"]: (text["mark"]["align"], "below" if text["mark"]["dy"] > 0 else "above")
        for text in texts
    }


def test_labels_of_peaks_near_each_other_do_not_touch():
    assert places_of(peak_rules({"a": 4.0, "b": 3.6}, (0.1, 10.0))) == {"a": ("left", "above"), "b": ("left", "below")}


def test_the_label_of_a_peak_covers_no_line():
    at_left_above = [(0.0, 0.52), (0.5, 0.52), (0.7, 0.52), (1.0, 0.52)]
    through = [(step / 10, 0.5 + 0.04 * (-1) ** step) for step in range(11)]

    assert places_of(peak_rules({"peak": 1.0}, (0.1, 10.0), at_left_above)) == {"peak": ("left", "below")}
    assert list(places_of(peak_rules({"peak": 1.0}, (0.1, 10.0), through))) == ["⋯ peak"]  # above the chart


def test_the_label_of_a_peak_at_the_top_stays_within_the_chart():
    assert places_of(peak_rules({"peak": 10.0}, (0.1, 10.0))) == {"peak": ("left", "below")}


def test_names_below_a_chart_are_slanted_where_they_would_print_over_each_other():
    axis = _axis_of_names(["numba-cpu-reordered"] * 6).to_dict()
    assert axis["labelAngle"] == {"expr": f"width > {6 * 137} ? 0 : -40"}


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
