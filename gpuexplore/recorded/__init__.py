"""Results measured on real hardware, shipped as data with their provenance: a file in `data/` is all it takes.

`gpuexplore record` writes such files; `validate` refuses one that does not say where its numbers come from.
"""

from collections.abc import Mapping
from pathlib import Path

from gpuexplore.core import InvalidInput, NotFound, Result, Run, once
from gpuexplore.recorded.recording import (
    RUN_PREFIX,
    Provenance,
    Recording,
    header,
    missing_provenance,
    run_id,
    run_id_of,
)
from gpuexplore.recorded.validation import check_commit, validate

FOLDER = Path(__file__).with_name("data")

__all__ = [
    "RUN_PREFIX",
    "Provenance",
    "Recording",
    "check_commit",
    "header",
    "missing_provenance",
    "recorded_results",
    "recorded_run",
    "recording_named",
    "recording_of_run",
    "recordings",
    "recordings_of",
    "refusals",
    "run_id",
    "run_id_of",
    "validate",
]


# The recordings that ship with gpuexplore: every file of the folder `data`, read when it is first asked for.


def recordings() -> tuple[Recording, ...]:
    """Return every recording that is valid, by name."""
    return _read(FOLDER)[0]


def refusals() -> tuple[str, ...]:
    """Return why files of the folder are not shown, a sentence each."""
    return _read(FOLDER)[1]


def recordings_of(operation: str) -> tuple[Recording, ...]:
    """Return the recordings that hold a measurement of `operation`."""
    return tuple(
        recording
        for recording in recordings()
        if any(result.measurement and result.case.operation == operation for result in recording.results)
    )


def recording_named(name: str, operation: str) -> Recording:
    """Return the recording `name` of `operation`.

    Raises:
        InvalidInput: there is none; the text names those there are.
    """
    known = recordings_of(operation)
    found = next((recording for recording in known if recording.name == name), None)
    if found is None:
        listed = ", ".join(recording.name for recording in known) or "none"
        raise InvalidInput.of("recording", name, f"those of {operation}: {listed}")
    return found


def recorded_results() -> tuple[tuple[Recording, Result], ...]:
    """Return every recorded result with the recording it comes from; those without a measurement too."""
    return tuple((recording, result) for recording in recordings() for result in recording.results)


def recorded_run(run_id: str) -> Run:
    """Return a recorded run by its id.

    Raises:
        NotFound: no recording has it.
    """
    return _found(run_id)[1]


def recording_of_run(run_id: str) -> Recording | None:
    """Return the recording a run belongs to; None for a run of the store."""
    try:
        return _found(run_id)[0]
    except NotFound:
        return None


def _found(run_id: str) -> tuple[Recording, Run]:
    found = _runs(FOLDER).get(run_id)
    if found is None:
        raise NotFound(f"no recorded run {run_id[:60]!r}: check the link")
    return found


@once
def _runs(folder: Path) -> Mapping[str, tuple[Recording, Run]]:
    return {run.id: (recording, run) for recording in _read(folder)[0] for run in recording.as_runs()}


@once
def _read(folder: Path) -> tuple[tuple[Recording, ...], tuple[str, ...]]:
    """Return the valid recordings of a folder, and why the other files are refused."""
    found = []
    refused = []
    for path in sorted(folder.glob("*.jsonl")):
        try:
            found.append(validate(path))
        except InvalidInput as error:
            refused.append(str(error))
    return tuple(found), tuple(refused)
