"""The page Explore: what the browser is given at once, what a link means, and what is measured from it."""

import json
from types import SimpleNamespace
from urllib.parse import parse_qs

import pytest
import streamlit as st

from gpuexplore.core.model import Shape
from gpuexplore.features.explore import ui
from gpuexplore.features.explore.facts import FIRST_GPUS, GPUS, OFFERED, SHIPPED, dtypes_of, facts, sizes
from scripts.explore_gpus import worked_out
from tests.analysis.made import device, ok
from tests.pages.conftest import compiler, home, page, spec


def drawn(app):
    return {each["name"]: each["value"] for each in spec(app)["params"] if "bind" in each}


def test_a_first_visit_draws_a_product_on_four_gpus_and_this_machine_and_a_link_restores_every_choice(page):
    app = page("explore")
    gpus = f",cpu,{','.join(FIRST_GPUS)},"

    assert not app.exception
    assert not app.error
    assert drawn(app) == {"op": "matmul", "dtype": "bf16", "gpus": gpus, "n": "4096", "view": "time"}
    assert "on this CPU" not in spec(app)["description"]
    assert "H100" in spec(app)["description"]
    app = page("explore", op="softmax", dtype="fp16", gpus="t4,l4", n="2048", view="rate")
    assert not app.error
    assert drawn(app) == {"op": "softmax", "dtype": "fp16", "gpus": ",t4,l4,", "n": "2048", "view": "rate"}


def test_what_a_link_cannot_mean_is_named_with_what_is_accepted(page):
    bad = {"op": "matrix", "dtype": "fp4", "gpus": "t4,h9000", "n": "4097", "view": "volume"}
    accepted = {"op": "matmul", "dtype": "bf16", "gpus": "a100", "n": "8192", "view": "roofline"}
    for query in (bad, {"n": "many"}):
        app = page("explore", **query)

        said = {error.value.partition(" ")[0]: error.value for error in app.error}
        assert said.keys() == query.keys()
        for name, given in query.items():
            assert f"'{given.rpartition(',')[2]}'" in said[name]
            assert accepted[name] in said[name]
        assert len(drawn(app)) == 5


def test_a_link_to_the_start_page_of_before_leads_to_benchmark(page, monkeypatch):
    queries, led = [{"run": "abc"}, {"op": "softmax", "size": "100"}, {"impl": "numpy"}], []

    def switch(file, query_params):
        led.append((file.stem, query_params))
        st.stop()  # as a switch does

    monkeypatch.setattr("streamlit.switch_page", switch)
    for query in queries:
        page("explore", **query)

    assert led == [("benchmark", query) for query in queries]


def test_every_operation_dtype_and_device_has_a_time_at_every_size():
    found = facts((device(),), ()).values

    for operation in OFFERED:
        for dtype in dtypes_of(operation):
            for key in GPUS:
                assert all(found[operation][dtype][key]), (operation, dtype, key)
                assert len(found[operation][dtype][key]) == len(sizes(operation))


def test_what_ships_of_gpus_is_what_is_predicted_and_was_measured():
    shipped, found = json.loads(SHIPPED.read_text(encoding="utf-8")), worked_out()
    again = "run python -m scripts.explore_gpus"

    assert shipped["points"] == found["points"], again
    assert [row[:3] for row in shipped["lines"]] == [row[:3] for row in found["lines"]], again
    for (*_, before), (*about, now) in zip(shipped["lines"], found["lines"], strict=True):
        for times, others in zip(before, now, strict=True):
            assert times == pytest.approx(others, rel=1e-6), (about, again)


@pytest.mark.parametrize(
    ("state", "bandwidth", "follows"),
    [(None, None, True), ("warming", None, True), ("ready", None, False), ("warming", 1e11, False)],
)
def test_the_line_of_this_cpu_follows_once_its_peaks_are_measured(page, monkeypatch, state, bandwidth, follows):
    here = device(bandwidth=bandwidth, peaks=())
    monkeypatch.setattr("gpuexplore.ui.session.discover", lambda: (here,))
    monkeypatch.setattr(ui, "live_supervisor", lambda: SimpleNamespace(state=state) if state else None)

    app = page("explore")

    assert not app.exception
    assert any(ui.FOLLOWS in each.value for each in app.markdown) is follows
    assert ui.is_being_measured([here]) is follows


def test_nothing_follows_where_another_program_looks_after_a_supervisor_that_is_away(monkeypatch):
    monkeypatch.setattr(ui, "live_supervisor", lambda: None)
    monkeypatch.setenv("GPUEXPLORE_SUPERVISOR", "external")

    assert not ui.is_being_measured([device(bandwidth=None)])


def test_measured_points_stand_at_the_size_with_as_much_work():
    here = device()
    measured = ok(shape=Shape.of(m=100, k=200, n=50), implementation="numpy")
    found = facts((here,), (measured,)).points
    own = found[found["here"]]

    assert list(own["n"]) == [100]
    assert list(own["time"]) == [1e-3]
    assert "measured here, numpy" in set(own["source"])
    assert set(found[~found["here"]]["key"]) <= set(GPUS)
    assert found["source"].str.contains("published by|recorded by|measured here").all()


def test_a_shape_unlike_that_of_its_size_has_no_point():
    thin = ok(shape=Shape.of(m=16, k=16384, n=16))

    points = facts((device(),), (thin,)).points
    assert not points["here"].any()


def test_the_button_queues_the_largest_sizes_that_this_machine_does_soon(monkeypatch):
    started = []
    monkeypatch.setattr(ui, "start", lambda experiments, devices: started.extend(experiments))
    found = facts((device(),), ())

    ui.measure(found, {"op": "matmul", "dtype": "fp32", "n": 4096})

    (experiment,) = started
    times_s = found.times_s("matmul", "fp32", "cpu")
    asked = [shape["m"] for shape in experiment.shapes]
    assert len(asked) == ui.MAX_SIZES
    assert all(times_s[size] <= ui.MAX_SECONDS for size in asked)
    assert times_s[2 * max(asked)] > ui.MAX_SECONDS
    assert (experiment.operation, experiment.dtypes, experiment.devices) == ("matmul", ("fp32",), ("cpu",))


def test_a_forged_request_is_refused(monkeypatch):
    forged, said = ["run", [1], {}, {"op": "matmul"}, {"op": "matmul", "dtype": "fp4"}, {"op": 3, "dtype": []}], []
    monkeypatch.setattr(ui, "show_problem", said.append)
    found = facts((device(),), ())
    for asked in forged:
        ui.measure(found, asked)

    assert ["op" in str(each) for each in said] == [True] * len(forged)
