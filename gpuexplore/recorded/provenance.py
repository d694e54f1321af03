"""Where the numbers of a recording come from: who measured what, how, when, with which versions, on which devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from gpuexplore.model import SCHEMA_VERSION, Device, Experiment
from gpuexplore.serialization import encode

DRIVERLESS_KINDS = ("cpu",)  # what runs without a driver of its own


@dataclass(frozen=True, slots=True)
class Provenance:
    """The first line of a recording; the name of the host is left out on purpose.

    Attributes:
        recorded_utc: when the recording began, ISO 8601.
        recorded_by: who answers for it, for whoever has a question.
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
    """Return what a header does not tell: fields that are absent or empty, and drivers of devices that need one."""
    found = [field.name for field in fields(Provenance) if _is_empty(line.get(field.name))]
    return found + [
        f"driver of {device.get('id')}"
        for device in line.get("devices") or ()
        if isinstance(device, Mapping)
        and device.get("kind") not in DRIVERLESS_KINDS
        and _is_empty(device.get("driver"))
    ]


def _is_empty(value: object) -> bool:
    return not (value.strip() if isinstance(value, str) else value)
