"""What stands above a run, and the way back to one's runs."""

from dataclasses import replace

import pytest
import streamlit as st
from streamlit.runtime.context import ContextProxy

from gpuexplore.core.model import Experiment, Flag, Shape
from gpuexplore.store import Description
from tests.analysis.made import ok
from tests.pages.conftest import OWNER, button, texts


@pytest.fixture
def recorded(store):
    """Return a function that stores a finished run of results, and returns its id."""

    def record(*flags, owner=OWNER, **further):
        result = ok(1e-3, flags=flags)
        asked = Experiment("matmul", (result.case.shape,), ("fp32",), ("torch",))
        return store.record(asked, owner, results=[result], **further)

    return record


def test_the_title_is_the_runs_and_so_is_that_of_the_tab(page, recorded):
    app = page("benchmark", run=recorded())

    assert [title.value for title in app.title] == ["matmul 100, fp32"]
    assert "a made-up processor · " in texts(app.caption)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), ":green-badge[:material/verified: clean]"),
        ((Flag("drifted", "slow rounds", 0.4),), ":orange-badge[:material/graphic_eq: noisy]"),
        ((Flag("contended", "others", 0.4),), ":gray-badge[:material/group_work: contended]"),
    ],
)
def test_a_badge_says_how_far_its_times_can_be_trusted(page, recorded, flags, said):
    assert said in texts(page("benchmark", run=recorded(*flags)).markdown)


def test_what_comes_from_elsewhere_says_so(page, recorded):
    app = page("benchmark", run=recorded(origin="lab.json"))

    assert ":blue-badge[:material/upload_file: imported]" in texts(app.markdown)


def test_its_owner_names_it_and_everybody_sees_that_at_the_next_look(page, recorded, store):
    run_id = recorded()
    app = page("benchmark", run=run_id)
    app.text_input(key=f"head.title.{run_id}").set_value("Before the fan").run()
    app.text_input(key=f"head.tags.{run_id}").set_value("Lab, monday").run()
    app.text_area(key=f"head.note.{run_id}").set_value("cleaned *today*").run()
    button(app, "Save").click().run()
    seen = page("benchmark", owner="somebody else", run=run_id)

    assert [title.value for title in seen.title] == ["Before the fan"]
    assert store.listed_run(run_id).tags == ("lab", "monday")
    assert r"cleaned \*today\*" in [each.value for each in seen.markdown]
    assert not [each for each in seen.button if each.label == "Save"]


def test_what_cannot_be_a_title_is_named_and_nothing_is_lost(page, recorded, store):
    run_id = recorded()
    app = page("benchmark", run=run_id)
    app.text_input(key=f"head.tags.{run_id}").set_value(",".join(map(str, range(11)))).run()
    button(app, "Save").click().run()

    assert "tags '11 of them': expected at most 10" in texts(app.toast).replace("\\", "")
    assert store.listed_run(run_id).tags == ()


def test_the_form_is_one_line_above_a_run_until_it_is_edited(page, recorded):
    app = page("benchmark", run=recorded())

    assert "Matrix multiplication, size 100, fp32, torch, cpu" in texts(app.markdown)
    assert not [box for box in app.selectbox if box.key == "settings.operation"]
    button(app, "Edit").click().run()
    assert [box.value for box in app.selectbox if box.key == "settings.operation"] == ["matmul"]
    assert app.text_input(key="settings.sizes").value == "100"


@pytest.mark.parametrize(
    ("sizes", "folded"), [("64 128", True), ("64;128", True), ("64:128:x2", True), ("128,64", True), ("64,256", False)]
)
def test_form_is_one_line_above_its_run_however_its_sizes_were_typed(page, store, sizes, folded):
    shapes = (Shape.of(m=64, k=64, n=64), Shape.of(m=128, k=128, n=128))
    run_id = store.submit(Experiment("matmul", shapes, ("fp32",), ("numpy",), ("cpu",)), OWNER)
    app = page("benchmark", run=run_id, size=sizes, dtype="fp32", impl="numpy")

    assert [box.key for box in app.selectbox if box.key == "settings.operation"] == (
        [] if folded else ["settings.operation"]
    )


def test_run_again_measures_the_same(page, recorded, store):
    run_id = recorded()
    app = page("benchmark", run=run_id)
    button(app, "Run again").click().run()

    (again, before) = store.history(OWNER)
    assert before.id == run_id
    assert again.experiment == before.experiment
    assert app.query_params["run"] in (again.id, [again.id])


def test_compare_begins_with_the_last_earlier_run_of_the_same_request(page, recorded, store, experiment, monkeypatch):
    switched = []
    monkeypatch.setattr(st, "switch_page", lambda file, query_params: switched.append(query_params))
    recorded()
    earlier, other, newest = recorded(), store.submit(replace(experiment, dtypes=("fp64",)), OWNER), recorded()
    button(page("benchmark", run=newest), "Compare with …").click().run()
    first = recorded(owner="somebody else")
    button(page("benchmark", run=first), "Compare with …").click().run()

    assert other not in (earlier, newest)
    assert switched == [{"a": earlier, "b": newest}, {"a": newest, "b": first}]


def test_the_chart_that_the_link_names_is_drawn_and_the_choice_is_written(page, recorded):
    app = page("benchmark", run=recorded(), chart="rate")

    assert "Compute rate" in app.get("vega_lite_chart")[0].proto.spec
    app.button_group(key="benchmark.chart").select("share").run()
    assert "MFU" in app.get("vega_lite_chart")[0].proto.spec
    assert app.query_params["chart"] in ("share", ["share"])
    bad = page("benchmark", run=recorded(), chart="pie")
    assert "chart 'pie': expected time, speedup, share, rate" in texts(bad.error)


@pytest.mark.parametrize("url", ["https://lab.example", "https://lab.example/gpus", "https://lab.example/gpus/"])
def test_the_link_to_copy_holds_the_run_and_what_is_shown_behind_a_proxy_too(page, recorded, monkeypatch, url):
    monkeypatch.setattr(ContextProxy, "url", url)  # as of Streamlit, without parameters
    run_id = recorded()
    app = page("benchmark", run=run_id, chart="rate", implementations="torch", stranger="1")
    copied = [each.value for each in app.code if each.value.startswith("https")]

    assert len(copied) == 1
    assert copied[0].partition("?")[0] == f"{url.removesuffix('/')}/"
    assert {f"run={run_id}", "chart=rate", "impl=torch"} <= set(copied[0].partition("?")[2].split("&"))
    assert "stranger" not in copied[0]


@pytest.mark.parametrize(
    ("name", "choice"),
    [("what-if", {"what": "run"}), ("kernels", {"op": "matmul", "dtype": "fp32", "impl": "numba-cpu"})],
)
def test_a_run_on_a_page_of_something_else_has_its_head_in_a_line(page, store, experiment, results, name, choice):
    run_id = store.record(experiment, OWNER, results=results)
    store.describe(run_id, OWNER, Description(title="*Before* the fan"))
    app = page(name, run=run_id, **choice)

    assert not app.exception
    assert "***Before* the fan**" in texts(app.markdown)
    assert {"Open", "Compare with …"} <= {each.label for each in app.button}
    assert "a made-up processor · " in texts(app.caption)
