"""Reads a recording, or says in which file and line it tells too little to be shown beside other numbers."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import isfinite, prod
from pathlib import Path
from typing import Any

from gpuexplore.errors import GpuExploreError, InvalidInput
from gpuexplore.model import SCHEMA_VERSION, Case, Device, Environment, Experiment, Result, Status
from gpuexplore.recorded.figures import MOST_WORK, check_device, check_names, check_result
from gpuexplore.recorded.provenance import Provenance, missing_provenance
from gpuexplore.recorded.recording import Recording
from gpuexplore.serialization import decode_strictly

SAME_AS_IN_THE_HEADER = (
    *("id", "kind", "name", "driver", "cores", "memory_bytes", "compute_capability", "spec_key", "identity"),
)
CASES_BY, MOST_CASES = ("shapes", "devices", "dtypes", "implementations"), 100_000
MOST_DIGITS = 300  # a floating-point number has no more
COMMIT = re.compile(r"[0-9a-f]{7,40}")


def validate(path: Path, *, now: datetime | None = None) -> Recording:
    """Return the recording in the file `path`.

    Args:
        now: the present, for tests; nothing can have been measured after it.

    Raises:
        InvalidInput: names the file, the line and what is missing or wrong there.
    """
    now = now or datetime.now(UTC)
    with named(path.name):
        first, *others = path.read_text(encoding="utf8").splitlines() or [""]
    with named(f"{path.name}, line 1"):
        provenance, experiments = _header(_parsed(first), now)
    counts = (prod(len(getattr(experiment, axis)) for axis in CASES_BY) for experiment in experiments)
    if (count := sum(counts)) > MOST_CASES:
        raise InvalidInput.of(f"{path.name}, line 1: experiments", f"{count:,} cases", f"at most {MOST_CASES:,}")
    asked = {case for experiment in experiments for case in experiment.cases()}
    results: dict[Case, Result] = {}
    left = MOST_WORK
    for number, line in enumerate(others, start=2):
        with named(f"{path.name}, line {number}"):
            result = decode_strictly(Result, _parsed(line))
            _check_case(result.case, asked, results)
            left -= check_result(result, left)
            _check_environment(result, provenance, now)
        results[result.case] = result
    return Recording(path.stem, provenance, experiments, tuple(results.values()))


@contextmanager
def named(place: str) -> Iterator[None]:
    """Turn whatever is wrong with a line into an InvalidInput that names the place."""
    try:
        yield
    except KeyError as error:
        raise InvalidInput(f"{place}: no {error}") from error
    except RecursionError as error:
        raise InvalidInput(f"{place}: brackets are nested too deep to be a recording") from error
    except OSError as error:
        raise InvalidInput(f"{place}: {error.strerror}") from error
    except (GpuExploreError, TypeError, ValueError) as error:
        raise InvalidInput(f"{place}: {error}") from error


def _parsed(line: str) -> Mapping[str, Any]:
    try:
        value = json.loads(line, parse_constant=finite, parse_float=finite, parse_int=whole)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{line.strip()[:40]!r} is no JSON object that ends on this line: {error.msg}") from error
    if not isinstance(value, Mapping):
        raise InvalidInput("this is no JSON object")
    return value


def whole(text: str) -> int:
    """Return a whole number of a file.

    Raises:
        InvalidInput: it has more digits than any quantity.
    """
    if len(text) > MOST_DIGITS:
        raise InvalidInput.of("number", text, f"those of up to {MOST_DIGITS} digits")
    return int(text)


def finite(text: str) -> float:
    """Return a number of a file.

    Raises:
        InvalidInput: it is infinite or NaN.
    """
    number = float(text)
    if not isfinite(number):
        raise InvalidInput.of("number", text, "finite ones")
    return number


def _header(line: Mapping[str, Any], now: datetime) -> tuple[Provenance, tuple[Experiment, ...]]:
    if line.get("schema_version") is True or line.get("schema_version") != SCHEMA_VERSION:
        raise InvalidInput.of("schema_version", line.get("schema_version"), [SCHEMA_VERSION])
    missing = missing_provenance(line)
    if missing:
        raise InvalidInput(f"without provenance no number is shown; missing: {', '.join(missing)}")
    provenance = decode_strictly(Provenance, line)
    check_commit(provenance.commit)
    ids = [device.id for device in provenance.devices]
    if len(set(ids)) != len(ids):
        raise InvalidInput.repeated("devices", ids)
    for device in provenance.devices:
        check_device(device)
    if _moment(provenance.recorded_utc) > now:
        raise InvalidInput.of("recorded_utc", provenance.recorded_utc, "moments that have passed")
    return provenance, _experiments(line, {device.id for device in provenance.devices})


def check_commit(commit: str) -> None:
    """Raise when `commit` names no state of the code."""
    if not COMMIT.fullmatch(commit):
        raise InvalidInput.of("commit", commit, "7 to 40 hexadecimal digits")


def _experiments(line: Mapping[str, Any], device_ids: Collection[str]) -> tuple[Experiment, ...]:
    found = decode_strictly(tuple[Experiment, ...], line.get("experiments") or ())
    if not found:
        raise InvalidInput("no experiments: without them the results cannot be told from a selection")
    names = [experiment.operation for experiment in found]
    if len(set(names)) != len(names):
        raise InvalidInput.repeated("operations", names)
    for experiment in found:
        _check_names(experiment, device_ids)
    return found


def _check_names(experiment: Experiment, device_ids: Collection[str]) -> None:
    """Raise when this version does not know what was measured, or the header does not know the device."""
    check_names(experiment)
    for device in experiment.devices:
        if device not in device_ids:
            raise InvalidInput.of("device", device, sorted(device_ids))


def _check_case(case: Case, asked: Collection[Case], known: Collection[Case]) -> None:
    words = f"{case.operation} {case.shape} {case.dtype} {case.implementation} on {case.device}"
    if case not in asked:
        raise InvalidInput(f"{words} is in no experiment of the header, with its options")
    if case in known:
        raise InvalidInput(f"{words} stands there twice")


def _check_environment(result: Result, provenance: Provenance, now: datetime) -> None:
    """Raise when the circumstances of a measurement are unknown, or are not those of the header."""
    environment = result.environment
    if environment is None:
        if result.status is Status.OK:
            raise InvalidInput("a measurement without its environment")
        return
    _check_device(environment.device, result.case, provenance)
    _check_moment(environment, provenance, now)
    if environment.commit is not None and environment.commit != provenance.commit:
        raise InvalidInput(f"measured at commit {environment.commit!r}, by the header at {provenance.commit!r}")
    if result.status is Status.OK and not environment.libraries:
        raise InvalidInput("a measurement without the versions of its libraries")


def _check_device(device: Device, case: Case, provenance: Provenance) -> None:
    in_header = next(known for known in provenance.devices if known.id == case.device)
    for name in SAME_AS_IN_THE_HEADER:
        value, expected = getattr(device, name), getattr(in_header, name)
        if value != expected:
            raise InvalidInput(f"{name} of the device is {value!r}, in the header {expected!r}")
    check_device(device)


def _check_moment(environment: Environment, provenance: Provenance, now: datetime) -> None:
    if not _moment(provenance.recorded_utc) <= _moment(environment.started_utc) <= now:
        accepted = f"from {provenance.recorded_utc}, when the recording began, to the present"
        raise InvalidInput.of("started_utc", environment.started_utc, accepted)


def _moment(text: str) -> datetime:
    """Return the moment that ISO 8601 text in UTC stands for."""
    accepted = "ISO 8601 in UTC, like 2026-01-02T03:04:05+00:00"
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput.of("time", text, accepted) from error
    if found.utcoffset() != timedelta(0):
        raise InvalidInput.of("time", text, accepted)
    return found
