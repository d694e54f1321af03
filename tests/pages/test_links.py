"""What links carry from one page view to the next, on every page."""

import pytest
import streamlit as st

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.ui.link import PARAMETERS
from gpuexplore.ui.navigation import file_of, pages
from tests.pages.conftest import OWNER, link_of, texts


def held(app):
    """Return the settings of Benchmark that differ from a first visit's."""
    return {name: app.session_state[f"settings.{name}"] for name in ("operation", "sizes", "dtypes", "implementations")}


def test_an_operation_alone_is_in_the_link(page):
    app = page("benchmark")
    app.selectbox(key="settings.operation").set_value("softmax").run()

    assert set(link_of(app)) <= {"op", "dtype"}  # the formats of a first visit are this device's
    assert link_of(app)["op"] == "softmax"
    assert held(page("benchmark", **link_of(app))) == held(app)


def test_the_link_of_changed_sizes_restores_the_operation_too(page):
    app = page("benchmark", op="softmax")
    app.text_input(key="settings.sizes").set_value("100,200").run()

    assert link_of(app) == {"op": "softmax", "size": "100,200"}
    assert held(page("benchmark", **link_of(app))) == held(app)


def test_settings_changed_above_a_run_are_restored_instead_of_those_of_the_run(page, store):
    softmax = Experiment("softmax", (Shape.of(m=64, n=64),), ("fp64",), ("numpy",), ("cpu",))
    app = page("benchmark", run=store.submit(softmax, OWNER))
    (edit,) = [button for button in app.button if button.label == "Edit"]
    app = edit.click().run()
    app.selectbox(key="settings.operation").set_value("matmul").run()

    assert link_of(app)["op"] == "matmul"
    assert held(page("benchmark", **link_of(app))) == held(app)


def test_settings_set_back_to_the_defaults_leave_no_trace_in_the_link(page):
    app = page("benchmark", size="32")
    app.text_input(key="settings.sizes").set_value(page("benchmark").session_state["settings.sizes"]).run()

    assert held(app) == held(page("benchmark"))
    assert link_of(app) == {}


@pytest.mark.parametrize(
    ("name", "query", "label", "value"),
    [
        ("benchmark", {"operation": "softmax", "sizes": "100,200"}, "Sizes", "100,200"),
        ("benchmark", {"dtypes": "fp64"}, "Dtypes", ["fp64"]),
        ("benchmark", {"shapes": "notebook-1000"}, "Preset shapes", "notebook-1000"),
        ("what-if", {"dtypes": "fp64"}, "Dtypes", ["fp64"]),
        ("what-if", {"operation": "softmax", "devices": "t4"}, "Device", "t4"),
        ("kernels", {"implementations": "numba-cuda-naive", "shapes": "64"}, "Shape", "64"),
        ("roofline", {"devices": "t4", "dtypes": "fp16"}, "Dtype", "fp16"),
    ],
)
def test_long_names_are_read_on_every_page_and_the_link_stays_as_it_is(page, name, query, label, value):
    app = page(name, **query)
    widgets = (*app.text_input, *app.selectbox, *app.multiselect, *app.button_group)

    assert next(widget for widget in widgets if widget.label == label).value == value
    assert not app.warning
    assert link_of(app) == query


def test_a_changed_setting_replaces_the_long_name_in_the_link(page):
    app = page("what-if", dtypes="fp64", gpus="")
    next(choice for choice in app.multiselect if choice.label == "Dtypes").set_value(["fp32"]).run()

    assert link_of(app) == {"dtype": "fp32", "gpus": ""}


def test_a_parameter_of_another_page_is_left_alone(page):
    assert "Unknown" not in texts(page("devices", sweep="abc", size="64").warning)


def test_each_page_keeps_choices_of_its_own(page):
    kernels, what_if = page("kernels"), page("what-if")

    for shown, own, other in ((kernels, "kernels", "what-if"), (what_if, "what-if", "kernels")):
        assert f"{own}.shape" in shown.session_state
        assert f"{other}.shape" not in shown.session_state


@pytest.mark.parametrize(
    ("name", "query"),
    [
        (
            "what-if",
            {"shape": "96", "device": "t4", "dtype": "fp64,fp32", "gpus": "l4", "price": "t4:1"},
        ),
        ("what-if", {"what": "layers", "layers": "linear b=8,d=16,k=32"}),
        ("benchmark", {"op": "softmax", "shapes": "m=8,n=8", "threads": "1", "budget": "0.5", "cache": "cold"}),
        ("kernels", {"op": "matmul", "dtype": "bf16", "gpu": "t4"}),
    ],
)
def test_a_widget_that_a_browser_draws_late_shows_what_the_link_says(page, name, query):
    """Its value counts once, in the run that sets it: who has not drawn it by the next one has the default alone."""
    app = page(name, **query)

    widgets = [*app.text_input, *app.text_area, *app.selectbox, *app.multiselect]
    assert {widget.label for widget in widgets if _default(widget) != _held(widget)} == set()
    assert any(_held(widget) in query.values() for widget in widgets)


def _default(widget):
    """Return what a browser draws that was told no value."""
    default = widget.proto.default
    if widget.type == "selectbox":
        return widget.options[default]
    return [widget.options[index] for index in default] if widget.type == "multiselect" else default


def _held(widget):
    if widget.type == "multiselect":
        return [widget.format_func(value) for value in widget.value]
    return widget.format_func(widget.value) if widget.type == "selectbox" else widget.value or ""


BEFORE = {  # the parameters of each page of 0.2.0
    "benchmark": "op size shape dtype impl device cache data threads budget block layout align repeat run with "
    "baseline peak chart hide view slide explain",
    "transfers": "op size gpu link memory device activity",
    "training": "model widths batch steps data modes optimizer rate processes seed device activity",
    "runs": "q op device tag mine before",
    "compare": "a b",
    "what-if": "what op shape layers run at batch seq hidden heads ff device baseline dtype calls gpus times peaks "
    "price per measuring",
    "memory": "model widths layers mode batch tokens dtype optimizer mixed checkpoints accumulate kv gpu reserve",
    "roofline": "device dtype op runs recorded measuring",
    "atlas": "op dtype gpus show calls shape by price point",
    "kernels": "op impl dtype gpu cc sm block shape grid run sweep explain interpret small at warp step",
    "trace": "device",
    "lessons": "lesson step view key",
    "timing-mistakes": "mistake activity",
    "fact-check": "row measuring",
    "tensors": "expression show dtype device activity",
    "errors": "error device activity",
    "rooms": "room lead view",
    "devices": "q",
    "queue": "",
}
MOVED = {("atlas", "by"): "which-gpu", ("atlas", "price"): "which-gpu"}


@pytest.mark.parametrize(("name", "parameter"), [(name, each) for name in BEFORE for each in BEFORE[name].split()])
def test_parameter_of_an_older_link_is_read_where_it_was_or_leads_to_where_it_went(name, parameter, page, monkeypatch):
    home = MOVED.get((name, parameter))
    if home is None:
        assert parameter in PARAMETERS[name]
        return
    led = []
    monkeypatch.setattr(st, "switch_page", lambda file, query_params: led.append((file, query_params)))
    page(name, op="matmul", **{parameter: "time" if parameter == "by" else "t4:1"})

    assert [(file, set(query)) for file, query in led] == [(file_of(home), {"op", parameter})]
    assert parameter in pages()[home].parameters


@pytest.mark.parametrize(
    ("query", "kept"),
    [({"run": "abc"}, {"run"}), ({"op": "softmax", "size": "64"}, {"op", "size"}), ({"dtype": "fp32"}, {"dtype"})],
)
def test_older_link_to_the_start_page_leads_to_benchmark(page, monkeypatch, query, kept):
    led = []
    monkeypatch.setattr(st, "switch_page", lambda file, query_params: led.append((file, set(query_params))))
    page("explore", **query)

    assert led == [(file_of("benchmark"), kept)]


@pytest.mark.parametrize(
    ("query", "tab"), [({"run": "abc"}, "Ladder"), ({"sweep": "abc"}, "Launch and occupancy"), ({}, None)]
)
def test_older_link_to_a_kernel_opens_the_tab_of_its_run(page, query, tab):
    app = page("kernels", impl="numba-cuda-naive", **query)
    (view,) = [each for each in app.button_group if each.label == "View"]

    assert view.format_func(view.value) == (tab or "Interpreter")
