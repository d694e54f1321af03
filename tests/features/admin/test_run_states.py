"""What pruning does to the states of runs is what their table says."""

from gpuexplore.features.admin.prune import prune
from gpuexplore.store import run_states
from tests.store.conftest import claim, clock, experiment, home
from tests.store.test_run_states import NONE, changes_by, store


def test_pruning_erases_runs_of_each_final_state_and_no_others(store, changes_by, experiment, claim):
    for state in run_states.FINAL:
        store.submit(experiment, "ada")
        store.finish(claim(), state)
    store.submit(experiment, "ada")
    claim()
    store.submit(experiment, "bob")

    with changes_by("prune"):
        prune(store, store.now(), "root", lambda _: None)

    assert changes_by.found == {("prune", state.value): {NONE} for state in run_states.FINAL}
