"""Wrong and right stand on one axis, with their intervals and in words."""

import pytest

from gpuexplore.features.mistakes.catalog import WayReading
from gpuexplore.features.mistakes.ui import _wrong_and_right
from tests.charts.conftest import _checked_once
from tests.features.mistakes.catalog.made import observation


def drawn(**about):
    return _wrong_and_right(observation(**about)).to_dict()


def rows(chart):
    (data,) = chart["datasets"].values()
    return data


def axis(chart):
    return chart["layer"][0]["encoding"]["x"]


def test_both_values_have_their_interval_and_their_words():
    wrong, right = rows(drawn())

    assert (wrong["way"], wrong["low"], wrong["value"], wrong["high"]) == ("Wrong", 1.9e-3, 2e-3, 2.1e-3)
    assert (right["way"], right["shown"], right["interval"]) == ("Right", "1.00 ms", "0.900 ms to 1.10 ms")


def test_near_values_and_a_zero_stand_on_an_axis_from_zero_and_those_far_apart_on_a_log_axis_with_few_ticks():
    near, far = axis(drawn()), axis(drawn(wrong=WayReading(1e-6), right=WayReading(1.0)))
    zero = axis(drawn(quantity="error", wrong=WayReading(0.0), right=WayReading(3e-3)))

    assert near["scale"]["domain"][0] == zero["scale"]["domain"][0] == 0
    assert near["title"] == "Time (s)"
    assert far["scale"]["type"] == "log"
    assert far["axis"]["values"] == [10.0**power for power in range(-6, 1)]


@pytest.mark.parametrize(
    ("quantity", "label"), [("error", ".1~e"), ("share", ".3~%"), ("count", "','"), ("compute rate", "FLOP/s")]
)
def test_labels_carry_the_unit(quantity, label):
    assert label in axis(drawn(quantity=quantity))["axis"]["labelExpr"]


def test_what_is_no_number_is_told_and_has_no_point():
    wrong, _ = rows(drawn(quantity="sum", wrong=WayReading(None, text="inf"), right=WayReading(65_536)))

    assert (wrong["value"], wrong["unknown"]) == (None, "inf")


def test_the_alternative_text_tells_both_values_and_where_they_come_from():
    assert _wrong_and_right(observation()).to_dict()["description"] == (
        "Time (s) of a made-up computation, measured here: wrong 2.00 ms, 95 % interval 1.90 ms to 2.10 ms; "
        "right 1.00 ms, 95 % interval 0.900 ms to 1.10 ms."
    )
