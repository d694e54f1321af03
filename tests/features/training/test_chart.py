"""Losses lie over each other with the loss of guessing, phases add up to a step, and scales are steps."""

from gpuexplore.features.training.ui import _losses, _phases, _scales
from tests.charts.conftest import _checked_once
from tests.features.training.made_training import fp16, mode, report


def rows(chart, columns):
    return [row for data in chart["datasets"].values() for row in data if columns <= set(row)]


def test_every_mode_has_a_line_of_its_losses_and_guessing_a_rule():
    chart = _losses(report(mode(), fp16(losses=(0.7, None, 0.4)))).to_dict()

    drawn = rows(chart, {"mode", "step", "loss"})
    assert [(row["mode"], row["loss"]) for row in drawn[:3]] == [("fp32", 0.7), ("fp32", 0.6), ("fp32", 0.5)]
    assert drawn[4]["loss"] is None
    assert {"value": 0.693147, "label": "random guessing: ln 2 = 0.693"} in rows(chart, {"label"})
    assert chart["description"] == (
        "Losses of 3-10-2 over 3 of 3 steps: fp32 0.700 to 0.500; fp16 0.700 to 0.400; random guessing has 0.693."
    )


def test_a_long_line_is_thinned_and_keeps_its_end_and_an_empty_training_can_be_drawn():
    long = tuple(1 / (step + 1) for step in range(5000))
    drawn = rows(_losses(report(mode(losses=long), steps=5000, steps_done=5000)).to_dict(), {"mode", "loss"})

    assert 300 < len(drawn) < 500
    assert drawn[-1]["step"] == 4999

    chart = _losses(report(mode(losses=(), phases=(), step_s=None), steps_done=0)).to_dict()

    assert rows(chart, {"mode", "loss"}) == []
    assert "fp32 —" in chart["description"]


def test_phases_of_a_mode_lie_one_after_the_other():
    chart = _phases(report()).to_dict()

    assert [row["phase"] for row in rows(chart, {"phase"})[:3]] == ["forward", "backward", "optimizer"]
    assert chart["encoding"]["color"]["scale"]["domain"] == ["forward", "backward", "optimizer"]
    assert "fp16: forward 1.00 ms, backward 1.00 ms" in chart["description"]


def test_the_scale_is_drawn_to_the_last_step():
    chart = _scales(report()).to_dict()

    assert [(row["step"], row["scale"]) for row in rows(chart, {"scale"})] == [(0, 65536), (2, 32768), (2, 32768)]
    assert "fp16: 65,536 from step 0, 32,768 from step 2" in chart["description"]
