"""Each environment is stored once: it is three quarters of a result, and the same for all results of a run.

What differs between two results of a run, when it was measured and the device's state then, stays with the result.
"""

import json
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from gpuexplore.store.database import upsert
from gpuexplore.store.tables import ENVIRONMENTS

OWN = ("started_utc", "before", "after")  # of each result


def take_out(payload: Any) -> tuple[Any, dict[str, Any] | None]:
    """Return an encoded result without what its environment shares with others, and that; None when it has none."""
    environment = payload.get("environment") if isinstance(payload, Mapping) else None
    if not isinstance(environment, Mapping) or not _has_device(environment):
        return payload, None
    own = {name: environment[name] for name in OWN if name in environment}
    shared = {name: value for name, value in environment.items() if name not in OWN}
    return {**payload, "environment": own}, shared


def shared_environments(connection: Connection, digests: Collection[str]) -> dict[str, Any]:
    """Return what results share of their environments, by digest."""
    wanted = select(ENVIRONMENTS.c.digest, ENVIRONMENTS.c.payload).where(ENVIRONMENTS.c.digest.in_(digests))
    return {row.digest: row.payload for row in connection.execute(wanted)}


def digest_of(environment: Mapping[str, Any]) -> str:
    """Return what names an environment: equal environments have one name."""
    return sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()[:32]


def keep(connection: Connection, environment: Mapping[str, Any]) -> str:
    """Store an environment unless it is there; return its digest."""
    digest = digest_of(environment)
    if connection.scalar(select(ENVIRONMENTS.c.digest).where(ENVIRONMENTS.c.digest == digest)) is None:
        upsert(connection, ENVIRONMENTS, row_of(digest, environment))  # another supervisor may store the same now
    return digest


def row_of(digest: str, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of an environment, by column."""
    device = environment["device"]
    named = {"device_name": device["name"], "spec_key": device.get("spec_key")}
    return {"digest": digest, **named, "payload": dict(environment)}


def _has_device(environment: Mapping[str, Any]) -> bool:
    device = environment.get("device")
    return isinstance(device, Mapping) and isinstance(device.get("name"), str)
