"""What a CPU's family and model number stand for: one row of microarchitectures.csv each, with its source."""

from dataclasses import dataclass

from gpuexplore.devices.accelerators import read_table


@dataclass(frozen=True, slots=True)
class Microarchitecture:
    """The numbers that CPUs of one microarchitecture state; `None` for any stepping."""

    vendor: str
    family: int
    models: range
    steppings: range | None
    name: str


def _row(row: dict[str, str]) -> Microarchitecture:
    steppings = _range(row["first_stepping"], row["last_stepping"]) if row["first_stepping"] else None
    models = _range(row["first_model"], row["last_model"])
    return Microarchitecture(row["vendor"], int(row["family"], 0), models, steppings, row["name"])


def _range(first: str, last: str) -> range:
    return range(int(first, 0), int(last, 0) + 1)


MICROARCHITECTURES = tuple(_row(row) for row in read_table("microarchitectures.csv"))


def microarchitecture_of(vendor: str | None, family: int | None, model: int | None, stepping: int | None) -> str | None:
    """Return e.g. `Zen 4`; None for numbers that are in no row: a neighbour's name would be a guess."""
    found = (
        row.name
        for row in MICROARCHITECTURES
        if (vendor, family) == (row.vendor, row.family)
        and model in row.models
        and (row.steppings is None or stepping in row.steppings)
    )
    return next(found, None)
