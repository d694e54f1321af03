"""Tables of the chart of Explore: predicted lines and measured points of each operation, dtype and device."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from gpuexplore.analysis.prediction import Calibration, Calls, Conditions, calibrate, predict_each
from gpuexplore.analysis.utilization import is_ranked, shape_label
from gpuexplore.core import Case, Device, Result, Shape, format_seconds
from gpuexplore.core.dtypes import format_named
from gpuexplore.features.atlas.analysis.answers import case_of, work_of
from gpuexplore.hardware import table_device
from gpuexplore.operations import operation_named
from gpuexplore.request import Request, with_defaults
from gpuexplore.shapes import split


class _Offered(NamedTuple):
    """An operation that Explore offers: its short title, powers of two of its first and last size, its first size."""

    title: str
    first: int
    last: int
    usual: int


OFFERED = {
    "matmul": _Offered("Matmul", 6, 14, 4096),
    "attention": _Offered("Attention", 6, 14, 4096),
    "linear": _Offered("Linear layer", 4, 14, 1024),
    "conv2d": _Offered("Convolution", 3, 9, 64),
    "softmax": _Offered("Softmax", 6, 14, 1024),
    "layer_norm": _Offered("Layer norm", 6, 14, 1024),
    "vector_add": _Offered("Vector add", 10, 27, 2**24),
    "transformer_step": _Offered("Transformer step", 6, 12, 1024),
}
DTYPES_SHOWN = ("fp32", "bf16", "fp16")
GPUS = {  # rows of the table of accelerators, by their short names
    "h100-sxm5-80gb": "H100",
    "a100-sxm4-80gb": "A100",
    "l4": "L4",
    "t4": "T4",
    "b200-sxm-180gb": "B200",
    "rtx-4090": "RTX 4090",
    "mi300x": "MI300X",
}
FIRST_GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb", "l4", "t4")
CALLS: Calls = "queued"  # how calls follow one another where they are predicted
OWN = "measured here"
TIMES = ("time", "low", "high")
SHIPPED = Path(__file__).with_name("gpus.json")
MIN_INTENSITY, MAX_INTENSITY = 2.0**-4, 2.0**13  # FLOPs a byte, the ends of roofs
MAX_ASPECT = 4.0  # of a measured shape's axes to those of the size with as much work
VIEWS = {"time": "Time", "rate": "Rate", "roofline": "Roofline"}


@dataclass(frozen=True, slots=True)
class ExploreChoice:
    """Selection that a link opens the chart with.

    Attributes:
        operation: a key of OFFERED.
        dtype: one of DTYPES_SHOWN.
        keys: devices, of this machine or keys of GPUS.
        size: one of the operation's sizes.
        view: a key of VIEWS.
    """

    operation: str
    dtype: str
    keys: tuple[str, ...]
    size: int
    view: str

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of the chart; keys between commas, so that a part of a key is no key."""
        keys = f",{','.join(self.keys)},"
        return {"op": self.operation, "dtype": self.dtype, "gpus": keys, "n": str(self.size), "view": self.view}


@dataclass(frozen=True, eq=False)
class ExploreFacts:
    """The rows of the chart, the same for all visitors of a server.

    Attributes:
        devices: of this machine, drawn before the GPUs of the table.
        lines: predicted calls: operation, dtype, device, n, work, FLOPs a byte, and seconds with their 90 % interval.
        points: measured calls, with who measured them.
        roofs: corners of each device's roofline in each dtype.
    """

    devices: tuple[Device, ...]
    lines: pd.DataFrame
    points: pd.DataFrame
    roofs: pd.DataFrame

    def name_of(self, key: str) -> str:
        """Return what a device is called, of this machine or of the table."""
        here = {device.id: device for device in self.devices}
        if key not in here:
            return GPUS[key]
        return "this CPU" if here[key].kind == "cpu" else f"{here[key].name} ({key})"

    @cached_property
    def values(self) -> dict[str, dict[str, dict[str, list[list[float] | None]]]]:
        """Seconds and their interval by operation, dtype, device and index of the size; None where unknown."""
        found: dict[str, dict[str, dict[str, list[list[float] | None]]]] = {}
        places = {name: {size: index for index, size in enumerate(sizes(name))} for name in OFFERED}
        for row in self.lines.to_dict("records"):
            of_device = found.setdefault(row["op"], {}).setdefault(row["dtype"], {})
            times = of_device.setdefault(row["key"], [None] * len(places[row["op"]]))
            times[places[row["op"]][row["n"]]] = [float(f"{row[name]:.3g}") for name in TIMES]
        return found

    def times_s(self, operation: str, dtype: str, key: str) -> dict[int, float]:
        """Return the predicted seconds of a call by size."""
        found = self.values.get(operation, {}).get(dtype, {}).get(key, [])
        return {size: times[0] for size, times in zip(sizes(operation), found, strict=False) if times}


def facts(devices: Sequence[Device], results: Sequence[Result]) -> ExploreFacts:
    """Return the rows for the GPUs of the table and the devices of this machine.

    Args:
        devices: of this machine.
        results: measured on them.
    """
    known = [device for device in devices if device.kind != "cpu" or device.bandwidth]  # others have no line yet
    lines = [*_gpu_lines(), *(predicted_lines(known, calibrate(results)) if known else ())]
    measured = [*_gpu_points(), *_own_points(devices, results)]
    roofs = [row for device in (*devices, *map(table_device, GPUS)) for row in _roofs(device)]
    return ExploreFacts(tuple(devices), pd.DataFrame(lines), pd.DataFrame(measured), pd.DataFrame(roofs))


Row = dict[str, Any]


@cache
def _shipped() -> Any:
    """Return what `scripts.explore_gpus` wrote: working it out takes a second, for which the first page would wait."""
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


@cache
def _gpu_lines() -> tuple[Row, ...]:
    return tuple(
        _place(case_of(operation, operation_named(operation).shape_of_size(size), dtype, table_device(key)), size)
        | dict(zip(TIMES, times, strict=True))
        for operation, dtype, key, found in _shipped()["lines"]
        for size, times in zip(sizes(operation), found, strict=True)
        if times
    )


def sizes(operation: str) -> tuple[int, ...]:
    """Return the sizes that an operation is drawn at, smallest first."""
    offered = OFFERED[operation]
    contract = operation_named(operation)
    every = (2**exponent for exponent in range(offered.first, offered.last + 1))
    return tuple(size for size in every if contract.problem(contract.shape_of_size(size)) is None)


def products() -> list[str]:
    """Return the operations whose work is counted in FLOPs."""
    return [name for name in OFFERED if operation_named(name).is_matrix_product]


def dtypes_of(operation: str) -> tuple[str, ...]:
    """Return the dtypes that an operation is drawn in."""
    contract = operation_named(operation)
    return tuple(name for name in DTYPES_SHOWN if contract.unsupported(format_named(name)) is None)


def predicted_lines(devices: Iterable[Device], calibration: Calibration) -> Iterable[Row]:
    """Return a row for each size: of the fastest of the libraries that a request compares by default."""
    asked = [
        (
            replace(
                case_of(operation, operation_named(operation).shape_of_size(size), dtype, device), implementation=name
            ),
            device,
            size,
        )
        for operation in OFFERED
        for dtype in dtypes_of(operation)
        for device in devices
        for name in _libraries(operation, device)
        for size in sizes(operation)
    ]
    predicted = predict_each([(case, device) for case, device, _ in asked], calibration, Conditions(CALLS))
    rows: dict[tuple[object, ...], Row] = {}
    for (case, _, size), found in zip(asked, predicted, strict=True):
        about = (case.operation, case.dtype, case.device, size)
        if found.time_s and found.interval_s and (about not in rows or found.time_s < rows[about]["time"]):
            low_s, high_s = found.interval_s
            rows[about] = {**_place(case, size), "time": found.time_s, "low": low_s, "high": high_s}
    return rows.values()


def _libraries(operation: str, device: Device) -> Sequence[str]:
    """Return what is compared by default on a device of this machine; of a GPU of the table its vendor's library."""
    if device.id in GPUS:
        return (operation_named(operation).vendor_library.name,)
    return split(with_defaults(Request(operation, devices=device.id), [device.id]).implementations)


def _place(case: Case, size: int) -> Row:
    """Return where a call stands: its line, its size, its work, and its FLOPs a byte."""
    contract = operation_named(case.operation)
    flop_count = contract.flop_count(case.shape)
    byte_count = contract.byte_count(case.shape, format_named(case.dtype))
    return {
        "op": case.operation,
        "dtype": case.dtype,
        "key": case.device,
        "here": case.device not in GPUS,
        "n": size,
        "work": flop_count if contract.is_matrix_product else byte_count,
        "flops": flop_count,
        "intensity": flop_count / byte_count,
    }


@cache
def _gpu_points() -> tuple[Row, ...]:
    measured = (
        measured_point(case_of(operation, Shape.of(**axes), dtype, table_device(key)), time_s, source)
        for operation, dtype, key, axes, time_s, source in _shipped()["points"]
    )
    return tuple(row for row in measured if row)


def _own_points(devices: Sequence[Device], results: Iterable[Result]) -> Iterator[Row]:
    """Yield the fastest result of each shape and dtype on each device."""
    ids = {device.id for device in devices}
    fastest: dict[tuple[object, ...], Result] = {}
    for result in results:
        case = result.case
        if case.device in ids and is_ranked(result) and result.measurement:
            about = (case.operation, case.shape, case.dtype, case.device)
            known = fastest.setdefault(about, result)
            if known.measurement and result.measurement.median_s < known.measurement.median_s:
                fastest[about] = result
    for result in fastest.values():
        row = result.measurement and measured_point(
            result.case, result.measurement.median_s, f"{OWN}, {result.case.implementation}"
        )
        if row:
            yield row


def measured_point(case: Case, time_s: float, source: str) -> Row | None:
    """Return the row of a measured call; None where no size stands for its shape, or its dtype is not drawn."""
    size = _size_of(case.operation, case.shape) if case.operation in OFFERED and case.dtype in DTYPES_SHOWN else None
    if size is None:
        return None
    words = {"case": f"{shape_label(case.shape)} in {case.dtype}", "words": format_seconds(time_s), "source": source}
    return {**_place(case, size), "time": time_s, **words}


@cache
def _size_of(operation: str, shape: Shape) -> int | None:
    """Return the size whose shape has as much work; None where it lies outside the chart, or the shape is unlike it."""
    contract = operation_named(operation)
    work = work_of(operation, "fp32")
    asked = work(shape)
    low, *_, high = sizes(operation)
    if not work(contract.shape_of_size(low)) <= asked <= work(contract.shape_of_size(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if work(contract.shape_of_size(middle)) >= asked else (middle + 1, high)
    usual = dict(contract.shape_of_size(low).axes)
    ratios = [length / usual[axis] for axis, length in shape.axes]
    return low if all(1 / MAX_ASPECT <= ratio <= MAX_ASPECT for ratio in ratios) else None


def _roofs(device: Device) -> Iterator[Row]:
    for dtype in DTYPES_SHOWN:
        peak = device.peak(dtype, "matrix")
        if peak is None or device.bandwidth is None:
            continue
        ridge = peak.flop_per_s / device.bandwidth.bytes_per_s
        for intensity in (MIN_INTENSITY, ridge, MAX_INTENSITY):
            yield {
                "dtype": dtype,
                "key": device.id,
                "here": device.id not in GPUS,
                "intensity": intensity,
                "rate": min(peak.flop_per_s, intensity * device.bandwidth.bytes_per_s),
            }
