"""Runs by whatever names them: an id of the store, a recorded run, or a file."""

from pathlib import Path

from gpuexplore.analysis.compare import Side
from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.model import Run
from gpuexplore.naming import default_title
from gpuexplore.recorded import RUN_PREFIX, recorded_run, validate
from gpuexplore.recorded.files import SUFFIXES, read_runs
from gpuexplore.store import Store


def run_named(store: Store, run_id: str) -> Run:
    """Return a run of the store, or a recorded one, with its title.

    Raises:
        NotFound: there is no such run.
    """
    return recorded_run(run_id) if run_id.startswith(RUN_PREFIX) else store.load(run_id)


def side_of(run: Run) -> Side:
    """Return a run as one of two that are compared."""
    when = run.created_utc or next((at.started_utc for result in run.results if (at := result.environment)), None)
    return Side(run.title or default_title(run.experiment), run.results, run.id, when)


def side_named(store: Store, name: str) -> Side:
    """Return what `name` stands for: a run's id, or the path of an exported run or a recording.

    Raises:
        NotFound: there is no such run.
        InvalidInput: the file holds no recording; says in which line and why.
    """
    path = Path(name)
    if path.suffix not in SUFFIXES:
        try:
            return side_of(run_named(store, name))
        except NotFound as error:
            if path.is_file():
                read_runs(path.name, path.read_bytes())  # says what it is
            if path.suffix:
                raise InvalidInput.of(
                    "file", name, f"those that end in {', '.join(SUFFIXES)}, and ids of runs"
                ) from error
            raise NotFound(f"{error}; accepted are ids of runs, and files that end in {', '.join(SUFFIXES)}") from error
    if not path.is_file():
        raise InvalidInput.of("file", name, "files that exist")
    if path.suffix == ".json":
        runs = read_runs(path.name, path.read_bytes())
        return Side(runs[0].title, tuple(result for run in runs for result in run.results), path.name, None)
    recording = validate(path)
    return Side(recording.title, recording.results, path.name, recording.provenance.recorded_utc)
