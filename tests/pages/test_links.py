"""What links carry from one page view to the next, on every page."""

import pytest

from gpuexplore.core.model import Experiment, Shape
from tests.pages.conftest import OWNER, texts


def query_of(app):
    """Return the URL's parameters: AppTest lists those that were written."""
    return {name: value if isinstance(value, str) else value[0] for name, value in app.query_params.items()}


def held(app):
    """Return the settings of Benchmark that differ from a first visit's."""
    return {name: app.session_state[f"settings.{name}"] for name in ("operation", "sizes", "dtypes", "implementations")}


def test_an_operation_alone_is_in_the_link(page):
    app = page("benchmark")
    app.selectbox(key="settings.operation").set_value("softmax").run()

    assert set(query_of(app)) <= {"op", "dtype"}  # the formats of a first visit are this device's
    assert query_of(app)["op"] == "softmax"
    assert held(page("benchmark", **query_of(app))) == held(app)


def test_the_link_of_changed_sizes_restores_the_operation_too(page):
    app = page("benchmark", op="softmax")
    app.text_input(key="settings.sizes").set_value("100,200").run()

    assert query_of(app) == {"op": "softmax", "size": "100,200"}
    assert held(page("benchmark", **query_of(app))) == held(app)


def test_settings_changed_above_a_run_are_restored_instead_of_those_of_the_run(page, store):
    softmax = Experiment("softmax", (Shape.of(m=64, n=64),), ("fp64",), ("numpy",), ("cpu",))
    app = page("benchmark", run=store.submit(softmax, OWNER))
    (edit,) = [button for button in app.button if button.label == "Edit"]
    app = edit.click().run()
    app.selectbox(key="settings.operation").set_value("matmul").run()

    assert query_of(app)["op"] == "matmul"
    assert held(page("benchmark", **query_of(app))) == held(app)


def test_settings_set_back_to_the_defaults_leave_no_trace_in_the_link(page):
    app = page("benchmark", size="32")
    app.text_input(key="settings.sizes").set_value(page("benchmark").session_state["settings.sizes"]).run()

    assert held(app) == held(page("benchmark"))
    assert query_of(app) == {}


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
    assert query_of(app) == query


def test_a_changed_setting_replaces_the_long_name_in_the_link(page):
    app = page("what-if", dtypes="fp64", gpus="")
    next(choice for choice in app.multiselect if choice.label == "Dtypes").set_value(["fp32"]).run()

    assert query_of(app) == {"dtype": "fp32", "gpus": ""}


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
