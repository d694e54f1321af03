"""Looking accelerators up by what a person types: `gpuexplore specs NAME` and the searchable table."""

from collections.abc import Iterable
from typing import Any

from gpuexplore.devices.accelerators import (
    ACCELERATORS,
    Accelerator,
    as_device,
    bandwidth_of,
    match,
    peaks_of,
    rows_named,
)
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Device, Peak


def search(query: str) -> tuple[Accelerator, ...]:
    """Return the rows that hold every word of `query` in any of their names; all for an empty query."""
    words = query.casefold().split()
    return tuple(row for row in ACCELERATORS if all(word in _text(row) for word in words))


def _text(row: Accelerator) -> str:
    names = (row.key, row.name, *row.driver_names, row.vendor, row.architecture, row.chip, row.compute_capability)
    return " ".join(names).casefold()


def accelerator_named(query: str) -> Accelerator | None:
    """Return the row with this driver name, key or display name, or None; no part of a name is enough."""
    wanted = query.strip().casefold()
    named = (row for row in ACCELERATORS if wanted in (row.key.casefold(), row.name.casefold()))
    return match(query.strip()) or next(named, None)


def target_named(query: str, here: Iterable[Device]) -> Device:
    """Return the device a person means: one of `here` by its id, name or title, else a row of the table.

    Raises:
        InvalidInput: there is none; names those of the table that are near.
    """
    wanted = query.strip()
    places = tuple(here)
    known = next((place for place in places if wanted in (place.id, place.name, place.title)), None)
    if known is not None:
        return known
    row = accelerator_named(wanted)
    if row is None:
        near = ", ".join(row.name for row in search(wanted)[:5])
        ids = ", ".join(place.id for place in places) or "none"
        accepted = f"names and keys of `specs`{f', near: {near}' if near else ''}; devices of this machine: {ids}"
        raise InvalidInput.of("gpu", query, accepted)
    return as_device(row)


def peaks_json(query: str) -> dict[str, Any]:
    """Return what `gpuexplore specs NAME --json` prints; `key` is None for an unknown name.

    A dtype with both units is given with its matrix unit. `kind` is that of all of them, `mixed` where the vendor
    prints some and others are derived: each says its own. `same_driver_name` lists other rows that a driver gives the
    same name.
    """
    row = accelerator_named(query)
    bandwidth = bandwidth_of(row) if row else None
    peaks = _matrix_first(peaks_of(row) if row else ())
    return {
        "query": query,
        "key": row.key if row else None,
        "kind": _kind(peaks),
        "peaks": {peak.dtype: _peak_json(peak) for peak in peaks},
        "bandwidth_bytes_per_s": bandwidth.bytes_per_s if bandwidth else None,
        "bandwidth_kind": bandwidth.kind if bandwidth else None,
        "bandwidth_source": bandwidth.source if bandwidth else None,
        "memory_bytes": row.memory_bytes if row else None,
        "confidence": row.confidence if row else None,
        "notes": (row.notes or None) if row else None,
        "same_driver_name": _same_driver_name(row) if row else [],
    }


def _same_driver_name(row: Accelerator) -> list[str]:
    """Return the keys of other rows whose cards a driver calls the same."""
    found = (other.key for name in row.driver_names for other in rows_named(name))
    return [key for key in dict.fromkeys(found) if key != row.key]


def _kind(peaks: list[Peak]) -> str | None:
    kinds = {peak.kind for peak in peaks}
    return "mixed" if len(kinds) > 1 else next(iter(kinds), None)


def _matrix_first(peaks: tuple[Peak, ...]) -> list[Peak]:
    matrix = {peak.dtype for peak in peaks if peak.unit == "matrix"}
    return [peak for peak in peaks if peak.unit == "matrix" or peak.dtype not in matrix]


def _peak_json(peak: Peak) -> dict[str, Any]:
    return {"flop_per_s": peak.flop_per_s, "unit": peak.unit, "kind": peak.kind, "source": peak.source}
