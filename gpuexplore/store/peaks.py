"""Peaks and memory bandwidths that users entered for devices, by owner and the device's name."""

from collections.abc import Mapping
from math import isfinite
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Table, and_, delete, insert, select

from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Peak, PeakKind, Unit
from gpuexplore.serialization import decode, encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import OWN_BANDWIDTHS, OWN_PEAKS
from gpuexplore.store.tolerant_decode import DECODE_ERRORS, warn

P = TypeVar("P", Peak, Bandwidth)


def own_peaks(database: Database, owner: str) -> Mapping[str, tuple[Peak, ...]]:
    """Return the peaks `owner` entered, by the device's name."""
    wanted = select(OWN_PEAKS).where(OWN_PEAKS.c.owner == owner)
    order = (OWN_PEAKS.c.device_name, OWN_PEAKS.c.dtype, OWN_PEAKS.c.unit)
    found: dict[str, tuple[Peak, ...]] = {}
    with database.reading() as connection:
        for row in connection.execute(wanted.order_by(*order)):
            if peak := _usable(Peak, row.payload):
                found[row.device_name] = (*found.get(row.device_name, ()), peak)
    return found


def set_own_peak(database: Database, owner: str, device_name: str, *, peak: Peak) -> None:
    """Keep `peak` for this owner and device, in place of one for the same dtype and unit.

    Raises:
        InvalidInput: the peak's kind is not `own`, or its rate is no positive number.
    """
    _refuse(peak.kind, "peak", peak.flop_per_s, "FLOP/s")
    key = {"owner": owner, "device_name": device_name, "dtype": peak.dtype, "unit": peak.unit}
    _replace(database, OWN_PEAKS, key, encode(peak))


def delete_own_peak(database: Database, owner: str, device_name: str, *, dtype: str, unit: Unit) -> None:
    """Forget a peak; nothing happens when there is none."""
    key = {"owner": owner, "device_name": device_name, "dtype": dtype, "unit": unit}
    _delete(database, OWN_PEAKS, key)


def own_bandwidths(database: Database, owner: str) -> Mapping[str, Bandwidth]:
    """Return the memory bandwidths `owner` entered, by the device's name."""
    wanted = select(OWN_BANDWIDTHS).where(OWN_BANDWIDTHS.c.owner == owner).order_by(OWN_BANDWIDTHS.c.device_name)
    with database.reading() as connection:
        found = {row.device_name: _usable(Bandwidth, row.payload) for row in connection.execute(wanted)}
    return {name: one for name, one in found.items() if one}


def set_own_bandwidth(database: Database, owner: str, device_name: str, *, bandwidth: Bandwidth) -> None:
    """Keep `bandwidth` for this owner and device, in place of an earlier one.

    Raises:
        InvalidInput: its kind is not `own`, or its rate is no positive number.
    """
    _refuse(bandwidth.kind, "bandwidth", bandwidth.bytes_per_s, "bytes/s")
    _replace(database, OWN_BANDWIDTHS, {"owner": owner, "device_name": device_name}, encode(bandwidth))


def delete_own_bandwidth(database: Database, owner: str, device_name: str) -> None:
    """Forget a bandwidth; nothing happens when there is none."""
    _delete(database, OWN_BANDWIDTHS, {"owner": owner, "device_name": device_name})


def _usable(kind: type[P], payload: Any) -> P | None:
    """Return what was entered; None, with a line in the log, for a row nobody can have entered."""
    try:
        found = decode(kind, payload)
        rate = found.flop_per_s if isinstance(found, Peak) else found.bytes_per_s
        _refuse(found.kind, kind.__name__.lower(), rate, "a second")
    except DECODE_ERRORS as error:
        warn(f"own {kind.__name__.lower()} {str(payload)[:60]!r}: {type(error).__name__}: {error}")
        return None
    return found


def _refuse(kind: PeakKind, what: str, rate: float, unit: str) -> None:
    if kind != "own":
        raise InvalidInput.of(f"kind of {what}", kind, ("own",))
    if not (isfinite(rate) and rate > 0):
        raise InvalidInput.of(what, rate, f"positive numbers of {unit}")


def _replace(database: Database, table: Table, key: Mapping[str, str], payload: Any) -> None:
    with database.writing() as connection:
        connection.execute(delete(table).where(_is(table, key)))
        connection.execute(insert(table).values(**key, payload=payload))


def _delete(database: Database, table: Table, key: Mapping[str, str]) -> None:
    with database.writing() as connection:
        connection.execute(delete(table).where(_is(table, key)))


def _is(table: Table, key: Mapping[str, str]) -> ColumnElement[bool]:
    return and_(*(table.c[name] == value for name, value in key.items()))
