"""Runs in files from other machines: exported reports and recordings, read strictly, or refused with reasons.

A file is taken whole or not at all: with a row that cannot be believed the others say less than they seem to.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from gzip import GzipFile
from io import BytesIO
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpuexplore.core import (
    LONGEST_TITLE,
    SCHEMA_VERSION,
    Case,
    Environment,
    Experiment,
    GpuExploreError,
    InvalidInput,
    Measurement,
    Options,
    Result,
    check_characters,
    decode_strictly,
    default_title,
    require,
)
from gpuexplore.operations.families import BENCHMARK
from gpuexplore.recorded.harnesses import READ, kind_of, results_of
from gpuexplore.recorded.validation import (
    CASES_BY,
    MOST_WORK,
    check_device,
    check_names,
    check_result,
    json_of,
    named,
    validate,
)

MOST_BYTES = 20_000_000
MOST_ROWS = 5000
MOST_NAMED = 5  # refused rows in a message
SUFFIXES = (".json", ".jsonl")
GZIP = b"\x1f\x8b"
GZIPPED = ".gz"
LONGEST_NAME = 60  # characters of a file's name that are kept


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run that a file holds.

    Attributes:
        origin: the file, and where it was measured.
    """

    title: str
    experiment: Experiment
    results: tuple[Result, ...]
    origin: str


def read_runs(name: str, content: bytes) -> tuple[ReadRun, ...]:
    """Return the runs that a file holds: one of an exported report, one an operation of a recording or other harness.

    Args:
        name: of the file, which ends in one of SUFFIXES, or in one and `.gz`.
        content: of it.

    Raises:
        InvalidInput: it is too large, of another type or schema, or holds what cannot be; a sentence for each row.
    """
    check_characters("file", name)
    name, content = _unpacked(name, content)
    suffix = Path(name).suffix.lower()
    require(len(content) <= MOST_BYTES, "file", f"{len(content):,} bytes", f"at most {MOST_BYTES:,}")
    if suffix not in SUFFIXES:
        if kind := kind_of(content.partition(b"\n")[0].decode("utf-8-sig", errors="replace").strip()):
            raise InvalidInput(f"{name[:LONGEST_NAME]} is {kind}")
        raise InvalidInput.of("file type", suffix or name[:LONGEST_NAME], SUFFIXES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{name}: not UTF-8 text: byte {error.start}") from error
    return _of_recording(name, text) if suffix == ".jsonl" else _of_json(name, text)


def _unpacked(name: str, content: bytes) -> tuple[str, bytes]:
    """Return a file decompressed if its first bytes are gzip's (RFC 1952, 2.3.1): pyperf's `.json.gz`."""
    if not content.startswith(GZIP):
        return name, content
    inside = name[: -len(GZIPPED)] if name.lower().endswith(GZIPPED) else name
    try:
        with GzipFile(fileobj=BytesIO(content)) as packed:
            unpacked = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{name[:LONGEST_NAME]}: not a complete gzip file") from error
    require(len(unpacked) <= MOST_BYTES, "file", f"over {MOST_BYTES:,} bytes when unpacked", f"at most {MOST_BYTES:,}")
    return inside, unpacked


def _of_recording(name: str, text: str) -> tuple[ReadRun, ...]:
    if text.count("\n") > MOST_ROWS:
        raise InvalidInput.of("file", f"{text.count(chr(10)):,} rows", f"at most {MOST_ROWS:,}")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "recording.jsonl"
        path.write_text(text, encoding="utf-8")
        try:
            recording = validate(path)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(path.name, name[:LONGEST_NAME])) from error
    return tuple(
        ReadRun(default_title(run.experiment), run.experiment, run.results, origin_of(_short(name), run.results))
        for run in recording.as_runs()
    )


def _of_json(name: str, text: str) -> tuple[ReadRun, ...]:
    data = _parsed(name, text)
    if isinstance(data, Mapping) and "schema_version" not in data and (found := results_of(name, data)):
        return _of_harness(name, *found)
    if kind := kind_of(data):
        raise InvalidInput(f"{name} is {kind}")
    if not isinstance(data, Mapping):
        raise InvalidInput(f"{name}: not a JSON object")
    if "schema_version" not in data:
        keys = ", ".join(map(str, [*data][:MOST_NAMED])) or "none"
        raise InvalidInput(
            f"{name}: unknown format, without 'schema_version'; its keys are {keys[:LONGEST_NAME]}; {READ}"
        )
    return (_of_report(name, data),)


def _of_harness(name: str, harness: str, found: Sequence[Result]) -> tuple[ReadRun, ...]:
    """Return a run of the results of each operation under the same conditions, with what is unknown of them."""
    require(len(found) <= MOST_ROWS, "file", f"{len(found):,} benchmarks", f"at most {MOST_ROWS:,}")
    groups: dict[tuple[str, Options], list[Result]] = {}
    for result in found:
        groups.setdefault((result.case.operation, result.case.options), []).append(result)
    return tuple(_run_of(name, harness, operation, results) for (operation, _), results in groups.items())


def _run_of(name: str, harness: str, operation: str, results: Sequence[Result]) -> ReadRun:
    cases = [result.case for result in results]
    names = tuple(dict.fromkeys(case.implementation for case in cases))
    experiment = Experiment(
        operation,
        shapes=tuple(dict.fromkeys(case.shape for case in cases)),
        dtypes=tuple(dict.fromkeys(case.dtype for case in cases)),
        implementations=names,
        devices=tuple(dict.fromkeys(case.device for case in cases)),
        options=cases[0].options,
    )
    _check_size({axis: getattr(experiment, axis) for axis in CASES_BY})
    unknown = [
        *(["correctness was not checked by gpuexplore"] if any(result.accuracy is None for result in results) else []),
        *(
            ["one value of each benchmark, no samples"]
            if all(result.measurement is None or result.measurement.is_single for result in results)
            else []
        ),
    ]
    origin = "; ".join((origin_of(f"{_short(name)} of {harness}", results), *unknown))
    title = f"{harness}: {', '.join(names)}" if operation == BENCHMARK.name else default_title(experiment)
    return ReadRun(
        title if len(title) <= LONGEST_TITLE else f"{harness}: {len(names)} benchmarks",
        experiment,
        tuple(results),
        origin,
    )


def _of_report(name: str, data: Mapping[str, Any]) -> ReadRun:
    if data.get("schema_version") is True or data.get("schema_version") != SCHEMA_VERSION:
        raise InvalidInput.of(f"schema_version of {name}", data.get("schema_version"), [SCHEMA_VERSION])
    with named(name):
        _check_size(data["experiment"])
        experiment = decode_strictly(Experiment, _with_shapes(data["experiment"]))
        check_names(experiment)
        shared, devices = _environment(data.get("environment"))
        rows = _list("results", data["results"])
    require(len(rows) <= MOST_ROWS, "file", f"{len(rows):,} rows", f"at most {MOST_ROWS:,}")
    results, refused = _results(rows, experiment, shared, devices)
    if refused:
        more = f"\n{len(refused) - MOST_NAMED} more rows were rejected" if len(refused) > MOST_NAMED else ""
        raise InvalidInput("\n".join(f"{name}: {reason}" for reason in refused[:MOST_NAMED]) + more)
    if not results:
        raise InvalidInput(f"{name} contains no results")
    origin = origin_of(_short(name), [*results.values()])
    return ReadRun(_title(data, experiment), experiment, tuple(results.values()), origin)


def _check_size(asked: object) -> None:
    """Raise when an experiment has more cases than rows may be, before they or its shapes are made one by one."""
    lists = (asked.get(axis) for axis in CASES_BY) if isinstance(asked, Mapping) else ()
    if (cases := prod(len(values) for values in lists if isinstance(values, Sequence))) > MOST_ROWS:
        raise InvalidInput.of("experiment", f"{cases:,} cases", f"at most {MOST_ROWS:,}")


def _results(
    rows: Sequence[Any], experiment: Experiment, shared: Mapping[str, Any], devices: Mapping[str, Any]
) -> tuple[Mapping[Case, Result], Sequence[str]]:
    """Return the results, and a reason for each row that holds none."""
    asked = set(experiment.cases())
    found = dict[Case, Result]()
    refused = list[str]()
    left = MOST_WORK
    for number, row in enumerate(rows, start=1):
        try:
            result = _result(row, shared, devices)
            if result.case not in asked:
                raise InvalidInput("its case is not in the file's experiment")
            if result.case in found:
                raise InvalidInput("its case appears twice")
            left -= check_result(result, left)
            found[result.case] = result
        except KeyError as error:
            refused.append(f"result {number}: no {error}")
        except (GpuExploreError, AttributeError, TypeError, ValueError) as error:
            refused.append(f"result {number}: {error}")
    return found, refused


def _result(row: Any, shared: Mapping[str, Any], devices: Mapping[str, Any]) -> Result:
    row = _object("result", row)
    case = _object("case", row["case"])
    case = {**case, "shape": _shape(case["shape"])}
    telemetry = _object("telemetry", row.get("telemetry") or {})
    environment = None
    if shared:
        environment = {**shared, **telemetry, "device": devices[case["device"]]}
    measurement = row.get("measurement")
    if measurement is not None:
        names = {field.name for field in fields(Measurement)}
        measurement = {name: value for name, value in _object("measurement", measurement).items() if name in names}
    accuracy = row.get("accuracy")
    kept = {name: row.get(name) for name in ("status", "reason", "flags", "seed")}
    whole_row = {**kept, "case": case, "measurement": measurement, "accuracy": accuracy, "environment": environment}
    return decode_strictly(Result, {name: value for name, value in whole_row.items() if value is not None})


def _environment(data: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return what all results share of their environments, and the devices by id; nothing where none is known."""
    if data is None:
        return {}, {}
    shared = _object("environment", data)
    devices = {str(device["id"]): device for device in _list("devices", shared["devices"])}
    names = {field.name for field in fields(Environment)}
    kept = {name: value for name, value in shared.items() if name in names and value is not None}
    decoded = [decode_strictly(Environment, {"commit": None, **kept, "device": device}) for device in devices.values()]
    for environment in decoded:
        check_device(environment.device)
    return {"commit": None, **kept}, devices


def _with_shapes(data: Any) -> Mapping[str, Any]:
    experiment = _object("experiment", data)
    return {**experiment, "shapes": [_shape(shape) for shape in _list("shapes", experiment["shapes"])]}


def _shape(data: Any) -> Mapping[str, Any]:
    return {"axes": [[name, length] for name, length in _object("shape", data).items()]}


def _title(data: Mapping[str, Any], experiment: Experiment) -> str:
    """Return the title that the file gives the run, where it can be one."""
    about = data.get("run")
    title = about.get("title") if isinstance(about, Mapping) else None
    if not isinstance(title, str) or not title.strip() or len(title) > LONGEST_TITLE:
        return default_title(experiment)
    try:
        check_characters("title", title)
    except InvalidInput:
        return default_title(experiment)
    return " ".join(title.split())


def origin_of(whence: str, results: Sequence[Result]) -> str:
    """Return the origin of imported results in words: `whence` they came, and the devices they were measured on."""
    devices = dict.fromkeys(result.environment.device.title for result in results if result.environment)
    return f"{whence}, measured on {', '.join(devices)}" if devices else whence


def _short(name: str) -> str:
    return Path(name).name[:LONGEST_NAME]


def _parsed(name: str, text: str) -> Any:
    try:
        return json_of(text)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"{name}: invalid JSON at line {error.lineno}: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput(f"{name}: brackets are nested too deep to be a report") from error
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from error


def _object(what: str, data: Any) -> Mapping[str, Any]:
    require(isinstance(data, Mapping), what, type(data).__name__, "objects")
    return data


def _list(what: str, data: Any) -> Sequence[Any]:
    require(isinstance(data, list), what, type(data).__name__, "lists")
    return data
