"""A recording: where its numbers come from, and its results as runs, which pages show like any finished run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gpuexplore.core import SCHEMA_VERSION, Case, Device, Experiment, Progress, Result, Run, RunState, encode


@dataclass(frozen=True, slots=True)
class Provenance:
    """The first line of a recording; the name of the host is left out on purpose.

    Attributes:
        recorded_utc: when the recording began, ISO 8601.
        recorded_by: who answers for it and can be asked.
        method: the program that measured, with its version.
        commit: of the code that measured.
        command: what repeats it.
        devices: as they were, each with its driver.
        libraries: versions by name.
        python: version.
        platform: operating system and processor family.
    """

    recorded_utc: str
    recorded_by: str
    method: str
    commit: str
    command: str
    devices: tuple[Device, ...]
    libraries: Mapping[str, str]
    python: str
    platform: str


def header(provenance: Provenance, experiments: Sequence[Experiment]) -> dict[str, Any]:
    """Return the first line of a recording's file."""
    return {"schema_version": SCHEMA_VERSION, **encode(provenance), "experiments": encode(experiments)}


def missing_provenance(line: Mapping[str, Any]) -> list[str]:
    """Return what a header lacks: fields that are absent or empty, and drivers of devices that need one."""
    found = [field.name for field in fields(Provenance) if _is_empty(line.get(field.name))]
    return found + [
        f"driver of {device.get('id')}"
        for device in line.get("devices") or ()
        if isinstance(device, Mapping) and device.get("kind") != "cpu" and _is_empty(device.get("driver"))
    ]


def _is_empty(value: object) -> bool:
    return not (value.strip() if isinstance(value, str) else value)


RUN_PREFIX = "recorded-"  # the ids of the store have no hyphen


@dataclass(frozen=True, slots=True)
class Recording:
    """The content of one file.

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
        results = self.results_of(experiment.operation)
        total = len(experiment.cases())
        complete = len(results) == total
        return Run(
            run_id_of(self.name, experiment.operation),
            owner=self.provenance.recorded_by,
            experiment=experiment,
            state=RunState.DONE if complete else RunState.CANCELLED,
            progress=Progress(len(results), total),
            results=results,
            reason=None if complete else "the recording was interrupted",
            created_utc=self.provenance.recorded_utc,
        )


def run_id(recording: Recording, result: Result) -> str:
    """Return the id of the run that holds `result`: ``/benchmark?run=<id>`` shows it."""
    return run_id_of(recording.name, result.case.operation)


def run_id_of(name: str, operation: str) -> str:
    """Return the id of the run of one operation of the recording `name`."""
    return f"{RUN_PREFIX}{name}-{operation}"
