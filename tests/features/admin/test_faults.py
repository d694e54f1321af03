"""Pruning beside a run and visitors."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from gpuexplore.core.model import Result, RunState, Status
from gpuexplore.store.prune import prune
from tests.faults.conftest import (
    ends,
    experiment,
    holder,
    home,
    is_measuring,
    store,
    supervisor,
    wait_until,
    warm_cache,
    watched,
)
from tests.faults.test_database_faults import SOON_S, address, opened

pytestmark = pytest.mark.faults


def results_of(asked):
    """Return a failed result for each case of an experiment."""
    return [Result(case, Status.ERROR, "made up") for case in asked.cases()]


def test_pruning_beside_a_run_and_visitors_loses_nothing_and_stops_nobody(store, home, supervisor, address):
    old = experiment(20)
    for _ in range(150):
        store.record(old, "ada", results=results_of(old))
    run_id = store.submit(experiment(40, budget_s=0.1), "ada")
    wait_until(lambda: is_measuring(store, run_id, done=1))
    limit = (datetime.now(UTC) + timedelta(days=1)).isoformat(timespec="microseconds")

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune, store, limit, "root")
        slowest_s = 0.0
        while not pruning.done():
            said, took_s = asyncio.run(opened(address, "runs"))
            assert "cannot be used" not in said
            slowest_s = max(slowest_s, took_s)
    assert pruning.result().runs >= 150
    assert slowest_s < SOON_S
    run = ends(store, run_id)
    assert (run.state, {result.status for result in run.results}, len(run.results)) == (RunState.DONE, {Status.OK}, 40)
    assert holder().pid == supervisor.pid
