"""Results of earlier runs, whoever asked for them: what was measured on a device before."""

from collections.abc import Iterable

from sqlalchemy import select

from gpuexplore.model import Result, Status
from gpuexplore.serialization import decode
from gpuexplore.store.database import Database
from gpuexplore.store.tables import RESULTS

NEWEST = 500


def measured_on(
    database: Database, device_name: str, *, operations: Iterable[str] = (), limit: int = NEWEST
) -> tuple[Result, ...]:
    """Return the newest measured results of a device, newest first: of `operations`, or of all."""
    payload, names = RESULTS.c.payload, tuple(operations)
    wanted = select(payload).where(
        payload["status"].as_string() == Status.OK.value,
        payload[("environment", "device", "name")].as_string() == device_name,
    )
    if names:
        wanted = wanted.where(payload[("case", "operation")].as_string().in_(names))
    with database.reading() as connection:
        found = connection.scalars(wanted.order_by(RESULTS.c.number.desc()).limit(limit)).all()
    return tuple(decode(Result, one) for one in found)
