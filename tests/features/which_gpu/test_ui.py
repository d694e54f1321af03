"""The chart of the best GPUs for a call, by its specification."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.core.model import Shape
from gpuexplore.core.units import format_bytes, format_energy, format_money, format_seconds
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, ranked, usual_devices, which_gpu
from gpuexplore.features.which_gpu.ui import _best_words, ranking
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.charts.conftest import _checked_once


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


SQUARE = Shape.of(m=8192, k=8192, n=8192)


def choices_of(*keys, dtype="fp16", **prices):
    """Return what a large product takes on GPUs, by their keys."""
    devices = [as_device(row) for row in ACCELERATORS if row.key in keys]
    return which_gpu("matmul", SQUARE, dtype, devices=devices, known=Known(calibrate(), prices_per_hour=prices))


@pytest.fixture(scope="module")
def choices():
    return choices_of(*(device.id for device in usual_devices()))


def ranking_of(choices, by):
    """Return the rows of a chart by their GPU, from the top, and its specification."""
    spec = ranking(ranked(choices, by), by).to_dict()
    (found,) = spec["datasets"].values()
    return {row["gpu"]: row for row in found}, spec


@pytest.mark.parametrize("by", ORDERS)
def test_a_ranking_draws_the_first_15_gpus_the_best_at_the_top(choices, by):
    found, spec = ranking_of(choices, by)
    known = [choice.device.name for choice in ranked(choices, by) if ORDERS[by](choice) is not None]
    values = [row["value"] for row in found.values()]

    assert len(known) > 15
    assert list(found) == known[:15]
    assert values == sorted(values, reverse=by == "memory")
    assert [layer["encoding"]["y"]["sort"] for layer in spec["layer"]] == [known[:15]] * 4


@pytest.mark.parametrize(
    ("by", "title", "value_of", "words"),
    [
        ("time", "Time of a call", lambda choice: choice.time.value, format_seconds),
        ("energy", "Energy of a call at the power limit", lambda choice: choice.found.energy_j, format_energy),
        ("memory", "Memory", lambda choice: choice.device.memory_bytes, format_bytes),
        ("price", "US$ per million calls", lambda choice: choice.cost_of_million, format_money),
    ],
)
def test_a_ranking_tells_figures_in_their_unit_with_words_beside_them(choices, by, title, value_of, words):
    found, spec = ranking_of(choices, by)
    expected = {choice.device.name: value_of(choice) for choice in choices}

    assert {layer["encoding"]["x"]["title"] for layer in spec["layer"]} == {title}
    for name, row in found.items():
        assert row["value"] == pytest.approx(expected[name])
        assert row["said"] == words(row["value"])
    assert spec["description"].startswith(f"{title} on 15 GPUs, the best first: {next(iter(found))}, ")


@pytest.mark.parametrize("by", ["time", "energy", "price"])
def test_energy_and_price_are_as_uncertain_as_the_time(choices, by):
    found, _ = ranking_of(choices, by)
    times = {choice.device.name: choice.time for choice in choices}

    for name, row in found.items():
        assert row["low"] / row["value"] == pytest.approx(times[name].low / times[name].value)
        assert row["high"] / row["value"] == pytest.approx(times[name].high / times[name].value)
    assert any(row["low"] < row["value"] < row["high"] for row in found.values())


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["t4", "h100-sxm5-80gb"], "Least energy: **H100 SXM5 80GB**, "),
        (
            ["b200-sxm-180gb", "b300-sxm-288gb"],
            "Least energy: no significant difference between **B300 SXM \\(HGX\\)** and **B200 SXM \\(HGX\\)**, from ",
        ),
    ],
)
def test_the_least_energy_is_named_where_intervals_do_not_overlap(keys, said):
    assert said in _best_words(choices_of(*keys))


def test_memory_has_no_interval(choices):
    found, _ = ranking_of(choices, "memory")

    assert all(row["low"] == row["value"] == row["high"] for row in found.values())


@pytest.mark.parametrize(
    ("by", "dtype", "left"),
    [("time", "tf32", "L4"), ("energy", "tf32", "L4"), ("price", "fp16", "Tesla T4"), ("memory", "fp16", "Tesla T4")],
)
def test_a_gpu_without_what_it_is_ranked_by_is_left_out(by, dtype, left):
    t4, l4 = choices_of("t4", "l4", dtype=dtype)
    if by == "memory":
        l4 = replace(l4, found=replace(l4.found, device=replace(l4.device, memory_bytes=None)))

    assert list(ranking_of((t4, l4), by)[0]) == [left]


def test_predicted_figures_are_hollow_with_intervals_and_published_ones_filled_without():
    found, spec = ranking_of(choices_of("rtx-3090", "l4"), "time")
    filled, hollow = layers(spec, "point")
    published, predicted = found["GeForce RTX 3090"], found["L4"]

    assert filled["mark"]["filled"]
    assert "filled" not in hollow["mark"]
    assert (filled["transform"], hollow["transform"]) == (
        [{"filter": "!(datum.from == 'predicted')"}],
        [{"filter": "datum.from == 'predicted'"}],
    )
    assert (published["from"].split()[:2], predicted["from"]) == (["published", "by"], "predicted")
    assert published["low"] == published["value"] == published["high"]
    assert predicted["low"] < predicted["value"] < predicted["high"]
    (interval,) = layers(spec, "rule")
    assert (interval["encoding"]["x"]["field"], interval["encoding"]["x2"]["field"]) == ("low", "high")


def test_an_entered_price_ranks_a_gpu_by_what_a_million_calls_cost_at_it():
    found, _ = ranking_of(choices_of("t4", "l4", t4=3.6, l4=7.2), "price")
    times = {choice.device.name: choice.time.value for choice in choices_of("t4", "l4")}

    assert {name: row["value"] for name, row in found.items()} == pytest.approx(
        {"Tesla T4": 1e3 * times["Tesla T4"], "L4": 2e3 * times["L4"]}
    )
