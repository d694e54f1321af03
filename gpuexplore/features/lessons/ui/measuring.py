"""The measurements of a step: queued on a click, or taken from what was measured here alike within the hour."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import gpuexplore
from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.backends.host import installed_versions, version_of
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import DOUBTFUL, Device, Environment, Result, Run, RunState
from gpuexplore.features.lessons.lesson.evidence import Measured, StepTask, Work
from gpuexplore.hardware.identity import device_key, same_device
from gpuexplore.ui.activity import devices_of, fetch_activity
from gpuexplore.ui.identity import address
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.run.state import changed, fetch
from gpuexplore.ui.session import owner, store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 10
ALIKE: Shared[Run | ActivityRun | None] = Shared(200)
AnyRun = Run | ActivityRun


@dataclass(frozen=True, slots=True)
class StepRuns:
    """What there is of the runs of a step.

    Attributes:
        runs: by the index of their task.
        lost: ids that are not there any more.
    """

    runs: dict[int, AnyRun]
    lost: tuple[str, ...] = ()

    @property
    def pending(self) -> list[AnyRun]:
        """Those that still wait or measure."""
        return [run for run in self.runs.values() if run.active]

    @property
    def failed(self) -> list[AnyRun]:
        """Those that ended without everything that was asked for."""
        return [run for run in self.runs.values() if run.state in (RunState.FAILED, RunState.CANCELLED)]

    @property
    def measured(self) -> dict[int, Measured]:
        """What came of them so far, by index."""
        found = {index: _measured(run) for index, run in self.runs.items()}
        return {index: measured for index, measured in found.items() if measured}

    @property
    def finished_utc(self) -> str | None:
        """When the oldest of them ended."""
        return min((run.finished_utc for run in self.runs.values() if run.finished_utc), default=None)


def found_runs(ids: Sequence[str | None], tasks: Sequence[StepTask]) -> StepRuns:
    """Return the runs of a step by their ids."""
    runs, lost = dict[int, AnyRun](), []
    for index, (run_id, task) in enumerate(zip(ids, tasks, strict=False)):
        if run_id is None or task.work is None:
            continue
        try:
            runs[index] = fetch_activity(run_id) if isinstance(task.work, Activity) else fetch(run_id)
        except NotFound:
            lost.append(run_id)
    return StepRuns(runs, tuple(lost))


def submit(tasks: Sequence[StepTask], reuse: Sequence[AnyRun | None] = (), *, join: bool = True) -> list[str | None]:
    """Queue what is to be measured; return the ids in the order of `tasks`, None where nothing has to be.

    Args:
        tasks: of a step.
        reuse: runs to take instead, in the same order.
        join: whether any visitor's run that has begun, and that measures exactly the same, is taken instead.

    Raises:
        InvalidInput: a limit of the queue is reached, or the visitor may not measure.
    """
    known = [*reuse, *[None] * (len(tasks) - len(reuse))]
    ids = [run.id if run else _submitted(task, join=join) for task, run in zip(tasks, known, strict=True)]
    changed()
    return ids


def alike(tasks: Sequence[StepTask]) -> list[AnyRun | None]:
    """Return for each task what was measured here alike within the hour, undisturbed and with the same versions."""
    return [_alike(task.work) if task.work is not None else None for task in tasks]


def age_s(run: AnyRun, now: datetime | None = None) -> float:
    """Return how many seconds ago a run ended."""
    ended = datetime.fromisoformat(run.finished_utc) if run.finished_utc else datetime.now(UTC)
    return max(0.0, ((now or datetime.now(UTC)) - ended).total_seconds())


def _submitted(task: StepTask, *, join: bool) -> str | None:
    """Return the id of the run that does the task: one that another reader has just begun, or else a new one."""
    if task.work is None:
        return None
    check(Right.MEASURE)
    seconds = None if isinstance(task.work, Activity) else task.seconds
    if join:
        return store().ask(task.work, owner(), estimated_s=seconds, address=address())
    if isinstance(task.work, Activity):
        return store().submit(task.work, owner(), address=address())
    return store().submit(task.work, owner(), estimated_s=seconds, address=address())


def _alike(work: Work) -> AnyRun | None:
    here = tuple(device for device_id in work.devices for device in devices_of(device_id))
    return ALIKE.get((work, here, moment(LOOKS)), lambda: _newest_alike(work, here))


def _newest_alike(work: Work, here: Sequence[Device]) -> AnyRun | None:
    """Return the newest run alike that was done on one of the devices `here`: machines may share a database."""
    since_utc = (datetime.now(UTC) - timedelta(hours=1)).isoformat(timespec="microseconds")
    if isinstance(work, Activity):
        done = store().newest_activity(work, since_utc, device_keys={device_key(device) for device in here})
        return done if done and done.software == installed_versions() else None
    run = store().newest_alike(work, since_utc)
    return run if run and all(_is_undisturbed(result) and _is_of(result, here) for result in run.results) else None


def _is_of(result: Result, here: Sequence[Device]) -> bool:
    """Return whether a result was measured on one of the devices `here`, or has nothing that depends on where."""
    device = result.environment.device if result.environment else None
    return device is None or any(same_device(device, other) for other in here)


def _is_undisturbed(result: Result) -> bool:
    if any(flag.name in DOUBTFUL for flag in result.flags):
        return False
    return result.environment is None or (result.measurement is not None and _is_of_these_versions(result.environment))


def _is_of_these_versions(environment: Environment) -> bool:
    if environment.app_version != gpuexplore.__version__:
        return False
    return all(version_of(name) in (None, version) for name, version in environment.libraries.items())


def _measured(run: AnyRun) -> Measured:
    if isinstance(run, Run):
        return run.results
    return run.payloads[-1] if run.payloads and run.state is RunState.DONE else ()
