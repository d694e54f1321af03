"""The atlas as data: filled points over dashed lines with bands, by what Vega-Lite is told."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction import Conditions, calibrate, predict_each
from gpuexplore.analysis.what_if.what_if import Known
from gpuexplore.core.model import Shape
from gpuexplore.core.units import format_bytes, format_energy, format_money, format_seconds
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.lines import case_of, line, shapes_between
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, ranked, usual_devices, which_gpu
from gpuexplore.features.atlas.chart import (
    PICKED,
    PREDICTED,
    SHOWN,
    AtlasSeries,
    atlas,
    point_id,
    ranking,
    source_label,
)
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.charts.conftest import _checked_once

KEYS = ("h100-sxm5-80gb", "l40s")


@pytest.fixture(scope="module")
def found():
    return points("linear", KEYS, ["bf16"])


@pytest.fixture(scope="module")
def series(found):
    calibration, devices = calibrate(), {point.spec_key: point.device for point in found}
    shapes = shapes_between("linear", found[0].shape, "bf16", (1e8, 1e12), count=5)
    return tuple(
        AtlasSeries(
            devices[key].name,
            key,
            "bf16",
            line(
                predict_each(
                    [(case_of("linear", shape, "bf16", devices[key]), devices[key]) for shape in shapes],
                    calibration,
                    Conditions("graph"),
                )
            ),
        )
        for key in KEYS
    )


def layers(spec, kind):
    return [layer for layer in spec["layer"] if layer["mark"]["type"] == kind]


def rows(spec, layer):
    return spec["datasets"][layer["data"]["name"]]


@pytest.mark.parametrize("show", SHOWN)
def test_points_are_filled_and_predictions_dashed_with_a_band(show, found, series):
    spec = atlas("linear", series, found, show).to_dict()
    (point,), (band,), (dashed,) = (layers(spec, kind) for kind in ("point", "area", "line"))

    assert point["mark"]["filled"]
    assert dashed["mark"]["strokeDash"]
    assert point["encoding"]["shape"]["scale"]["domain"] == ["published by AIConfigurator", PREDICTED]
    assert band["encoding"]["y2"]["field"] == "high"
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows(spec, band))
    assert {row["series"] for row in rows(spec, point)} == {each.name for each in series}


def test_every_point_has_its_id_time_rate_share_and_source_in_words(found, series):
    spec = atlas("linear", series, found, "time").to_dict()
    (point,) = layers(spec, "point")
    first = rows(spec, point)[0]

    assert len(rows(spec, point)) == len(found)
    assert first["id"] == point_id(found[0])
    assert first["time"].endswith("s")
    assert first["rate"].endswith("FLOP/s")
    assert first["source"] == "published by AIConfigurator"
    assert first["licence"] == "Apache-2.0"
    assert {each["field"] for each in point["encoding"]["tooltip"]} >= {"gpu", "case", "source", "licence", "timed"}


def test_a_click_selects_the_id_of_a_point(found, series):
    (parameter,) = atlas("linear", series, found, "rate").to_dict()["params"]

    assert (parameter["name"], parameter["select"]["fields"]) == (PICKED, ["id"])


def test_points_without_a_share_are_left_out_of_shares_alone(found, series):
    spec = atlas("linear", series, found, "share").to_dict()
    (point,) = layers(spec, "point")

    assert len(rows(spec, point)) == sum(each.share is not None for each in found) < len(found)


def test_the_shape_in_question_is_a_vertical_rule(found, series):
    spec = atlas("linear", series, found, "time", at=10**9).to_dict()
    (rule,) = layers(spec, "rule")

    assert rows(spec, rule) == [{"work": 10**9}]
    assert not layers(atlas("linear", series, found, "time").to_dict(), "rule")


def test_operations_that_are_no_products_are_drawn_against_bytes():
    found = points("softmax", ["t4"], ["fp32"])
    spec = atlas("softmax", [AtlasSeries("Tesla T4", "t4", "fp32")], found, "rate").to_dict()
    (point,) = layers(spec, "point")

    assert point["encoding"]["x"]["title"] == "Bytes that a call moves at least"
    assert point["encoding"]["y"]["title"] == "Memory rate"


@pytest.mark.parametrize("show", SHOWN)
def test_without_points_or_lines_nothing_breaks(show, series):
    assert atlas("linear", (), (), show).to_dict()["description"].startswith("Linear layer: ")
    assert "predicted only" in atlas("linear", series, (), show).to_dict()["description"]


def test_the_alternative_text_tells_gpus_their_best_rate_and_sources(found, series):
    said = atlas("linear", series, found, "time").to_dict()["description"]

    assert "H100 SXM5 80GB: 62 points, at most " in said
    assert "Measured points: published by AIConfigurator." in said
    assert "Dashed lines with bands are predictions." in said


def test_points_have_ids_of_their_own_and_recorded_ones_are_called_so():
    every = points()

    assert len({point_id(point) for point in every}) == len(every)
    assert point_id(every[0]) != point_id(replace(every[0], time_s=2 * every[0].time_s))
    assert {source_label(point) for point in every if point.run_id} == {"recorded by gpuexplore"}


SQUARE = Shape.of(m=8192, k=8192, n=8192)


def choices_of(*keys, dtype="fp16", **prices):
    """Return what a large product takes on GPUs, by their keys."""
    devices = [as_device(row) for row in ACCELERATORS if row.key in keys]
    return which_gpu("matmul", SQUARE, dtype, devices=devices, known=Known(calibrate(), prices_per_hour=prices))


@pytest.fixture(scope="module")
def choices():
    return choices_of(*(device.id for device in usual_devices()))


def ranking_of(choices, by):
    """Return the rows of a chart by their GPU, from the top, and what Vega-Lite is told."""
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


def test_a_ranking_of_fewer_gpus_draws_them_all():
    found, _ = ranking_of(choices_of("t4", "l4", "h100-sxm5-80gb"), "time")

    assert list(found) == ["H100 SXM5 80GB", "L4", "Tesla T4"]


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


def test_memory_has_no_interval(choices):
    found, _ = ranking_of(choices, "memory")

    assert all(row["low"] == row["value"] == row["high"] for row in found.values())


@pytest.mark.parametrize(
    ("by", "dtype", "left"),
    [("time", "tf32", ["L4"]), ("energy", "tf32", ["L4"]), ("price", "fp16", ["Tesla T4"])],
)
def test_a_gpu_without_what_it_is_ranked_by_is_left_out(by, dtype, left):
    choices = choices_of("t4", "l4", dtype=dtype)
    found, _ = ranking_of(choices, by)

    assert len(choices) == 2
    assert list(found) == left


def test_a_gpu_of_unknown_memory_is_left_out_of_memory():
    t4, l4 = choices_of("t4", "l4")
    unknown = replace(l4, found=replace(l4.found, device=replace(l4.device, memory_bytes=None)))
    found, _ = ranking_of((t4, unknown), "memory")

    assert list(found) == [t4.device.name]


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
