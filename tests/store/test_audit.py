"""Who did what is written with what was done: not without it, and without what would let a reader act as somebody."""

import pytest

from gpuexplore.activity import Activity
from gpuexplore.core.errors import InvalidInput
from gpuexplore.store.database import Action, noted, shown

COOKIE = "3q2-7wX0pL9cV1bN8mK4jA"


def told(store):
    return [(entry.action, entry.who, entry.address, entry.object) for entry in reversed(noted(store))]


def test_everything_that_is_done_to_a_run_is_written_down(store, experiment, failed):
    run = store.submit(experiment, COOKIE, address="192.0.2.7")
    store.request_cancel(run, "user:root@example.org", admin=True, address="192.0.2.8")
    store.delete_run(run, COOKIE, address="192.0.2.7")
    store.restore_run(run, COOKIE)
    saved = store.record(experiment, "command line", results=[failed(experiment.cases()[0])])
    activity = store.submit(Activity("mistake", (("name", "no-sync"),)), "ada", address="192.0.2.9")

    browser = shown(COOKIE)
    assert told(store) == [
        ("run submitted", browser, "192.0.2.7", run),
        ("run cancelled", "root@example.org", "192.0.2.8", run),
        ("run deleted", browser, "192.0.2.7", run),
        ("run restored", browser, None, run),
        ("run saved", "command line", None, saved),
        ("run submitted", shown("ada"), "192.0.2.9", activity),
    ]


def test_rooms_are_opened_closed_and_deleted_by_somebody(store):
    room, _ = store.open_room("ada", "GPU course", 1)
    store.close_room("ada", room)
    store.delete_room("ada", room)

    assert [(action, thing) for action, _, _, thing in told(store)] == [
        (Action.ROOM_OPENED, room.code),
        (Action.ROOM_CLOSED, room.code),
        (Action.ROOM_DELETED, room.code),
    ]


def test_what_was_refused_was_not_done(store, experiment):
    run = store.submit(experiment, "ada")
    for act in (store.request_cancel, store.delete_run, store.restore_run):
        with pytest.raises(InvalidInput):
            act(run, "eve")

    assert [action for action, *_ in told(store)] == ["run submitted"]


def test_what_changed_nothing_was_not_done(store, experiment, failed):
    done = store.record(experiment, "ada", results=[])
    store.request_cancel(done, "ada")
    store.restore_run(done, "ada")

    assert [action for action, *_ in told(store)] == ["run saved"]


def test_the_log_holds_no_cookie(store, experiment):
    store.submit(experiment, COOKIE)

    assert COOKIE not in str(noted(store))
    assert shown(COOKIE) != shown("another")
    assert shown("user:ada@example.org") == "ada@example.org"
