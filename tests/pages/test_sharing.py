"""What visitors share of a run, and what stays each one's own."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.core.model import Experiment, Peak, RunState, Shape
from gpuexplore.ui import session
from gpuexplore.ui.run import comparison, live_charts, state, view
from tests.analysis.made import device, ok
from tests.pages.conftest import OWNER, specs, texts

SOMEBODY = "somebody else"


@pytest.fixture
def analyses(monkeypatch):
    """Return what runs were analysed for, in the order they were."""
    made, analyze = [], comparison.analyze

    def counted(results, comparison, context, *, running):
        made.append(comparison)
        return analyze(results, comparison, context, running=running)

    monkeypatch.setattr(comparison, "analyze", counted)
    return made


def headline(app):
    return next(element.value for element in app.markdown if element.value.startswith("####"))


def test_run_is_analysed_once_for_all_who_look_at_it(page, finished, analyses):
    first = page("benchmark", run=finished)
    second = page("benchmark", owner=SOMEBODY, run=finished)

    assert len(analyses) == 1
    assert specs(first) == specs(second)
    assert headline(first) == headline(second)


def test_results_are_read_once_for_all_who_watch(page, store, claimed, results, monkeypatch):
    asked, read = [], type(store).results_after
    monkeypatch.setattr(type(store), "results_after", lambda self, *place: asked.append(place) or read(self, *place))
    store.add_result(claimed, results[0])
    page("benchmark", run=claimed.run_id)
    page("benchmark", owner=SOMEBODY, run=claimed.run_id)
    store.add_result(claimed, results[1])
    page("benchmark", run=claimed.run_id)

    assert asked == [(claimed.run_id, 0), (claimed.run_id, 1)]


def test_baseline_peak_and_explained_result_are_each_visitors_own(page, finished):
    mine = page("benchmark", run=finished, baseline="torch", peak="datasheet")
    explained = next(box for box in mine.selectbox if box.label == "Result")
    explained.select(explained.options[-1]).run()
    theirs = page("benchmark", owner=SOMEBODY, run=finished)
    again = page("benchmark", run=finished, baseline="torch", peak="datasheet")

    def chosen(app):
        return {box.label: box.value for box in app.selectbox if box.label in ("Speedup over", "Result")}

    assert chosen(mine)["Speedup over"] == chosen(again)["Speedup over"] == "torch"
    assert chosen(theirs)["Speedup over"] != "torch"
    assert chosen(theirs)["Result"] == explained.options[0] != chosen(mine)["Result"]
    assert specs(mine) == specs(again) != specs(theirs)


def test_peaks_that_one_entered_are_not_shown_to_others(page, store, finished):
    store.set_own_peak(OWNER, device(), peak=Peak("fp32", "matrix", 7e13, "own", "a secret datasheet"))
    store.set_own_peak(OWNER, device(), peak=Peak("bf16", "matrix", 7e13, "own", "a secret datasheet"))
    mine = page("benchmark", run=finished)
    theirs = page("benchmark", owner=SOMEBODY, run=finished)

    def shown(app):
        return " ".join(app.dataframe[0].value["Peak"])

    assert "a secret datasheet" in shown(mine)
    assert "a secret datasheet" not in shown(theirs)
    assert headline(mine) != headline(theirs)


def test_peak_that_was_just_entered_is_shown_at_once(page, store, monkeypatch):
    monkeypatch.setattr("gpuexplore.ui.shared.LOOK_S", 60.0)
    app = page("devices")
    next(field for field in app.text_input if field.label == "TFLOP/s").set_value("0.5")
    next(button for button in app.button if button.label == "Save").click().run()

    assert "entered by you" in texts(app.markdown)


def test_visitor_who_cancels_sees_it_at_once(page, store, experiment, monkeypatch):
    monkeypatch.setattr("gpuexplore.ui.shared.LOOK_S", 60.0)
    run_id = store.submit(experiment, OWNER)
    app = page("benchmark", run=run_id)
    next(button for button in app.button if button.label == "Cancel").click().run()

    assert store.load(run_id).state is RunState.CANCELLED
    assert "Cancelled before anything was measured." in texts(app.info)


def test_run_that_waits_is_not_read_again_while_it_waits(page, store, experiment, claim_next, monkeypatch):
    monkeypatch.setattr(state, "UNCHANGED_LOOKS", 10**12)
    run_id = store.submit(experiment, OWNER)
    asked, read = [], type(store).load_summary
    monkeypatch.setattr(type(store), "load_summary", lambda self, name: asked.append(name) or read(self, name))
    page("benchmark", run=run_id)
    page("benchmark", run=run_id)
    assert asked == [run_id]

    claim_next()
    assert "Loading the libraries" in page("benchmark", run=run_id).get("progress")[0].proto.text


@pytest.fixture
def claim_next(store, beat):
    """Return a function that starts the next run."""

    def started():
        beat("measuring", device())
        return store.claim("tests", ["cpu"])

    return started


@pytest.fixture
def large(store):
    """Return the id of a run of more results than a page lists."""
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in range(1, 52))
    experiment = Experiment("matmul", shapes, ("fp32", "bf16"), ("numpy", "torch", "numba-cpu"))
    results = [
        ok(1e-3 * (1 + (case.implementation != "torch")), shape=case.shape, dtype=case.dtype, implementation=name)
        for case in experiment.cases()
        for name in [case.implementation]
    ]
    return store.record(experiment, OWNER, results=results)


def test_large_run_is_listed_by_its_fastest_results_and_says_so(page, large):
    app = page("benchmark", run=large)
    table = app.dataframe[0].value

    assert not app.exception
    assert len(table) == 51 * 2
    assert set(table["Implementation"]) == {"torch"}
    assert "102 of 306 results: the fastest of each size and dtype" in texts(app.caption)


def test_charts_of_a_large_run_say_less_of_each_point(page, large, finished):
    assert '"Memory use"' in specs(page("benchmark", run=finished))[0]
    assert '"Memory use"' not in specs(page("benchmark", run=large))[0]


def test_devices_seen_by_a_supervisor_are_looked_up_once_for_all(page, store, beat, monkeypatch):
    beat("ready", device())
    monkeypatch.setattr("gpuexplore.ui.shared.LOOK_S", 60.0)
    asked, read = [], type(store).supervisors
    monkeypatch.setattr(type(store), "supervisors", lambda self: asked.append(1) or read(self))
    for owner in (OWNER, SOMEBODY):
        page("devices", owner=owner)

    assert session.known_devices()
    assert len(asked) == 1


def test_growing_run_gets_a_chart_a_redraw_and_a_second_visitor_makes_none(page, store, claimed, results, monkeypatch):
    monkeypatch.setattr(live_charts, "REFRESH_S", 60.0)
    store.add_result(claimed, results[0])
    mine = page("benchmark", run=claimed.run_id)
    theirs = page("benchmark", owner=SOMEBODY, run=claimed.run_id)
    early = page("benchmark", run=claimed.run_id, chart="speedup")
    monkeypatch.setattr(live_charts, "REFRESH_S", 0.0)
    later = page("benchmark", run=claimed.run_id, chart="speedup")

    assert [len(specs(app)) for app in (mine, theirs, early, later)] == [1, 1, 1, 1]
    assert specs(mine) == specs(theirs)


def test_the_chosen_chart_is_made_at_once_when_the_first_pass_is_complete(page, store, claimed, results, monkeypatch):
    monkeypatch.setattr(live_charts, "REFRESH_S", 60.0)
    store.add_result(claimed, replace(results[0], provisional=True))
    begun = page("benchmark", run=claimed.run_id)
    for result in results[1:]:
        store.add_result(claimed, replace(result, provisional=True))
    passed = page("benchmark", run=claimed.run_id, chart="speedup")

    assert [len(specs(app)) for app in (begun, passed)] == [1, 1]


@pytest.mark.parametrize(("progress_s", "times"), [(1.0, 0), (None, 1)], ids=["below the progress", "run that ended"])
def test_results_that_cannot_be_read_now_are_told_once(monkeypatch, progress_s, times):
    told = []
    monkeypatch.setattr(view, "fetch", Mock(side_effect=StoreUnavailable("it is away")))
    monkeypatch.setattr(view, "show_problem", told.append)
    view._draw_results("a run", view._Ticks(progress_s, progress_s, results=True), show=pytest.fail)
    assert len(told) == times


def press(app, label):
    return next(button for button in app.button if button.label.startswith(label)).click().run()


def shown_run(app):
    value = app.query_params["run"]
    return value if isinstance(value, str) else value[0]


def test_who_presses_run_on_what_another_asked_for_follows_that_run(page, store):
    theirs = press(page("benchmark", owner=SOMEBODY), "Run")
    mine = press(page("benchmark"), "Run")

    run_id = shown_run(mine)
    assert shown_run(theirs) == run_id
    assert store.load(run_id).owner == SOMEBODY
    assert "1 other user requested the same run: it is measured once for all users." in texts(mine.caption)
    assert not [button for button in mine.button if button.label == "Cancel"]

    press(mine, "Measure my own")
    own = shown_run(mine)
    assert (own != run_id, store.load(own).owner) == (True, OWNER)


def test_who_asked_first_is_told_too_and_cancels_for_nobody_else(page, store, experiment):
    run_id = store.ask(experiment, OWNER)
    for other in ("ada", "bob"):
        store.ask(experiment, other)
    app = page("benchmark", run=run_id)

    assert "2 other users requested the same run: it is measured once for all users." in texts(app.caption)
    assert "Measure my own" not in [button.label for button in app.button]
    press(app, "Cancel")
    assert (store.load(run_id).state, store.load(run_id).owner) == (RunState.QUEUED, "ada")
    assert "requested the same run" not in texts(app.caption)


def test_who_only_looks_is_not_told_how_many_asked(page, store, experiment):
    run_id = store.ask(experiment, "ada")
    store.ask(experiment, "bob")

    assert "requested the same run" not in texts(page("benchmark", run=run_id).caption)
