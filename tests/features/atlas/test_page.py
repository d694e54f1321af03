"""The Atlas page in each of its states."""

from urllib.parse import parse_qsl, urlsplit

import pytest

from gpuexplore.charts.quick_altair import quick_altair
from gpuexplore.features.atlas.analysis import points, usual_calls
from gpuexplore.features.atlas.chart import PICKED, atlas, point_id
from gpuexplore.features.atlas.ui.picked import (
    AtlasChoice,
    _points_by_id,
    _usual_gpus,
    _ways_of,
    facts_of,
    href_of,
    usual_dtype,
    usual_shape,
)
from gpuexplore.features.atlas.ui.view import FIRST, KEY, _followed
from gpuexplore.operations import OPERATIONS
from gpuexplore.ui import session
from gpuexplore.ui.link import PARAMETERS
from gpuexplore.ui.navigation import pages
from tests.analysis.made import device
from tests.pages.conftest import compiler, home, page, spec, texts


def chosen(app):
    return {one.label: one.value for one in (*app.selectbox, *app.multiselect, *app.text_input, *app.button_group)}


def recorded():
    return next(point for point in points() if point.run_id)


def test_the_first_look_shows_measured_points_over_predictions_and_says_by_whom(page):
    app = page("atlas")

    assert not app.exception
    assert not app.error
    assert f"{len(points()):,} measurements of" in texts(app.caption)
    assert "published by AIConfigurator" in spec(app)["description"]
    assert "#### Linear layer, 256 × 12,288 × 3,584: predicted fastest on B300 SXM (HGX), " in texts(app.markdown)
    assert "Published by AIConfigurator, not measured by gpuexplore." in texts(app.caption)
    assert "Dashed: predicted; calls are replayed in a CUDA graph" in texts(app.caption)


def test_a_link_restores_every_choice(page):
    query = {"op": "softmax", "dtype": "fp32", "gpus": "t4,mi100", "show": "rate", "calls": "queued"}
    app = page("atlas", **query, shape="m=1024,n=1024")

    assert not app.error
    assert chosen(app) == {
        "Operation": "softmax",
        "Dtypes": ["fp32"],
        "GPUs": ["t4", "mi100"],
        "Show": "rate",
        "Predicted calls": "queued",
        "Shape": "m=1024,n=1024",
    }
    assert "Tesla T4" in spec(app)["description"]


def test_an_operation_that_nobody_measured_is_predicted_and_that_is_said(page):
    app = page("atlas", op="matvec")

    assert "was not measured on these GPUs: only predictions are drawn" in texts(app.info)
    assert "Measured operations: Linear layer, Matrix multiplication" in texts(app.info)
    assert "predicted only" in spec(app)["description"]
    assert not app.expander


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_has_its_atlas(operation):
    dtype = usual_dtype(operation)
    gpus = _usual_gpus(operation, (dtype,))
    found = points(operation, gpus, [dtype])
    shown = tuple((dtype, gpu) for gpu in gpus)
    choice = AtlasChoice(operation, shown, "share", usual_calls(found), usual_shape(operation, found))
    facts = facts_of(choice)
    drawn = atlas(operation, facts.series, facts.points, "share", at=facts.at)

    assert drawn["description"].startswith(OPERATIONS[operation].title)
    assert any(series.line for series in facts.series)


def test_dtypes_that_were_measured_elsewhere_are_named(page):
    app = page("atlas", op="linear", dtype="fp64", gpus="h100-sxm5-80gb")

    assert "Linear layer in fp64 was not measured on these GPUs" in texts(app.info)
    assert "bf16 on 7 GPUs" in texts(app.info)


def test_bad_values_of_the_url_are_named_with_the_accepted_ones(page):
    app = page("atlas", op="divide", dtype="fp9", gpus="abacus", show="colour", calls="twice", shape="12 apples")
    told = texts(app.error)

    assert not app.exception
    assert "op 'divide': expected linear, matmul" in told
    assert "dtype 'fp9': expected" in told
    assert "gpus 'abacus': expected" in told
    assert "show 'colour': expected time, rate, share" in told
    assert "calls 'twice': expected graph, queued, single" in told
    assert "shape of linear '12 apples'" in told


def test_more_series_than_colours_are_refused_with_the_number(page):
    app = page("atlas", dtype="bf16,fp16,fp8", gpus="b200-sxm-180gb,h100-sxm5-80gb,l40s")

    assert "'9 of them': expected at most 7 combinations of GPU and dtype" in texts(app.error)
    assert spec(app)["description"].count(" · ") == 7  # several dtypes are series of their own
    assert "H100 SXM5 80GB · bf16: " in spec(app)["description"]


def test_a_point_of_the_link_is_explained_with_its_source_and_the_ways_on(page):
    point = next(point for point in points("linear", ["h100-sxm5-80gb"], ["bf16"]) if point.share)
    app = page("atlas", point=point_id(point))
    links = {link.proto.label: link.proto.url for link in app.get("link_button")}

    assert {metric.label for metric in app.metric} == {"Measured time", "Rate", "Of the peak", "Predicted time"}
    assert "Published by **AIConfigurator**, not measured by gpuexplore. Licence: Apache-2.0." in texts(app.markdown)
    assert "calls replayed in a CUDA graph" in texts(app.markdown)
    assert links["Open the source"] == point.url
    assert dict(parse_qsl(urlsplit(links["Dtype what-if"]).query)) == {
        "op": "linear",
        "device": "h100-sxm5-80gb",
        "shape": str(point.shape),
        "baseline": "bf16",
    }
    assert links["Roofline"].startswith("./roofline?")
    assert "Compare with" not in links


def test_a_recorded_point_opens_its_run_and_is_compared_with_others(page):
    point = recorded()
    app = page("atlas", op=point.operation, point=point_id(point))
    links = {link.proto.label: link.proto.url for link in app.get("link_button")}

    assert "Recorded by gpuexplore" in texts(app.markdown)
    assert links["Open the source"] == f"./benchmark?run={point.run_id}"
    assert links["Compare with"] == f"./compare?a={point.run_id}"


def test_a_point_is_closed_and_its_shape_is_used_at_a_click(page):
    point = points("linear", ["h100-sxm5-80gb"], ["bf16"])[3]
    app = page("atlas", point=point_id(point))
    app.button(key="atlas.use").click().run()

    assert chosen(app)["Shape"] == str(point.shape)
    app.button(key="atlas.close").click().run()
    assert "point" not in app.query_params
    assert not app.metric


def test_every_source_of_a_point_opens():
    for point in points():
        opened = urlsplit(href_of(point))
        if point.origin == "recorded":
            assert href_of(point) == f"./benchmark?run={point.run_id}"
        else:
            assert (opened.scheme, bool(opened.netloc)) == ("https", True), point


def test_every_way_on_is_a_page_with_parameters_that_it_reads():
    for point in (*points("linear")[:20], recorded()):
        for way in _ways_of(point).values():
            found = urlsplit(way)
            assert set(dict(parse_qsl(found.query))) <= set(PARAMETERS[found.path.removeprefix("./")])


def test_every_point_is_found_by_its_id():
    assert list(_points_by_id().values()) == list(points())


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ({"selection": {PICKED: [{"id": "abc"}]}}, "abc"),
        ({"selection": {PICKED: [{}]}}, None),
        ({"selection": {PICKED: []}}, None),
        ({"selection": {}}, None),
        ({}, None),
    ],
)
def test_only_a_click_on_a_point_shows_one(event, found):
    assert _followed(event) == found


def test_the_point_of_the_link_is_selected_in_the_chart_as_it_was_drawn_first(page):
    app = page("atlas", point="abc123")
    (parameter,) = spec(app)["params"]

    assert "atlas has no point 'abc123'" in texts(app.warning)
    assert parameter["value"] == [{"id": "abc123"}]
    assert app.session_state[FIRST] == {f"{KEY}.linear.time": "abc123"}


MATMUL = {"op": "matmul", "dtype": "fp16", "shape": "8192"}


@pytest.mark.parametrize(
    ("query", "is_led"),
    [
        ({"by": "price"}, True),
        ({"price": "t4:0.01"}, True),
        ({**MATMUL, "by": "energy"}, True),
        ({}, False),
        ({**MATMUL, "calls": "single"}, False),
    ],
)
def test_a_link_of_when_the_ranking_stood_here_alone_leads_to_which_gpu(page, query, is_led, monkeypatch):
    led = []
    monkeypatch.setattr("streamlit.switch_page", lambda file, query_params: led.append((file, query_params)))

    page("atlas", **query)

    assert led == ([(pages()["which-gpu"].file, query)] if is_led else [])


def test_predictions_say_what_they_rest_on_and_points_are_listed_on_demand(page):
    app = page("atlas", gpus="h100-sxm5-80gb")

    assert "- **H100 SXM5 80GB**, bf16: " in texts(app.markdown)
    assert "based on" in texts(app.markdown)
    assert [each.label for each in app.expander] == ["Measured: 62 points in a table, each with its source"]
    assert len(app.dataframe) == 0
    app.session_state["atlas.table"] = True
    (table,) = app.run().dataframe
    assert len(table.value) == 62
