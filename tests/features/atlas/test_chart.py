"""The atlas as data: filled points over dashed lines with bands, by what Vega-Lite is told."""

from dataclasses import replace

import altair as alt
import pytest

from gpuexplore.analysis.prediction import Conditions, calibrate, predict_each
from gpuexplore.core.model import Shape
from gpuexplore.features.atlas.analysis import points
from gpuexplore.features.atlas.analysis.answers import case_of, line, shapes_between
from gpuexplore.features.atlas.chart import (
    PICKED,
    PREDICTED,
    SHOWN,
    AtlasSeries,
    atlas,
    point_id,
    source_label,
)
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
    return layer["data"]["values"]


@pytest.mark.parametrize("show", SHOWN)
def test_points_are_filled_and_predictions_dashed_with_a_band(show, found, series):
    spec = atlas("linear", series, found, show)
    (point,), (band,), (dashed,) = (layers(spec, kind) for kind in ("point", "area", "line"))

    assert point["mark"]["filled"]
    assert dashed["mark"]["strokeDash"]
    assert point["encoding"]["shape"]["scale"]["domain"] == ["published by AIConfigurator", PREDICTED]
    assert band["encoding"]["y2"]["field"] == "high"
    assert all(row["low"] <= row["value"] <= row["high"] for row in rows(spec, band))
    assert {row["series"] for row in rows(spec, point)} == {each.name for each in series}


def test_every_point_has_its_id_time_rate_share_and_source_in_words(found, series):
    spec = atlas("linear", series, found, "time")
    (point,) = layers(spec, "point")
    first = rows(spec, point)[0]

    assert len(rows(spec, point)) == len(found)
    assert first["id"] == point_id(found[0])
    assert first["time"].endswith("s")
    assert first["rate"].endswith("FLOP/s")
    assert first["source"] == "published by AIConfigurator"
    assert first["licence"] == "Apache-2.0"
    assert {each["field"] for each in point["encoding"]["tooltip"]} >= {"gpu", "case", "source", "licence", "timed"}


def test_a_click_selects_the_id_of_a_point_and_those_without_a_share_are_left_out_of_shares_alone(found, series):
    spec = atlas("linear", series, found, "rate")
    alt.LayerChart.from_dict(spec).to_dict()  # valid
    (parameter,) = spec["params"]

    assert (parameter["name"], parameter["select"]["fields"]) == (PICKED, ["id"])
    assert parameter["views"] == [layer["name"] for layer in layers(spec, "point")]

    spec = atlas("linear", series, found, "share")
    (point,) = layers(spec, "point")

    assert len(rows(spec, point)) == sum(each.share is not None for each in found) < len(found)


def test_the_shape_in_question_is_a_vertical_rule(found, series):
    spec = atlas("linear", series, found, "time", at=10**9)
    (rule,) = layers(spec, "rule")

    assert rows(spec, rule) == [{"work": 10**9}]
    assert not layers(atlas("linear", series, found, "time"), "rule")


def test_operations_that_are_no_products_are_drawn_against_bytes():
    found = points("softmax", ["t4"], ["fp32"])
    spec = atlas("softmax", [AtlasSeries("Tesla T4", "t4", "fp32")], found, "rate")
    (point,) = layers(spec, "point")

    assert point["encoding"]["x"]["title"] == "Bytes that a call moves at least"
    assert point["encoding"]["y"]["title"] == "Memory rate"


@pytest.mark.parametrize("show", SHOWN)
def test_without_points_or_lines_nothing_breaks(show, series):
    assert atlas("linear", (), (), show)["description"].startswith("Linear layer: ")
    assert "predicted only" in atlas("linear", series, (), show)["description"]


def test_the_alternative_text_tells_gpus_their_best_rate_and_sources(found, series):
    said = atlas("linear", series, found, "time")["description"]

    assert "H100 SXM5 80GB: 62 points, at most " in said
    assert "Measured points: published by AIConfigurator." in said
    assert "Dashed lines with bands are predictions." in said


def test_points_have_ids_of_their_own_and_recorded_ones_are_called_so():
    every = points()

    assert len({point_id(point) for point in every}) == len(every)
    assert point_id(every[0]) != point_id(replace(every[0], time_s=2 * every[0].time_s))
    assert {source_label(point) for point in every if point.run_id} == {"recorded by gpuexplore"}
