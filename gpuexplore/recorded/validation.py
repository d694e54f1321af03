"""Validation of recordings: errors name the file and the line that states too little or something impossible."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from math import isfinite, prod
from pathlib import Path
from typing import Any

from gpuexplore.core import (
    SCHEMA_VERSION,
    Case,
    Device,
    Experiment,
    GpuExploreError,
    InvalidInput,
    Result,
    Shape,
    Status,
    ThreadRoofs,
    check_known,
    decode_strictly,
    require,
)
from gpuexplore.core.dtypes import FORMATS, dtype_named
from gpuexplore.measure.check import Reference, make_inputs, tolerance, widest_tolerance, work
from gpuexplore.operations import AS_SUMMED, BENCHMARK, Growth, Operation, operation_named
from gpuexplore.recorded.recording import Provenance, Recording, missing_provenance

ROUNDING = 1e-9  # of a tolerance that was written as text
MOST_WORK = 2**28  # FLOPs and elements of all inputs and references that are made again for one file

CASES_BY = ("shapes", "devices", "dtypes", "implementations")


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
    most = 100_000
    if (count := sum(counts)) > most:
        raise InvalidInput.of(f"{path.name}, line 1: experiments", f"{count:,} cases", f"at most {most:,}")
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
        value = json_of(line)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{line.strip()[:40]!r} is not a JSON object on one line: {error.msg}") from error
    if not isinstance(value, Mapping):
        raise InvalidInput("not a JSON object")
    return value


def json_of(text: str) -> Any:
    """Return what JSON of a file says.

    Raises:
        JSONDecodeError: it is none.
        InvalidInput: a number in it is infinite or NaN, or has more digits than any quantity.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)


def _whole(text: str) -> int:
    most = 300  # a floating-point number has no more
    require(len(text) <= most, "number", text, f"those of up to {most} digits")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    require(isfinite(number), "number", text, "finite numbers")
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
    require(_moment(provenance.recorded_utc) <= now, "recorded_utc", provenance.recorded_utc, "a time in the past")
    return provenance, _experiments(line, {device.id for device in provenance.devices})


def check_commit(commit: str) -> None:
    """Raise when `commit` names no state of the code."""
    require(re.fullmatch(r"[0-9a-f]{7,40}", commit), "commit", commit, "7 to 40 hexadecimal digits")


def _experiments(line: Mapping[str, Any], device_ids: Collection[str]) -> tuple[Experiment, ...]:
    found = decode_strictly(tuple[Experiment, ...], line.get("experiments") or ())
    if not found:
        raise InvalidInput("no experiments: without them, a selection of the results would not be noticed")
    names = [experiment.operation for experiment in found]
    if len(set(names)) != len(names):
        raise InvalidInput.repeated("operations", names)
    for experiment in found:
        check_names(experiment)
        for device in experiment.devices:
            check_known("device", device, sorted(device_ids))
    return found


def _check_case(case: Case, asked: Collection[Case], known: Collection[Case]) -> None:
    words = f"{case.operation} {case.shape} {case.dtype} {case.implementation} on {case.device}"
    if case not in asked:
        raise InvalidInput(f"{words} is in no experiment of the header, with its options")
    if case in known:
        raise InvalidInput(f"{words} appears twice")


def _check_environment(result: Result, provenance: Provenance, now: datetime) -> None:
    """Raise when the circumstances of a measurement are unknown, or are not those of the header."""
    environment = result.environment
    if environment is None:
        if result.status is Status.OK:
            raise InvalidInput("a measurement without its environment")
        return
    in_header = next(known for known in provenance.devices if known.id == result.case.device)
    names = ("id", "kind", "name", "driver", "cores", "memory_bytes", "compute_capability", "spec_key", "identity")
    for name in names:
        value = getattr(environment.device, name)
        expected = getattr(in_header, name)
        if value != expected:
            raise InvalidInput(f"{name} of the device is {value!r}, in the header {expected!r}")
    check_device(environment.device)
    if not _moment(provenance.recorded_utc) <= _moment(environment.started_utc) <= now:
        accepted = f"from {provenance.recorded_utc}, when the recording began, to the present"
        raise InvalidInput.of("started_utc", environment.started_utc, accepted)
    if environment.commit is not None and environment.commit != provenance.commit:
        raise InvalidInput(f"measured at commit {environment.commit!r}, by the header at {provenance.commit!r}")
    if result.status is Status.OK and not environment.libraries:
        raise InvalidInput("a measurement without the versions of its libraries")


def _moment(text: str) -> datetime:
    """Return the moment that ISO 8601 text in UTC stands for."""
    accepted = "ISO 8601 in UTC, like 2026-01-02T03:04:05+00:00"
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput.of("time", text, accepted) from error
    require(found.utcoffset() == timedelta(0), "time", text, accepted)
    return found


# Figures that no device and no case can have: a recording that states one would draw wrong numbers.


def check_names(experiment: Experiment) -> None:
    """Raise when this version does not know an operation, implementation, dtype or shape of `experiment`."""
    operation = operation_named(experiment.operation)
    for implementation in experiment.implementations:
        operation.implementation_named(implementation)
    for dtype in experiment.dtypes:
        dtype_named(dtype)
    for shape in experiment.shapes:
        check_shape(shape, operation)


def check_shape(shape: Shape, operation: Operation) -> None:
    """Raise when `shape` is none of `operation`, or beyond its limits."""
    require(
        tuple(name for name, _ in shape.axes) == (*operation.axes, *operation.flags_of(shape)),
        f"axes of {operation.name}",
        shape,
        operation.axes,
    )
    for axis, length in shape.axes:
        most = operation.limits.get(axis, 1)
        require(length <= most, f"{axis} of {operation.name}", length, f"1 to {most}")
    if problem := operation.problem(shape):
        raise InvalidInput(f"shape {shape} of {operation.name}: {problem}")


def check_device(device: Device) -> None:
    """Raise when a figure of `device` is not above zero, or a peak is of an unknown format."""
    found = [(name, getattr(device, name)) for name in ("cores", "memory_bytes", "cache_bytes", "clock_hz")]
    found += [figure for roofs in (device, device.one_thread) if roofs for figure in _figures(roofs)]
    for name, value in found:
        if value is not None and value <= 0:
            raise InvalidInput.of(f"{name} of {device.id}", value, "numbers above 0; null where it is unknown")
    for peak in (*device.peaks, *(device.one_thread.peaks if device.one_thread else ())):
        check_known(f"peak of {device.id}", peak.dtype, FORMATS)


def _growth(result: Result) -> Growth:
    """Return the growth of roundings of the implementation where it was measured."""
    case = result.case
    device = result.environment.device if result.environment else None
    implementation = operation_named(case.operation).implementation_named(case.implementation)
    return implementation.growth(case.shape, dtype_named(case.dtype), device) if device else AS_SUMMED


def _figures(roofs: Device | ThreadRoofs) -> list[tuple[str, float]]:
    """Return the rates and sizes of a device, or of one thread of it, by name."""
    found: list[tuple[str, float]] = [(f"{peak.unit} peak of {peak.dtype}", peak.flop_per_s) for peak in roofs.peaks]
    found += [("bandwidth", roofs.bandwidth.bytes_per_s)] if roofs.bandwidth else []
    found += [("bandwidth with ordinary stores", roofs.ordinary_stores.bytes_per_s)] if roofs.ordinary_stores else []
    found += [(f"bandwidth of level {cache.level}", cache.bandwidth.bytes_per_s) for cache in roofs.caches]
    found += [("level of a cache", cache.level) for cache in roofs.caches]
    return found + [(f"size of level {cache.level}", cache.size_bytes) for cache in roofs.caches]


def check_result(result: Result, most_work: int = MOST_WORK) -> int:
    """Raise when a result contradicts itself: called OK with an error beyond its tolerance, or with a negative time.

    Args:
        result: of an untrusted file.
        most_work: FLOPs and elements that may be computed again for its tolerance.

    Returns:
        How many were.
    """
    accuracy = result.accuracy
    measurement = result.measurement
    if result.seed is not None and result.seed < 0:
        raise InvalidInput.of("seed", result.seed, "whole numbers from 0")
    if accuracy and not (accuracy.tolerance >= 0 and (accuracy.relative_error or 0.0) >= 0):
        raise InvalidInput.of("accuracy", accuracy.relative_error, "errors and tolerances from 0")
    if measurement is None or result.case.operation == BENCHMARK.name:
        return 0
    if accuracy is None:
        raise InvalidInput("ok without an accuracy: results must be checked before they are timed")
    if not accuracy.within:
        raise InvalidInput(f"ok with an error of {accuracy.relative_error}, beyond its tolerance {accuracy.tolerance}")
    most, spent = _most_tolerance(result, accuracy.tolerance, most_work)
    require(
        accuracy.tolerance <= most * (1 + ROUNDING),
        "tolerance",
        accuracy.tolerance,
        f"up to {most}, the limit of rounding",
    )
    if (measurement.first_call_s is not None and measurement.first_call_s <= 0) or measurement.batch < 1:
        values = f"{measurement.first_call_s}, {measurement.batch}"
        raise InvalidInput.of("first call and batch", values, "seconds above 0, and whole numbers from 1")
    return spent


def _most_tolerance(result: Result, claimed: float, most_work: int) -> tuple[float, int]:
    """Return the largest tolerance that rounding explains, and the FLOPs and elements that were computed for it."""
    operation = operation_named(result.case.operation)
    dtype = dtype_named(result.case.dtype)
    most = tolerance(operation, result.case.shape, dtype, _growth(result))
    if claimed <= most * (1 + ROUNDING) or result.seed is None:
        return most, 0
    widest = 0.1  # tolerance of what is too large for that, where a ReLU near zero or underflow can widen it
    if (needed := work(operation, result.case.shape)) > most_work:
        may_underflow = dtype.itemsize_bytes < 4 and not operation.is_matrix_product
        return max(most, widest if operation.across_kinks or may_underflow else 0.0), 0
    inputs = make_inputs(operation, result.case.shape, dtype, "normal", seed=result.seed)
    return widest_tolerance(Reference(operation, dtype, inputs, result.seed), result.case.shape), needed
