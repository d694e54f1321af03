"""Runs of other machines, read from files and kept with their origin."""

from dataclasses import replace

from gpuexplore.devices.accelerators import bandwidth_of, match, peaks_of, row_of
from gpuexplore.jobs.reading import read_apart
from gpuexplore.model import Device, Result
from gpuexplore.recorded.files import ReadRun
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
    return [keep_run(store, run, owner, origin=run.origin) for run in runs_in(name, content)]


def runs_in(name: str, content: bytes) -> tuple[ReadRun, ...]:
    """Return the runs that a file of a stranger holds, read in a process of its own.

    Raises:
        InvalidInput: as of `read_runs`, or reading took too much time or memory.
    """
    found: tuple[ReadRun, ...] = read_apart("gpuexplore.recorded.files:read_runs", name, content)
    return found


def keep_run(store: Store, run: ReadRun, owner: str, *, origin: str) -> ListedRun:
    """Keep a run that was measured elsewhere, and return its line of a list.

    Args:
        store: where to.
        run: as a file held it.
        owner: whose it is from now on.
        origin: what is told of where it came from.
    """
    results = [_within_its_row(result) for result in run.results]
    run_id = store.record(run.experiment, owner, results=results, origin=origin)
    return store.describe(run_id, owner, Description(title=run.title))


def _within_its_row(result: Result) -> Result:
    """Return a result whose device claims no more than the table of accelerators gives it, so that false times show."""
    environment = result.environment
    if environment is None:
        return result
    return replace(result, environment=replace(environment, device=_capped(environment.device)))


def _capped(device: Device) -> Device:
    row = row_of(device) or match(device.name)
    if row is None:
        return device
    most = {(peak.dtype, peak.unit): peak for peak in peaks_of(row)}
    bandwidth = bandwidth_of(row)
    is_above = bandwidth and device.bandwidth and device.bandwidth.bytes_per_s > bandwidth.bytes_per_s
    return replace(
        device,
        peaks=tuple(
            min(peak, most.get((peak.dtype, peak.unit), peak), key=lambda each: each.flop_per_s)
            for peak in device.peaks
        ),
        bandwidth=bandwidth if is_above else device.bandwidth,
    )
