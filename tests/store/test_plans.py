"""Questions asked all the time read what they need by an index, however long the history: as SQLite plans them."""

import pytest
from sqlalchemy import event

from gpuexplore.core.model import RunState
from gpuexplore.store import Wanted, open_store
from tests.analysis.made import device


@pytest.fixture
def store(home, clock):
    with open_store(clock=clock) as opened:
        yield opened


@pytest.fixture
def plans(store):
    """Return a function that does something and returns how each of its queries that read a table is planned."""

    def of(act, table):
        asked = []

        def note(connection, cursor, text, values, context, many):
            asked.append((text, values))

        event.listen(store.engine, "before_cursor_execute", note)
        act()
        event.remove(store.engine, "before_cursor_execute", note)
        with store.reading() as connection:
            found = [
                " / ".join(row[-1] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values))
                for text, values in asked
                if table in text and not text.startswith(("INSERT", "PRAGMA"))
            ]
        assert found
        return found

    return of


def test_what_a_device_did_is_read_by_the_index_of_its_runs(store, plans):
    found = plans(lambda: store.measured_results(device(), owner="ada"), "results")

    assert len(found) == 2  # on what, and the results themselves
    for plan in found:
        assert "SEARCH results USING INDEX" in plan
        assert "SEARCH runs USING INDEX" in plan


def test_the_first_look_at_what_everybody_measured_does_not_go_through_all_results(store, plans):
    first = plans(lambda: store.measured_results(device(), numbers=range(1, 1_000_001)), "results")
    later = plans(lambda: store.measured_results(device(), numbers=range(1_000_001, 1_000_005)), "results")

    for plan in first:  # on what, and the results themselves
        assert "SEARCH results USING INDEX sqlite_autoindex_results_1 (run_id=?)" in plan
        assert "SCAN results" not in plan
        assert "SEARCH results USING INTEGER PRIMARY KEY" not in plan
    for plan in later:
        assert "SEARCH results USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in plan


def test_a_run_ends_without_a_look_at_those_before(store, plans, claim, experiment):
    store.submit(experiment, "ada")
    claimed = claim()

    found = plans(lambda: store.finish(claimed, RunState.DONE), "results")

    assert any("ix_results_provisional" in plan for plan in found)
    assert not [plan for plan in found if "SCAN runs" in plan]


def test_ones_own_runs_are_listed_without_sorting_all_of_them(store, plans):
    (plan,) = plans(lambda: store.listed(Wanted(owner="ada"), limit=5), "runs")

    assert "ix_runs_owner_number" in plan
    assert "ix_run_askers_owner" in plan
    assert "SCAN runs" not in plan


def test_the_newest_run_alike_is_found_without_sorting(store, plans, experiment):
    (plan,) = plans(lambda: store.newest_alike(experiment, "2026"), "runs")

    assert "ix_runs_operation_number" in plan
    assert "TEMP B-TREE" not in plan


def test_what_a_room_measured_is_read_by_whose_runs_they_are(store, plans):
    room, _ = store.open_room("ada", "", 1)

    (plan,) = plans(lambda: store.runs_of_room(room), "JOIN runs")

    assert "SEARCH runs USING" in plan
    assert "SCAN runs" not in plan
    assert "SCAN results" not in plan
