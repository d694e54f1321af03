"""The referee: claimed times and rates of a file against the limits of their GPUs and against predictions.

A claim is a row of CSV or JSON. Its columns may be called as people call them: see FIELDS and UNITS. A row that cannot
be read is a verdict, too, and does not stop the others.
"""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from gpuexplore.analysis.prediction import (
    CALLS_OF_TIMING,
    USUAL_CALLS,
    Conditions,
    Prediction,
    calibrate,
    conditions_stated,
    predict_each,
)
from gpuexplore.analysis.prediction.request import calls_named
from gpuexplore.core import (
    Case,
    Device,
    GpuExploreError,
    InvalidInput,
    NotFound,
    Shape,
    check_text,
    read_number,
    read_rate,
    readable,
)
from gpuexplore.core.dtypes import format_named
from gpuexplore.features.fact_check.analysis.possible import Hints, judged, seconds_at, seconds_of
from gpuexplore.hardware import ACCELERATORS, accelerator_named, as_device, gpu_named
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.recorded.harnesses import kind_of
from gpuexplore.shapes import parse_shape

MOST_BYTES = 20_000_000
MOST_CLAIMS = 100_000
VERDICTS = ("above_roof", "invalid", "unknown", "slow", "as_known")  # the worst first
FIELDS = {  # columns by their names, in lower case with underscores; of several the first counts
    name: field
    for field, names in {
        "name": "name id title label submission entry team",
        "gpu": "gpu_key spec_key gpu gpu_name accelerator card hardware device_name device",
        "operation": "operation op operator workload",
        "dtype": "dtype data_type datatype precision",
        "shape": "shape size problem_size sizes shapes",
        "implementation": "implementation impl library backend provider",
        "calls": "calls call_kind",
        "timing": "timing timer",
        "conditions": "conditions",
        "sparsity": "sparsity sparse",
        "mask": "mask causal is_causal masked",
        "data": "data inputs input_data",
        "cache": "cache cache_state l2",
    }.items()
    for name in names.split()
}
UNITS = (  # columns of times and rates, and the unit of a bare number in them
    {
        f"{word}{suffix}": unit
        for word in ("time", "latency", "runtime", "duration", "elapsed", "median", "mean", "min", "best", "avg")
        for suffix, unit in {"_s": "s", "_sec": "s", "_ms": "ms", "_us": "us", "_µs": "us", "_ns": "ns"}.items()
    }
    | {"seconds": "s", "ms": "ms", "us": "us", "ns": "ns"}
    | dict.fromkeys(("time", "latency", "runtime", "duration", "elapsed", "rate", "throughput", "bandwidth"), "")
    | {
        f"{word}{prefix}{name}": f"{prefix.upper()}{unit}"
        for word in ("", "rate_", "throughput_", "bandwidth_", "performance_")
        for prefix in ("", "g", "t", "p")
        for name, unit in {
            "flop_s": "FLOP/s",
            "flops_s": "FLOP/s",
            "flop_per_s": "FLOP/s",
            **({"flops": "FLOP/s", "b_s": "B/s", "bs": "B/s", "b_per_s": "B/s"} if prefix else {}),
            "bytes_per_s": "B/s",
        }.items()
    }
)
AXES = {axis for operation in OPERATIONS.values() for axis in operation.axes}
QUALIFIERS = re.compile("^((median|mean|average|avg|min|best|kernel|gpu|device|achieved|measured|claimed)_)+")
OPERATION_NAMES: Mapping[str, str] = {
    "gemm": "matmul",
    "mm": "matmul",
    "bmm": "batched_matmul",
    "gemv": "matvec",
    "sdpa": "attention",
    "flash_attention": "attention",
    "layernorm": "layer_norm",
    "convolution": "conv2d",
    "memcpy": "copy",
    "sum": "reduce_sum",
    "add": "vector_add",
}
HINTS: Mapping[str, Mapping[str, Any]] = {  # words of a column, and the hint or the flag they are
    "sparsity": {
        **dict.fromkeys(("2:4", "structured", "yes", "true", "1"), "sparse"),
        **dict.fromkeys(("none", "dense", "no", "false", "0"), None),
    },
    "mask": {
        **dict.fromkeys(("causal", "yes", "true", "1"), "causal"),
        **dict.fromkeys(("none", "full", "no", "false", "0"), None),
    },
    "cache": dict.fromkeys(("cold", "flushed", "cleared"), "cold") | {"warm": None, "both": None},
    "data": dict.fromkeys(("zeros", "zero", "ones", "constant"), "zeros") | {"normal": None, "random": None},
}
NOTES: Mapping[str, str] = {
    "sparse": "claimed with 2:4 sparsity, its zeros counted",
    "zeros": "measured on constant data, which draws less power: compare with random data",
}


class _StatedCall(NamedTuple):
    """One claim, read.

    Attributes:
        case: what was computed, on the usual device of this name.
        devices: what the name may stand for, the usual one first.
        time_s: of a call; the shortest of all that were stated, bytes per second only where nothing else was.
        rounded: how much the figure may be rounded, relative.
        hints: of HINTS, which change its limits or are noted.
    """

    case: Case
    devices: tuple[Device, ...]
    time_s: float
    rounded: float
    hints: Hints


def verdicts_on(rows: Iterable[Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the verdict on each claim and how many there are of each, as `gpuexplore check --claims --json` prints.

    Args:
        rows: as `rows_of` reads them; an error instead of a row is a verdict on it.
        defaults: what is stated of claims that state nothing else.
    """
    results: list[dict[str, Any]] = []
    groups: dict[Conditions, list[tuple[dict[str, Any], _StatedCall]]] = {}
    for number, row in enumerate(rows, start=1):
        result: dict[str, Any] = {
            "name": f"claim {number}",
            **dict.fromkeys(("verdict", "gpu", "time_s", "roof", "roof_time_s", "ratio", "predicted_s", "reason")),
            "possible_with": [],
        }
        results.append(result)
        try:
            fields = _fields(defaults) | _fields(row)
            result["name"] = readable(fields.get("name", f"claim {number}"), 60)
            groups.setdefault(_conditions(fields), []).append((result, _stated(fields)))
        except (GpuExploreError, ValueError) as error:
            result["verdict"] = "unknown" if isinstance(error, NotFound) else "invalid"
            result["reason"] = readable(str(error), 500)
    for conditions, group in groups.items():
        asked = [(replace(call.case, device=device.id), device) for _, call in group for device in call.devices]
        answers = iter(predict_each(asked, calibrate(), conditions))
        for entry, call in group:
            found = [_verdict(call, next(answers)) for _ in call.devices]
            entry.update(min(found, key=lambda each: each["verdict"] == "above_roof"))  # a name may be of several GPUs
    counts = Counter(result["verdict"] for result in results)
    return {"claims": len(results), **{verdict: counts[verdict] for verdict in VERDICTS}, "results": results}


def _verdict(call: _StatedCall, prediction: Prediction) -> dict[str, Any]:
    verdict, reason, nearest, possible = judged(prediction, call.time_s, call.rounded, call.hints)
    known = prediction.interval_s
    as_known = "slow" if known and call.time_s > known[1] else "as_known"
    return {
        "verdict": {"above the roof": "above_roof", "unknown": "unknown"}.get(verdict, as_known),
        "gpu": prediction.device.title,
        "time_s": call.time_s,
        "roof": nearest and {"overhead": "launch"}.get(nearest.bound, nearest.bound),
        "roof_time_s": nearest and nearest.least_s,
        "ratio": nearest and nearest.least_s / call.time_s,
        "predicted_s": known and [known[0], prediction.time_s, known[1]],
        "reason": "; ".join((reason, *(note for hint, note in NOTES.items() if hint in call.hints))),
        "possible_with": list(possible),
    }


def _fields(row: Any) -> dict[str, str]:
    """Return the texts of a row by field; times, rates and lengths of axes under the names of their columns.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(row, Mapping):
        raise row if isinstance(row, InvalidInput) else InvalidInput.of("claim", row, "objects with columns")
    texts: dict[str, str] = {}
    for column, value in row.items():
        name = re.sub(r"[^a-z0-9µ]+", "_", str(column)[:60].casefold().replace("μ", "µ")).strip("_")
        name = name if name in FIELDS or name in UNITS else QUALIFIERS.sub("", name)
        if name in FIELDS or name in UNITS or name in AXES:
            words = [f"{axis}={length}" for axis, length in value.items()] if isinstance(value, Mapping) else value
            text = ",".join(map(str, words)) if isinstance(words, list) else str("" if words is None else words).strip()
            if text and (text.casefold() != "nan" or name in UNITS):
                texts[name] = text
    return texts | {field: texts[name] for name, field in reversed([*FIELDS.items()]) if name in texts}


def _conditions(fields: Mapping[str, str]) -> Conditions:
    timing = next((name for name in CALLS_OF_TIMING if name == fields.get("timing", "").casefold()), None)
    if "calls" in fields or timing is None:
        return Conditions(calls_named(fields.get("calls", USUAL_CALLS)))
    return conditions_stated(timing, fields.get("conditions", ""))


def _stated(fields: Mapping[str, str]) -> _StatedCall:
    """Return what a claim states.

    Raises:
        InvalidInput: names the bad value and the accepted ones.
        NotFound: nothing is known of its operation, or the unit of its figure.
    """
    for name, text in fields.items():
        check_text(name, text)
    if missing := [name for name in ("gpu", "operation", "dtype") if name not in fields]:
        raise InvalidInput(f"no {' and no '.join(missing)}; the columns that were read: {', '.join(fields) or 'none'}")
    name = re.sub("[ -]", "_", fields["operation"].casefold())
    name = OPERATION_NAMES.get(name, name)
    if name not in OPERATIONS:
        raise NotFound(f"operation {fields['operation']!r} is unknown: expected {', '.join(OPERATIONS)}")
    operation = operation_named(name)
    rows = [gpu_named(fields["gpu"])]
    while other := accelerator_named(fields["gpu"], {row.key for row in ACCELERATORS} - {row.key for row in rows}):
        rows.append(other)
    hints = {"cold"} if fields.get("timing") == "do_bench" else set()
    for field in HINTS.keys() & fields.keys():
        if fields[field].casefold() not in HINTS[field] and field in ("sparsity", "mask"):
            raise InvalidInput.of(field, fields[field], HINTS[field])
        hints.add(HINTS[field].get(fields[field].casefold()) or "")
    axes = ",".join(f"{axis}={fields[axis]}" for axis in operation.axes if axis in fields)
    text = re.sub(r"\.0+(?![0-9])", "", (fields.get("shape") or axes).replace(";", ","))
    # An axis that counts layers or arrays keeps to its limit: 2**40 layers would be listed one by one.
    shape = parse_shape(text, operation, measured=bool(operation.phases) or min(operation.limits.values()) < 10)
    flags = ((flag, 1) for flag in operation.flags if flag in hints and flag not in operation.flags_of(shape))
    named = (each.name for each in operation.implementations if each.name == fields.get("implementation"))
    implementation = next(named, operation.vendor_library.name)
    case = Case(name, Shape((*shape.axes, *flags)), format_named(fields["dtype"]).name, implementation, rows[0].key)
    return _StatedCall(case, tuple(map(as_device, rows)), *_time(fields, case), frozenset(hints))


def _time(fields: Mapping[str, str], case: Case) -> tuple[float, float]:
    """Return the shortest stated time of a call, and how much it may be rounded, relative."""
    quantities = [name for name in fields if name in UNITS]
    stated = []
    for name in quantities:
        text = fields[name] if read_number(fields[name]) is None else f"{fields[name].casefold()} {UNITS[name]}"
        if not text.endswith(" "):
            _, unit = read_rate(text) or (0, UNITS[name])
            time_s = seconds_at(text, case) if unit.endswith("/s") else seconds_of(text)
            digits = re.sub("^[^1-9]+|[^0-9]", "", re.split("[eE ]", text)[0])
            stated.append((unit.endswith("B/s"), time_s, min(0.05, 0.5 / int(digits[:9]))))
    if not quantities:
        raise InvalidInput("no time and no rate: expected a column like time_s, latency_us, tflops or gb_s")
    if not stated:
        raise NotFound(f"{quantities[0]} {fields[quantities[0]]!r} has no unit: expected 90us, 1.2PFLOP/s, or time_us")
    return min(stated)[1:]  # what others count as bytes may be more than each array once


def rows_of(text: str) -> Iterable[Any]:
    """Return the claims of a file's text: rows of CSV, a JSON array or lines of JSON; an error for one of no use.

    Raises:
        InvalidInput: it is empty, or of another kind.
    """
    text = text.removeprefix("\ufeff").strip()
    if text[:1] not in ("[", "{"):
        return _of_csv(text)
    try:
        whole = json.loads(text)
    except (RecursionError, ValueError) as error:
        if text.startswith("["):
            raise InvalidInput(f"no claims: invalid JSON: {error}") from error
        return map(_of_line, filter(str.strip, text.splitlines()))
    if kind := kind_of(whole):
        raise InvalidInput(f"no claims: this is {kind}")
    return whole if isinstance(whole, list) else [whole]


def _of_line(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return InvalidInput.of("line", line, "JSON")


def _of_csv(text: str) -> Iterator[Any]:
    lines = csv.reader(text.splitlines(keepends=True), delimiter=max(",;\t", key=text.partition("\n")[0].count))
    try:
        heading = [name.strip() for name in next(lines, [])]
        if twice := [name for name, count in Counter(heading).items() if count > 1]:
            raise InvalidInput.repeated("columns", twice)
        for cells in filter(any, lines):
            wrong = InvalidInput.of(f"line {lines.line_num}", f"{len(cells)} cells", f"{len(heading)} as in line 1")
            yield dict(zip(heading, cells, strict=True)) if len(cells) == len(heading) else wrong
    except csv.Error as error:
        raise InvalidInput(f"no claims: line {lines.line_num} is not CSV: {error}") from error
