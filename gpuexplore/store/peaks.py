"""Peaks that users entered for devices whose datasheet is not known."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from sqlalchemy import ColumnElement, and_, delete, insert, select

from gpuexplore.errors import InvalidInput
from gpuexplore.model import Peak, Unit
from gpuexplore.serialization import decode, encode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import OWN_PEAKS


def own_peaks(database: Database, owner: str) -> Mapping[str, tuple[Peak, ...]]:
    """Return the peaks `owner` entered, by the device's name."""
    wanted = select(OWN_PEAKS).where(OWN_PEAKS.c.owner == owner)
    order = (OWN_PEAKS.c.device_name, OWN_PEAKS.c.dtype, OWN_PEAKS.c.unit)
    found: dict[str, tuple[Peak, ...]] = {}
    with database.reading() as connection:
        for row in connection.execute(wanted.order_by(*order)):
            found[row.device_name] = (*found.get(row.device_name, ()), decode(Peak, row.payload))
    return found


def set_own_peak(database: Database, owner: str, device_name: str, *, peak: Peak) -> None:
    """Keep `peak` for this owner and device, in place of one for the same dtype and unit.

    Raises:
        InvalidInput: the peak's kind is not `own`, or its rate is no positive number.
    """
    if peak.kind != "own":
        raise InvalidInput.of("kind of peak", peak.kind, ("own",))
    if not (isfinite(peak.flop_per_s) and peak.flop_per_s > 0):
        raise InvalidInput.of("peak", peak.flop_per_s, "positive numbers of FLOP/s")
    key = {"owner": owner, "device_name": device_name, "dtype": peak.dtype, "unit": peak.unit}
    with database.writing() as connection:
        connection.execute(delete(OWN_PEAKS).where(_is(key)))
        connection.execute(insert(OWN_PEAKS).values(**key, payload=encode(peak)))


def delete_own_peak(database: Database, owner: str, device_name: str, *, dtype: str, unit: Unit) -> None:
    """Forget a peak; nothing happens when there is none."""
    key = {"owner": owner, "device_name": device_name, "dtype": dtype, "unit": unit}
    with database.writing() as connection:
        connection.execute(delete(OWN_PEAKS).where(_is(key)))


def _is(key: Mapping[str, Any]) -> ColumnElement[bool]:
    return and_(*(OWN_PEAKS.c[name] == value for name, value in key.items()))
