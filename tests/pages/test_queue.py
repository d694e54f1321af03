import json
import re
from dataclasses import replace

import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.model import RunState
from gpuexplore.store.turns import Restriction, RestrictionKind
from gpuexplore.ui import roles
from gpuexplore.ui.run.state import waiting_words
from tests.analysis.made import device
from tests.pages.conftest import OWNER, texts


@pytest.fixture(autouse=True)
def here(beat):
    beat("ready", device())


def test_empty_queue_offers_to_measure_something_and_shows_the_supervisor_with_its_devices_and_version(page):
    app = page("queue")
    assert not app.exception
    assert "#### Nothing is running. Queue empty: the next run starts as soon as it is queued." in texts(app.markdown)
    assert [button.label for button in app.button] == ["Measure something"]
    assert "Another version than this server's" in texts(app.warning)
    hosts = app.dataframe[0].value
    assert list(hosts["State"]) == ["ready"]
    assert device().short_title in hosts["Devices"][0]


def test_who_waits_is_shown_in_order_with_the_expected_start(page, store, experiment):
    store.submit(experiment, "somebody else", estimated_s=90.0)
    store.submit(experiment, OWNER, estimated_s=5.0)
    app = page("queue")
    table = app.dataframe[0].value
    assert list(table["Position"]) == [1, 2]
    assert list(table["Whose"].fillna("")) == ["", "yours"]
    assert list(table["Expected start"]) == [0.0, 90.0]
    assert "Your run is number 2" in texts(app.markdown)
    assert "in about 1 min 30 s" in texts(app.markdown)


def test_the_chart_shows_what_ended_in_the_last_hour_what_runs_and_what_waits(page, store, experiment):
    for _ in range(3):
        store.submit(experiment, OWNER, estimated_s=60.0)
    store.finish(store.claim("tests", ["cpu"]), RunState.DONE)
    store.claim("tests", ["cpu"])
    (chart,) = page("queue").get("vega_lite_chart")

    assert json.loads(chart.proto.spec)["description"] == "The last hour of cpu: ended 1, running 1, waiting 1."


def test_ones_own_waiting_run_can_be_cancelled_and_nobody_elses(page, store, experiment):
    other, mine = store.submit(experiment, "somebody else"), store.submit(experiment, OWNER)
    app = page("queue")
    (button,) = (button for button in app.button if button.label == "Cancel")
    button.click().run()
    assert [store.load(run_id).state for run_id in (other, mine)] == [RunState.QUEUED, RunState.CANCELLED]


def test_an_administrator_can_cancel_any_run(page, store, experiment, monkeypatch):
    run_id = store.submit(experiment, "somebody else")
    assert roles.is_admin() is False
    monkeypatch.setattr(roles, "_role", lambda: roles._Role.ADMIN)
    page("queue").button(key=f"cancel.{run_id}").click().run()
    assert store.load(run_id).state is RunState.CANCELLED


def test_a_running_run_shows_its_progress_and_whose_it_is(page, store, claimed, results):
    store.add_result(claimed, results[0])
    app = page("queue")
    assert "Running: 1" in texts(app.markdown)
    text = app.get("progress")[0].proto.text
    assert "1 of" in text
    assert "Your run" in text
    assert {button.label for button in app.button} == {"Open", "Cancel"}


def test_a_run_whose_device_nobody_has_says_so(page, store, experiment):
    store.submit(replace(experiment, devices=("lab9/cuda:0",)), OWNER)
    assert "no connected host has its devices" in texts(page("queue").markdown)


def test_a_silent_supervisor_is_told(page, store):
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE supervisors SET beat_epoch_s = beat_epoch_s - 10")
    app = page("queue")
    assert re.search(r"it last reported \d\d s ago. It is replaced within half a minute", texts(app.warning))
    assert list(app.dataframe[-1].value["State"]) == ["not responding"]


def test_a_run_whose_supervisor_is_silent_is_interrupted(page, store, claimed):
    assert "interrupted" not in page("queue").get("progress")[0].proto.text
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE supervisors SET beat_epoch_s = beat_epoch_s - 10")
    app = page("queue")
    assert "interrupted" in app.get("progress")[0].proto.text
    assert "Interrupted: 1" in texts(app.markdown)


def test_a_supervisor_that_was_replaced_is_shown_no_more(page, store, beat):
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE supervisors SET beat_epoch_s = beat_epoch_s - 10, name = 'before'")
    beat("ready", device())
    assert list(page("queue").dataframe[-1].value["State"]) == ["ready"]


def test_where_several_hosts_measure_a_run_names_its_own(page, store, claimed, beat):
    beat("ready", device(), name="lab2")
    text = page("queue").get("progress")[0].proto.text.replace("\\", "")
    assert "on tests/cpu" in text


def test_a_database_that_is_away_is_told_below_the_title(page, store, home):
    for file in home.glob("gpuexplore.sqlite3*"):
        file.rename(home / f"away.{file.name}")
    app = page("queue")
    assert not app.exception
    assert texts(app.title) == "Queue"
    assert "The database cannot be used now" in texts(app.error)


def test_a_visit_keeps_the_place_of_those_who_wait(page, store, experiment):
    run_id = store.submit(experiment, OWNER)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE owners SET seen_epoch_s = seen_epoch_s - 700")
    page("queue")
    assert store.drop_abandoned() == 0
    assert store.load(run_id).state is RunState.QUEUED


def test_an_activity_that_is_done_is_shown_and_opens_its_own_page(page, store, claimed):
    run_id = store.submit(of_kind("mistake", {"name": "first-call"}), OWNER)
    store.claim("host/1", {"cpu"})
    app = page("queue")
    assert "Timing mistake on cpu" in texts(app.markdown)
    assert f"open.{run_id}" in [button.key for button in app.button]


def test_an_activity_that_waits_has_its_position(page, store):
    store.submit(of_kind("mistake", {"name": "first-call"}, expected_s=3.0), OWNER)
    table = page("queue").dataframe[0].value
    assert list(table["Expected time"]) == [3.0]


def test_a_device_that_is_held_back_says_why_here_and_where_somebody_waits(page, store, experiment):
    run_id = store.submit(experiment, OWNER)
    store.restrict(Restriction("cpu", RestrictionKind.PAUSED, "new *cooler*"), "root")
    app = page("queue")

    assert "cpu is paused: new *cooler*. Runs on it are queued" in texts(app.info)
    assert "number 1** · cpu is paused: new" in texts(app.markdown)
    assert "Expected start" not in app.dataframe[0].value
    assert waiting_words(store.position(run_id)) == r"Waiting: cpu is paused\: new \*cooler\*"
