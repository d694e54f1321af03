"""Results as rows store them: environments stored once, and what this version makes of what another one wrote.

An environment is three quarters of a result, and the same for all results of a run; what differs between two of them,
when each was measured and the device's state then, stays with the result. A row that this version does not understand
never ends a page of all.
"""

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, select

from gpuexplore.activity import Activity, kind_named
from gpuexplore.core import Device, Environment, Experiment, GpuExploreError, NotFound, Result, Telemetry, decode
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware.identity import same_device
from gpuexplore.operations import operation_named
from gpuexplore.recorded.validation import check_device, check_names, check_shape
from gpuexplore.store.database import upsert
from gpuexplore.store.tables import ENVIRONMENTS

OWN = ("started_utc", "before", "after")  # of each result

LOG = logging.getLogger(__name__)
DECODE_ERRORS = (GpuExploreError, AttributeError, KeyError, TypeError, ValueError)


def experiment_of(run_id: str, payload: Any) -> Experiment:
    """Return the experiment of a row.

    Raises:
        NotFound: it is none, or of an operation this version does not know.
    """
    with _named(run_id):
        found = decode(Experiment, payload)
        operation_named(found.operation)
        return found


def activity_of(run_id: str, payload: Any) -> Activity:
    """Return the activity of a row.

    Raises:
        NotFound: it is none, or of a kind this version does not know.
    """
    with _named(run_id):
        found = decode(Activity, payload)
        kind_named(found.kind)
        return found


def results_of(
    run_id: str, rows: Iterable[tuple[Any, str | None, bool]], shared: Mapping[str, Any]
) -> tuple[Result, ...]:
    """Return the results of a run's rows, in their order.

    Args:
        run_id: of the run.
        rows: (payload, digest of its environment, whether it is provisional).
        shared: what results share of their environments, by digest; each is decoded once, for it takes longest.

    Raises:
        NotFound: one says what this version cannot read.
    """
    known: dict[str, Environment] = {}
    found = []
    for payload, digest, provisional in rows:
        own = payload.get("environment") if isinstance(payload, Mapping) else None
        if digest is not None and digest in shared and isinstance(own, Mapping):
            result = _result_in(run_id, payload, digest, shared=shared, known=known)
        else:  # an older version kept environments whole
            with _named(run_id):
                result = decode(Result, payload)
        found.append(replace(result, provisional=True) if provisional else result)
    return tuple(found)


def check_known(run_id: str, experiment: Experiment) -> None:
    """Raise NotFound when an experiment names what this version does not know, so that nothing can be said of it."""
    with _named(run_id):
        check_names(experiment)


def decodable(rows: Iterable[tuple[str, Any, str]], shared: Mapping[str, Any]) -> Iterator[tuple[str, Result]]:
    """Yield the results this version understands; the others are logged, once a run.

    Args:
        rows: (run's id, payload, digest of its environment).
        shared: what results share of their environments, by digest; each is decoded once, for it takes longest.
    """
    environments: dict[str, Environment] = {}
    for run_id, payload, digest in rows:
        try:
            found = _result_in(run_id, payload, digest, shared=shared, known=environments)
            with _named(run_id):
                operation = operation_named(found.case.operation)
                operation.implementation_named(found.case.implementation)
                dtype_named(found.case.dtype)
                check_shape(found.case.shape, operation)
                if found.environment:
                    check_device(found.environment.device)
        except NotFound as error:
            warn(str(error))
        else:
            yield run_id, found


def may_be_of(device: Device, environment: Any) -> bool:
    """Return whether results of this environment count as those of `device`, as far as is known."""
    try:
        return same_device(decode(Device, environment["device"]), device)
    except DECODE_ERRORS:
        return True


def _result_in(
    run_id: str, payload: Any, digest: str, *, shared: Mapping[str, Any], known: dict[str, Environment]
) -> Result:
    with _named(run_id):
        own = payload["environment"]
        if digest not in known:
            known[digest] = decode(Environment, {**shared[digest], **own})
        before, after = (decode(Telemetry, own.get(name, {})) for name in ("before", "after"))
        environment = replace(known[digest], started_utc=str(own["started_utc"]), before=before, after=after)
        return replace(decode(Result, {**payload, "environment": None}), environment=environment)


@lru_cache(maxsize=1000)
def warn(text: str) -> None:
    """Log `text`, once: pages read the same rows again and again."""
    LOG.warning("left out: %s", text)


@contextmanager
def _named(run_id: str) -> Iterator[None]:
    """Raise NotFound, with the name of the run, for what this version cannot decode."""
    try:
        yield
    except DECODE_ERRORS as error:
        reason = f"{type(error).__name__}: {error}"
        raise NotFound(
            f"run {run_id} contains data that this version of gpuexplore does not know ({reason})"
        ) from error


def take_out(payload: Any) -> tuple[Any, dict[str, Any] | None]:
    """Return an encoded result without what its environment shares with others, and that; None when it has none."""
    environment = payload.get("environment") if isinstance(payload, Mapping) else None
    device = environment.get("device") if isinstance(environment, Mapping) else None
    name = device.get("name") if isinstance(device, Mapping) else None
    if not isinstance(environment, Mapping) or not isinstance(name, str):
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
