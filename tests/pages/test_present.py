"""A run on a projector."""

import json
from dataclasses import replace

import pytest

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.ui.present import _steps_of, for_the_back_row
from tests.analysis.made import analyzed, failed, ok
from tests.pages.conftest import OWNER, button, specs, texts

SIZES = (64, 128)


def results():
    return [
        ok(size * seconds, size=size, implementation=name)
        for size in SIZES
        for name, seconds in (("numpy", 2e-5), ("torch", 1e-5))
    ]


@pytest.fixture
def run_id(store):
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in SIZES)
    return store.record(Experiment("matmul", shapes, ("fp32",), ("numpy", "torch")), OWNER, results=results())


def test_each_chart_has_a_screen():
    steps = _steps_of(analyzed(*results()))

    assert steps[0].chart is None
    assert [(step.chart, sorted(name for name, _ in step.lines)) for step in steps[1:]] == [
        ("time", ["numpy", "torch"]),
        ("speedup", ["numpy", "torch"]),
        ("share", ["numpy", "torch"]),
        ("rate", ["numpy", "torch"]),
    ]
    assert [step.chart for step in _steps_of(analyzed(failed()))] == [None]


def test_times_of_many_lines_have_a_screen_for_each_dtype_and_the_rest_one_of_the_fastest():
    many = [
        ok(1e-3, size=size, implementation=name, dtype=dtype, on=on)
        for size in SIZES
        for name in ("numpy", "torch")
        for dtype in ("fp32", "bf16")
        for on in ("cpu", "cuda:0")
    ]
    steps = _steps_of(analyzed(*many))

    assert [(step.chart, step.panel) for step in steps[1:4]] == [
        ("time", "fp32"),
        ("time", "bf16"),
        ("speedup", "fp32"),
    ]


def test_the_first_screen_has_the_headline_and_the_way_to_the_run(page, run_id):
    app = page("benchmark", run=run_id, view="present")

    assert not app.exception
    assert [title.value for title in app.title] == ["matmul 64 to 128, fp32"]
    assert "torch in fp32 is the fastest" in texts(app.markdown)
    assert "1 of 5" in texts(app.markdown)
    assert not app.dataframe
    assert button(app, "Back").disabled
    assert button(app, "Next").proto.shortcut.lower() == "right"


def test_keys_lead_through_the_charts_and_the_link_names_the_step(page, run_id):
    app = page("benchmark", run=run_id, view="present")
    button(app, "Next").click().run()

    assert [title.value for title in app.title] == ["Time per call"]
    assert len(app.get("vega_lite_chart")) == 1
    assert app.query_params["slide"] in ("2", ["2"])
    again = page("benchmark", run=run_id, view="present", slide="8")  # of an older link
    assert [title.value for title in again.title] == ["Rate"]
    assert button(again, "Next").disabled
    button(again, "End").click().run()
    assert "view" not in again.query_params
    assert "slide" not in again.query_params
    assert len(again.dataframe) == 1


@pytest.mark.parametrize("slide", ["0", "last", "-1"])
def test_a_step_that_is_not_there_is_named(page, run_id, slide):
    app = page("benchmark", run=run_id, view="present", slide=slide)

    assert not app.exception
    assert f"slide '{slide}': expected whole numbers from 1 to 5" in texts(app.error)
    assert "1 of 5" in texts(app.markdown)


def test_a_run_that_is_not_there_is_told_as_elsewhere(page):
    app = page("benchmark", run="gone", view="present")

    assert not app.exception
    assert "gone" in texts(app.warning)


def test_type_and_lines_are_large_enough_for_the_back_row():
    import gpuexplore.charts as chart

    spec = json.loads(json.dumps(chart.time(analyzed(*results())).to_dict()))
    large = for_the_back_row(spec)

    marks = {layer["mark"]["type"]: layer["mark"] for layer in large["layer"]}
    assert "height" not in large  # the page gives it that of the screen
    assert marks["text"]["fontSize"] == {"expr": "22 * windowSize()[1] / 900"}
    assert marks["line"]["strokeWidth"] == {"expr": "4 * windowSize()[1] / 900"}
    axes = [layer["encoding"]["x"]["axis"] for layer in large["layer"] if "axis" in layer["encoding"].get("x", {})]
    assert axes
    assert all(axis["labelFontSize"] == {"expr": "22 * windowSize()[1] / 900"} for axis in axes)
    assert spec["layer"][0]["encoding"]["x"]["axis"].get("labelFontSize") is None


def test_what_is_hidden_in_charts_is_in_the_link_and_the_rest_is_drawn(page, run_id):
    app = page("benchmark", run=run_id)
    app.multiselect(key="benchmark.hide").set_value(["numpy"]).run()

    assert app.query_params["hide"] in ("numpy", ["numpy"])
    again = page("benchmark", run=run_id, hide="numpy")
    assert again.multiselect(key="benchmark.hide").value == ["numpy"]
    assert specs(again) == specs(app) != specs(page("benchmark", run=run_id))
    nothing = page("benchmark", run=run_id, hide="numpy,torch")
    assert not nothing.exception
    bad = page("benchmark", run=run_id, hide="gone")
    assert "hide 'gone': expected numpy, torch, fp32" in texts(bad.error)


def test_emulated_formats_can_be_hidden(page, store):
    from gpuexplore.core.model import Flag

    emulated = [
        replace(result, case=replace(result.case, dtype="bf16"), flags=(Flag("emulated", "widened to fp32"),))
        for result in results()
    ]
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in SIZES)
    asked = Experiment("matmul", shapes, ("fp32", "bf16"), ("numpy", "torch"))
    run_id = store.record(asked, OWNER, results=[*results(), *emulated])
    app = page("benchmark", run=run_id, hide="emulated formats")

    assert not app.exception
    assert not app.error
    assert app.multiselect(key="benchmark.hide").options == ["numpy", "torch", "fp32", "bf16", "emulated formats"]
    assert specs(app) == specs(page("benchmark", run=run_id, hide="bf16"))
