"""What this version makes of rows that another one wrote: a row it does not understand never ends a page of all."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any

from gpuexplore.activity import Activity, kind_named
from gpuexplore.devices.identity import same_device
from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import GpuExploreError, NotFound
from gpuexplore.model import Device, Environment, Experiment, Result, Telemetry
from gpuexplore.operations import operation_named
from gpuexplore.recorded.validation import check_device, check_names, check_shape
from gpuexplore.serialization import decode

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


def result_of(run_id: str, payload: Any) -> Result:
    """Return the result of a row.

    Raises:
        NotFound: it says what this version cannot read.
    """
    with _named(run_id):
        return decode(Result, payload)


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
            result = result_of(run_id, payload)
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
            _check_known_result(run_id, found)
        except NotFound as error:
            warn(str(error))
        else:
            yield run_id, found


def may_be_of(device: Device, environment: Any) -> bool:
    """Return whether results of this environment count as those of `device`, as far as can be told."""
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


def _check_known_result(run_id: str, result: Result) -> None:
    with _named(run_id):
        operation = operation_named(result.case.operation)
        operation.implementation_named(result.case.implementation)
        dtype_named(result.case.dtype)
        check_shape(result.case.shape, operation)
        if result.environment:
            check_device(result.environment.device)


@lru_cache(maxsize=1000)
def warn(text: str) -> None:
    """Log `text`, once: pages read the same rows again and again."""
    LOG.warning("left out: %s", text)


@contextmanager
def _named(run_id: str) -> Iterator[None]:
    """Turn whatever this version makes nothing of into a NotFound that names the run."""
    try:
        yield
    except DECODE_ERRORS as error:
        reason = f"{type(error).__name__}: {error}"
        raise NotFound(f"run {run_id} holds what this version of gpuexplore does not know ({reason})") from error
