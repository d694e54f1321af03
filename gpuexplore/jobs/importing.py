"""Runs of other machines, read from files and kept with their origin."""

from gpuexplore.recorded.files import read_runs
from gpuexplore.store import Description, ListedRun, Store


def import_runs(store: Store, name: str, content: bytes, owner: str) -> list[ListedRun]:
    """Keep the runs that a file holds, and return their lines of a list.

    Args:
        store: where to.
        name: of the file.
        content: of it.
        owner: whose they are from now on.

    Raises:
        InvalidInput: as of `read_runs`; nothing was kept.
    """
    kept = []
    for run in read_runs(name, content):
        run_id = store.record(run.experiment, owner, results=run.results, origin=run.origin)
        kept.append(store.describe(run_id, owner, Description(title=run.title)))
    return kept
