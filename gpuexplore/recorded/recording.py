"""A recording and its results as runs: a page shows one like any finished run, under a link of its own."""

from dataclasses import dataclass

from gpuexplore.model import Case, Experiment, Progress, Result, Run, RunState
from gpuexplore.recorded.provenance import Provenance

RUN_PREFIX = "recorded-"  # the ids of the store have no hyphen
INTERRUPTED = "the recording was interrupted"


@dataclass(frozen=True, slots=True)
class Recording:
    """What one file holds.

    Attributes:
        name: the file's, without its suffix.
        provenance: where the results come from.
        experiments: what was asked for, each of another operation.
        results: as they came.
    """

    name: str
    provenance: Provenance
    experiments: tuple[Experiment, ...]
    results: tuple[Result, ...]

    @property
    def title(self) -> str:
        """The devices and the day, for a reader who chooses: ``NVIDIA L4, 2026-01-02``."""
        names = dict.fromkeys(device.title for device in self.provenance.devices)
        return f"{', '.join(names)}, {self.date}"

    @property
    def date(self) -> str:
        """The day it was recorded, UTC."""
        return self.provenance.recorded_utc.partition("T")[0]

    @property
    def missing(self) -> tuple[Case, ...]:
        """The cases that were asked for and have no result, as when the recording was interrupted."""
        found = {result.case for result in self.results}
        return tuple(case for experiment in self.experiments for case in experiment.cases() if case not in found)

    def results_of(self, operation: str) -> tuple[Result, ...]:
        """Return the results of one operation, in the order of its cases."""
        found = {result.case: result for result in self.results if result.case.operation == operation}
        asked = (
            case for experiment in self.experiments if experiment.operation == operation for case in experiment.cases()
        )
        return tuple(found[case] for case in asked if case in found)

    def as_runs(self) -> tuple[Run, ...]:
        """Return a run for each operation; one that an interruption left incomplete is CANCELLED, and says so."""
        return tuple(self._run(experiment) for experiment in self.experiments)

    def _run(self, experiment: Experiment) -> Run:
        results, total = self.results_of(experiment.operation), len(experiment.cases())
        complete = len(results) == total
        return Run(
            run_id_of(self.name, experiment.operation),
            owner=self.provenance.recorded_by,
            experiment=experiment,
            state=RunState.DONE if complete else RunState.CANCELLED,
            progress=Progress(len(results), total),
            results=results,
            reason=None if complete else INTERRUPTED,
            created_utc=self.provenance.recorded_utc,
        )


def run_id(recording: Recording, result: Result) -> str:
    """Return the id of the run that holds `result`: ``/?run=<id>`` shows it."""
    return run_id_of(recording.name, result.case.operation)


def run_id_of(name: str, operation: str) -> str:
    """Return the id of the run of one operation of the recording `name`."""
    return f"{RUN_PREFIX}{name}-{operation}"
