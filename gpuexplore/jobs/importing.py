"""Runs of other machines, read from files and kept with their origin."""

from gpuexplore.recorded.files import ReadRun, read_runs
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
    return [keep_run(store, run, owner, origin=run.origin) for run in read_runs(name, content)]


def keep_run(store: Store, run: ReadRun, owner: str, *, origin: str) -> ListedRun:
    """Keep a run that was measured elsewhere, and return its line of a list.

    Args:
        store: where to.
        run: as a file held it.
        owner: whose it is from now on.
        origin: what is told of where it came from.
    """
    run_id = store.record(run.experiment, owner, results=run.results, origin=origin)
    return store.describe(run_id, owner, Description(title=run.title))
