"""The table of a run's states: as the code has it, and as the database sees it kept."""

from contextlib import contextmanager

import pytest
from sqlalchemy import update

from gpuexplore.core.model import RunState
from gpuexplore.store import open_store, run_states
from gpuexplore.store.leases import MOST_LOST
from gpuexplore.store.prune import prune
from gpuexplore.store.run_states import ABANDONED_AFTER_S, CHANGES, changeable
from gpuexplore.store.tables import OWNERS

NONE = "none"
SEEN = (
    ("INSERT", f"'{NONE}', NEW.state", ""),
    ("UPDATE OF state", "OLD.state, NEW.state", "WHEN OLD.state <> NEW.state"),
    ("DELETE", f"OLD.state, '{NONE}'", ""),
)


def kept():
    """Return the table of states: into which each may change each, by who and from which."""
    return {(who, state or NONE): {into or NONE for into in changed} for (who, state), changed in CHANGES.items()}


@pytest.fixture
def store(home, clock):
    with open_store(clock=clock) as opened, opened.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE seen (before TEXT, after TEXT)")
        for number, (what, states, when) in enumerate(SEEN):
            keep = f"BEGIN INSERT INTO seen VALUES ({states}); END"
            connection.exec_driver_sql(f"CREATE TRIGGER seen_{number} AFTER {what} ON runs {when} {keep}")
    with open_store(clock=clock) as opened:
        yield opened


@pytest.fixture
def changes_by(store):
    """Return how to collect, by who made them, what changes of states the database saw."""
    found = {}

    @contextmanager
    def made(who):
        with store.writing() as connection:
            connection.exec_driver_sql("DELETE FROM seen")
        yield
        with store.writing() as connection:
            for before, after in connection.exec_driver_sql("SELECT before, after FROM seen"):
                found.setdefault((who, before), set()).add(after)

    made.found = found
    return made


def test_every_state_is_in_the_table():
    assert {state for _, state in kept()} == {NONE, *(state.value for state in RunState)}


def test_what_the_table_lacks_is_refused():
    with pytest.raises((AssertionError, KeyError)):
        changeable("supervisor", RunState.DONE, RunState.RUNNING)
    with pytest.raises(AssertionError):
        changeable("user's cancel", RunState.QUEUED, RunState.FAILED)


def test_the_code_makes_the_changes_of_the_table_and_no_others(
    store, changes_by, experiment, failed, claim, instance_of
):
    def submitted(owner="ada"):
        with changes_by("submitter"):
            return store.submit(experiment, owner)

    def claimed(name="host"):
        submitted()
        with changes_by("supervisor"):
            return claim(name)

    with changes_by("submitter"):
        store.record(experiment, "ada", results=[])
    for state in run_states.FINAL:
        held = claimed()
        with changes_by("worker"):  # what it reports, its supervisor writes
            store.set_current(held, experiment.cases()[0])
            store.add_result(held, failed(experiment.cases()[0]))
            store.add_device_seconds(held, 1.0)
        with changes_by("supervisor"):
            store.finish(held, state)
    held = claimed()
    with changes_by("supervisor"):
        store.release(held)
    held = claim()
    with changes_by("user's cancel"):
        store.request_cancel(held.run_id, "ada")
    with changes_by("supervisor"):
        store.release(held)
    waits = submitted()
    with changes_by("user's cancel"):
        store.request_cancel(waits, "ada")

    for lost in range(MOST_LOST):  # a dead supervisor's: they wait again, and fail at last
        name = f"dead-{lost}"
        held = claimed(name) if not lost else claim(name)
        with changes_by("supervisor"):
            assert store.take_over(instance_of("alive", scope=name)) == 1
    cancelled = claimed("dead")
    with changes_by("user's cancel"):
        store.request_cancel(cancelled.run_id, "ada")
    with changes_by("supervisor"):
        store.take_over(instance_of("alive", scope="dead"))
    submitted("gone")
    with store.writing() as connection:
        connection.execute(update(OWNERS).values(seen_epoch_s=OWNERS.c.seen_epoch_s - ABANDONED_AFTER_S - 1))
    with changes_by("supervisor"):
        assert store.drop_abandoned() == 1
    with changes_by("prune"):
        prune(store, store.now(), "root", lambda _: None)

    assert changes_by.found == kept()
