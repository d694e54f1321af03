import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.store import Description
from gpuexplore.ui import roles
from gpuexplore.ui.run_list import DELETED, DRAWN, TICKED
from tests.analysis.made import ok
from tests.pages.conftest import OWNER, texts
from tests.waiting import DEADLINE_S

MINE, THEIRS = "matmul 64, fp32", "softmax 64, fp32"


@pytest.fixture
def recorded(store):
    """Return a function that stores a finished run, and returns its id."""

    def record(owner=OWNER, operation="matmul", size=64):
        axes = ("m", "k", "n") if operation == "matmul" else ("m", "n")
        result = ok(1e-3, operation=operation, shape=Shape(tuple((axis, size) for axis in axes)))
        asked = Experiment(operation, (result.case.shape,), ("fp32",), ("torch",))
        return store.record(asked, owner, results=[result])

    return record


def listed(app):
    """Return the table of runs."""
    (table,) = app.dataframe
    return table.value


def edited(edits):
    """Return a page that takes edits as the table of the newest runs would; AppTest has no hand for its cells."""

    def script():
        import streamlit as st

        from gpuexplore.ui.run_list import _take_edits
        from gpuexplore.ui.session import store

        _take_edits(store().listed(), st.session_state["made"])

    app = AppTest.from_function(script, default_timeout=DEADLINE_S)
    app.session_state["made"] = edits
    return app.run()


def test_an_empty_list_offers_to_measure_something(page):
    app = page("runs")

    assert not app.exception
    assert "#### No runs yet." in texts(app.markdown)
    assert "Not measured by this server" in texts(app.caption)
    assert len(app.get("vega_lite_chart")) == 1
    assert app.button[0].label == "Measure something"
    kinds = [element.type for element in app.main]
    assert kinds.index("vega_lite_chart") < kinds.index("text_input"), "there is nothing to search yet"


def test_a_click_on_a_title_opens_its_run(page, recorded, monkeypatch):
    run_id = recorded()
    opened = []
    monkeypatch.setattr(st, "switch_page", lambda _, query_params: opened.append(query_params))
    app = page("runs")
    assert "1 run, nearest to its peak “matmul 64, fp32” at " in texts(app.markdown)
    app.session_state["runs.opened"] = run_id  # as the column does
    app.run()

    assert opened == [{"run": run_id}]


def test_runs_are_listed_with_what_they_are_and_whose(page, recorded, store):
    mine, _ = recorded(), recorded(owner="somebody else", operation="softmax")
    table = listed(page("runs"))

    assert list(table["Title"]) == ["softmax 64, fp32", "matmul 64, fp32"]
    assert list(table["Operation"]) == ["softmax", "matmul"]
    assert list(table["Owner"]) == ["other", "me"]
    assert list(table["Quality"]) == ["clean", "clean"]
    assert table["Best rate"][1].endswith("FLOP/s")
    assert store.listed_run(mine).summary is not None


def test_the_link_filters(page, recorded, store):
    mine, _ = recorded(), recorded(owner="somebody else", operation="softmax")
    store.describe(mine, OWNER, Description(tags="lab"))

    for query in ({"q": "matmul"}, {"op": "matmul"}, {"mine": "yes"}, {"tag": "lab"}, {"before": "2"}):
        assert list(listed(page("runs", **query))["Title"]) == [MINE], query
    app = page("runs", q="nothing like it")
    assert "No run matches" in texts(app.info)
    assert list(listed(page("runs", device=ok(1).environment.device.name))["Title"]) == [THEIRS, MINE]


def test_bad_values_of_a_link_are_named_and_the_list_is_shown(page, recorded):
    recorded()
    app = page("runs", op="gone", mine="perhaps", tag="gone", before="soon")
    said = texts(app.error)

    assert not app.exception
    assert "op 'gone': expected" in said
    assert "mine 'perhaps': expected yes" in said
    assert "tag 'gone': expected" in said
    assert "before 'soon': expected whole numbers from 1" in said
    assert list(listed(app)["Title"]) == [MINE]


def test_titles_and_tags_are_written_in_place_and_nobody_elses(page, recorded, store):
    other, mine = recorded(owner="somebody else"), recorded()
    page("runs")

    app = edited({0: {"Title": "Before the fan", "Tags": ["Lab"]}, 1: {"Title": "mine"}})

    assert not app.exception
    assert (store.listed_run(mine).title, store.listed_run(mine).tags) == ("Before the fan", ("lab",))
    assert store.listed_run(other).title == "matmul 64, fp32"
    assert "only its owner can change it" in texts(app.toast)
    assert "Before the fan" in list(listed(page("runs", owner="somebody else"))["Title"])


def test_what_is_cleared_gets_its_default_back(page, recorded, store):
    run_id = recorded()
    store.describe(run_id, OWNER, Description(title="x", tags="lab"))
    page("runs")

    edited({0: {"Title": None, "Tags": None}})

    assert (store.listed_run(run_id).title, store.listed_run(run_id).tags) == ("matmul 64, fp32", ())


def test_ticked_runs_of_ones_own_are_deleted_and_brought_back(page, recorded, store):
    other, first, second = recorded(owner="somebody else"), recorded(), recorded()
    app = page("runs")
    assert button(app, "Delete").disabled
    assert button(app, "Open").disabled

    app.session_state[TICKED] = {first, second}
    assert not any(listed(app.run())["Tick"]), "a table whose data change forgets its edits, and reruns the page"
    app.session_state[DRAWN] = 1
    assert list(listed(app.run())["Tick"]) == [True, True, False]
    button(app, "Delete").click().run()

    assert [run.id for run in store.listed()] == [other]
    assert "2 runs are deleted, and will be erased in 30 days" in texts(app.markdown)
    button(app, "Undo").click().run()
    assert [run.id for run in store.listed()] == [second, first, other]
    assert DELETED not in app.session_state or not app.session_state[DELETED]


def test_others_runs_are_opened_and_not_deleted_but_by_an_administrator(page, recorded, monkeypatch):
    other = recorded(owner="somebody else")
    app = page("runs")
    app.session_state[TICKED] = {other}
    app.run()

    assert button(app, "Delete").disabled
    assert not button(app, "Open").disabled
    monkeypatch.setattr(roles, "_role", lambda: roles._Role.ADMIN)
    assert not button(app.run(), "Delete").disabled


def test_older_runs_are_a_page_further(page, store, recorded, monkeypatch):
    monkeypatch.setattr("gpuexplore.ui.run_list.PER_PAGE", 2)
    for size in (8, 16, 32):
        recorded(size=size)
    app = page("runs")

    button(app, "Older").click().run()
    assert list(listed(app)["Title"]) == ["matmul 8, fp32"]
    assert app.query_params["before"] == "2"
    button(app, "Newest").click().run()
    assert list(listed(app)["Title"]) == ["matmul 32, fp32", "matmul 16, fp32"]


def button(app, label):
    """Return the button of this label."""
    (found,) = [each for each in app.button if each.label == label]
    return found
