"""Runs that are named, imported or listed: of the store, recorded, or in files of other machines.

What is imported is kept with its origin. What a list says of a run is worked out when it is first listed, as an
analysis takes some hundredths of a second.
"""

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from gpuexplore.analysis.compare import Side
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.summary import summary_of
from gpuexplore.core import Device, InvalidInput, NotFound, Result, Run, RunSummary, default_title, require
from gpuexplore.hardware import accelerators
from gpuexplore.jobs.reading import read_apart
from gpuexplore.recorded import RUN_PREFIX, recorded_run, validate
from gpuexplore.recorded.files import SUFFIXES, ReadRun, read_runs
from gpuexplore.store import Description, ListedRun, Store, Wanted
from gpuexplore.store.tolerant_decode import check_known

ROW = (
    *("id", "title", "operation", "device_names", "devices", "created_utc", "state"),
    *(field.name for field in fields(RunSummary)),
    *("tags", "note", "origin", "number"),
)  # the keys of a line as a flat row


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
    if not name.endswith((*SUFFIXES, ".json.gz")):
        try:
            return side_of(recorded_run(name) if name.startswith(RUN_PREFIX) else store.load(name))
        except NotFound as error:
            if path.is_file():
                read_runs(path.name, path.read_bytes())  # says what it is
            if path.suffix:
                raise InvalidInput.of(
                    "file", name, f"files that end in {', '.join(SUFFIXES)}, and ids of runs"
                ) from error
            raise NotFound(f"{error}; expected ids of runs, and files that end in {', '.join(SUFFIXES)}") from error
    require(path.is_file(), "file", name, "an existing file")
    if not name.endswith(".jsonl"):
        runs = read_runs(path.name, path.read_bytes())
        return Side(runs[0].title, tuple(result for run in runs for result in run.results), path.name, None)
    recording = validate(path)
    return Side(recording.title, recording.results, path.name, recording.provenance.recorded_utc)


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
    return [keep_run(store, run, owner, origin=run.origin) for run in runs_in(name, content)]


def runs_in(name: str, content: bytes) -> tuple[ReadRun, ...]:
    """Return the runs that a file of a stranger holds, read in a process of its own.

    Raises:
        InvalidInput: as of `read_runs`, or reading took too much time or memory.
    """
    return read_apart("gpuexplore.recorded.files:read_runs", name, content)


def keep_run(store: Store, run: ReadRun, owner: str, *, origin: str) -> ListedRun:
    """Keep a run that was measured elsewhere, and return its line of a list.

    Args:
        store: where to.
        run: as a file held it.
        owner: whose it is from now on.
        origin: what is known of where it came from.
    """
    results = [_within_its_row(result) for result in run.results]
    run_id = store.record(run.experiment, owner, results=results, origin=origin)
    return store.describe(run_id, owner, Description(title=run.title))


def _within_its_row(result: Result) -> Result:
    """Return a result with peaks no higher than those of the table of accelerators, so that false times show."""
    environment = result.environment
    if environment is None:
        return result
    return replace(result, environment=replace(environment, device=_capped(environment.device)))


def _capped(device: Device) -> Device:
    row = accelerators.row_of(device) or next(iter(accelerators.rows_named(device.name)), None)
    if row is None:
        return device
    most = {(peak.dtype, peak.unit): peak for peak in accelerators.peaks_of(row)}
    bandwidth = accelerators.bandwidth_of(row)
    is_above = bandwidth and device.bandwidth and device.bandwidth.bytes_per_s > bandwidth.bytes_per_s
    return replace(
        device,
        peaks=tuple(
            min(peak, most.get((peak.dtype, peak.unit), peak), key=lambda each: each.flop_per_s)
            for peak in device.peaks
        ),
        bandwidth=bandwidth if is_above else device.bandwidth,
    )


def listed_with_summaries(
    store: Store, wanted: Wanted = Wanted(), *, before: int | None = None, limit: int = 50
) -> tuple[ListedRun, ...]:
    """Return a page of a list, as `Store.listed` does, with what its newest runs reached.

    Raises:
        InvalidInput: as of `Store.listed`.
    """
    page = store.listed(wanted, before=before, limit=limit)
    most = 25  # the others are worked out when the list is looked at again
    missing = [run.id for run in page if run.summary is None and not run.active][:most]
    made = {run_id: _summarize(store, run_id) for run_id in missing}
    return tuple(replace(run, summary=made.get(run.id) or run.summary) for run in page)


def _summarize(store: Store, run_id: str) -> RunSummary:
    """Return what a list says of a run that has ended, and keep it; of one that this version cannot read, nothing."""
    try:
        run = store.load(run_id)
        check_known(run_id, run.experiment)
        summary = summary_of(analyze(run.results))
    except NotFound:
        summary = RunSummary()
    store.set_summary(run_id, summary)
    return summary


def row_of(run: ListedRun) -> dict[str, Any]:
    """Return a line of a list as a flat row: plain values, SI base units, unknown is None."""
    return {
        "id": run.id,
        "title": run.title,
        "operation": run.operation,
        "device_names": run.device_names or None,
        "devices": list(run.devices),
        "created_utc": run.created_utc,
        "state": run.state.value,
        **asdict(run.summary or RunSummary()),
        "tags": list(run.tags),
        "note": run.note,
        "origin": run.origin,
        "number": run.number,
    }
