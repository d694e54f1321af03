"""Old runs are erased in short transactions, marked and unfinished ones stay, and the space comes back."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import func, select

from gpuexplore.activity import of_kind
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import RunState
from gpuexplore.store import Description, open_store
from gpuexplore.store.prune import _Pruned, give_back, prunable, prune, purge_deleted
from gpuexplore.store.tables import DEVICE_SECONDS, OBSERVATIONS, RESULTS, RUNS
from tests.pages.conftest import told

DAY_S = 86_400


@pytest.fixture
def recorded(store, experiment, failed):
    def record(owner="ada"):
        return store.record(experiment, owner, results=[failed(case) for case in experiment.cases()])

    return record


@pytest.fixture
def before(store, clock):
    """Return what tells before when runs are old: now."""
    return store.now


def ids(store):
    with store.reading() as connection:
        return set(connection.scalars(select(RUNS.c.id)))


def of_runs(pruned):
    return pruned.runs, pruned.results, pruned.kept


def no_pause(_):
    return None


def test_what_ended_before_then_goes_with_its_results(store, recorded, clock, before):
    old = recorded()
    limit = before()
    clock.advance(DAY_S)
    new = recorded()

    assert prunable(store, limit) == prune(store, limit, "root", no_pause) == _Pruned(1, 4, 0, 1)
    assert ids(store) == {new}
    with pytest.raises(NotFound):
        store.load(old)
    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(RESULTS)) == 4


def test_what_somebody_marked_stays_unless_that_is_asked_for(store, recorded, before):
    tagged, noted, _ = recorded(), recorded(), recorded()
    store.describe(tagged, "ada", Description(tags="paper"))
    store.describe(noted, "ada", Description(note="the good one"))

    assert of_runs(prune(store, before(), "root", no_pause)) == (1, 4, 2)
    assert ids(store) == {tagged, noted}
    assert of_runs(prune(store, before(), "root", no_pause, marked=True)) == (2, 8, 0)
    assert ids(store) == set()


def test_what_was_deleted_before_then_goes_marked_or_not(store, recorded, before):
    run = recorded()
    store.describe(run, "ada", Description(tags="paper"))
    store.delete_run(run, "ada")

    assert prune(store, before(), "root", no_pause).runs == 1


def test_what_waits_or_is_measured_stays(store, experiment, claim, before):
    measured, waits = store.submit(experiment, "ada"), store.submit(experiment, "bob")
    claim()

    assert of_runs(prune(store, before(), "root", no_pause, marked=True)) == (0, 0, 0)
    assert ids(store) == {measured, waits}


def test_a_run_that_was_marked_meanwhile_stays(store, recorded, before, monkeypatch):
    monkeypatch.setattr("gpuexplore.store.prune.ROWS", 1)
    monkeypatch.setattr("gpuexplore.store.prune.MOST", 1)
    *_, last = [recorded() for _ in range(3)]

    assert prune(store, before(), "root", lambda _: store.describe(last, "ada", Description(tags="paper"))).runs == 2
    assert ids(store) == {last}


def test_each_transaction_erases_few_rows_and_others_write_between(store, recorded, before, monkeypatch):
    monkeypatch.setattr("gpuexplore.store.prune.ROWS", 3)
    monkeypatch.setattr("gpuexplore.store.prune.MOST", 3)
    monkeypatch.setattr("gpuexplore.store.prune.time.perf_counter", lambda: 0.0)  # on a busy machine they are slow
    for _ in range(5):
        recorded()
    pauses = []

    def write_meanwhile(seconds):
        pauses.append(seconds)
        store.see("bob")

    assert of_runs(prune(store, before(), "root", write_meanwhile)) == (5, 20, 0)
    # Of three and two runs: hidden, twelve and eight results by threes, no more of them, no observations, erased, no
    # more; then five lines of the log.
    assert len(pauses) == (1 + 4 + 1 + 1 + 2) + (1 + 3 + 1 + 1 + 2) + 1 + 3
    assert min(pauses) > 0


def test_device_seconds_that_count_no_more_go(store, experiment, claim, before):
    store.submit(experiment, "ada")
    claimed = claim()
    store.add_device_seconds(claimed, 3.0)
    with store.writing() as connection:
        connection.execute(DEVICE_SECONDS.insert().values(owner="ada", minute=1, device_s=2.0))
    store.finish(claimed, RunState.DONE)

    prune(store, "2000", "root", no_pause)

    with store.reading() as connection:
        assert connection.scalars(select(DEVICE_SECONDS.c.device_s)).all() == pytest.approx([3.0], abs=0.1)


def test_activities_go_with_what_they_observed(store, claim, before):
    store.submit(of_kind("mistake", {"mistake": "zeros"}), "ada")
    claimed = claim()
    for number in range(7):
        store.add_observation(claimed, told({"n": number}))
    store.finish(claimed, RunState.DONE)

    assert prune(store, before(), "root", no_pause).runs == 1
    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(OBSERVATIONS)) == 0


def test_a_run_that_is_erased_when_the_power_goes_is_seen_by_nobody_and_erased_next_time(store, recorded, before):
    run = recorded()

    def power_goes(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(store, before(), "root", power_goes)
    with pytest.raises(NotFound):
        store.load(run)
    assert purge_deleted(store, before(), pause=no_pause) == 1
    assert ids(store) == set()


def test_what_was_deleted_is_erased_for_a_second_at_most(store, recorded, before):
    for _ in range(3):
        store.delete_run(recorded(), "ada")

    assert purge_deleted(store, before(), most_s=0.0) == 0
    assert purge_deleted(store, before(), pause=no_pause) == 3
    with store.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(RESULTS)) == 0


@pytest.fixture
def filled(home, clock, experiment, measured):
    with open_store(clock=clock) as opened:
        for _ in range(15):
            opened.record(experiment, "ada", results=[measured(case) for case in experiment.cases()])
        yield opened


def test_the_space_is_given_back_and_what_is_of_no_result_goes(filled, home):
    prune(filled, filled.now(), "root", no_pause)

    found = give_back(filled, no_pause)

    assert (found.free_bytes, found.reason) == (0, None)
    assert found.before_bytes > found.after_bytes == (home / "gpuexplore.sqlite3").stat().st_size
    with filled.reading() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM environments").scalar() == 0
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_beside_others_a_new_database_gets_smaller_page_by_page(filled, home, monkeypatch):
    monkeypatch.setattr("gpuexplore.store.prune.PAGES", 5)
    prune(filled, filled.now(), "root", no_pause)
    pauses = []
    with open_store() as other:
        other.history()
        found = give_back(filled, pauses.append)

        assert "another program has it open" in found.reason
        assert found.free_bytes == 0
        assert len(pauses) >= 2
        assert found.before_bytes / 4096 / 5 > len(pauses)
        assert (other.history(), other.submit_all({}, "ada")) == ((), [])


def test_beside_others_an_earlier_database_keeps_its_space_and_says_why(filled, home):
    filled.close()
    with closing(sqlite3.connect(home / "gpuexplore.sqlite3", isolation_level=None)) as raw:
        raw.execute("PRAGMA auto_vacuum = NONE")
        raw.execute("VACUUM")
    prune(filled, filled.now(), "root", no_pause)
    with open_store() as other:
        other.history()
        found = give_back(filled, no_pause)

    assert found.after_bytes >= found.before_bytes
    assert found.free_bytes > 0
    assert "another program has it open" in found.reason


def test_rewriting_needs_room_and_says_how_much(filled, monkeypatch):
    monkeypatch.setattr("gpuexplore.store.prune.shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))

    found = give_back(filled, no_pause)

    assert "but only 10 B are free" in found.reason
