"""Dtype what-if: one workload in every format on every device, measured where it is known, else predicted.

A figure comes from results measured here, else from recorded ones, else from a prediction; an entered time
replaces them, and is compared with nothing where no such device can have reached it. The times of layers add up, and so
do the ends of their intervals: layers on one device are mispredicted alike, so their errors do not cancel. A ratio's
interval is the widest that both intervals allow.

A prediction is of the kind of calls that is asked for. So is a measurement where the case was measured in that kind;
else one of another kind stands for it, and the row says so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from gpuexplore.analysis.prediction import (
    CALLS_WORDS,
    USUAL_CALLS,
    Calibration,
    Calls,
    Conditions,
    Prediction,
    Support,
    UncertainValue,
    calls_of,
    in_calls,
    predict_each,
)
from gpuexplore.analysis.utilization import default_peak, device_of, is_ranked
from gpuexplore.analysis.verdict import time_of
from gpuexplore.analysis.what_if.rounding_error import expected_error, with_input_error
from gpuexplore.analysis.what_if.workload import Workload, WorkloadLayer, why_impossible
from gpuexplore.core.dtypes import DType, format_named
from gpuexplore.core.model import Case, Device, Origin, Peak, Result
from gpuexplore.hardware import row_of, same_device


@dataclass(frozen=True, slots=True)
class Known:
    """Facts from outside the table of devices, and the kind of calls that times are wanted for.

    Attributes:
        calibration: what predictions rest on.
        measured: results of this machine.
        recorded: results that come with the app, measured on other machines.
        times_s: seconds a visitor entered for the first device, by dtype.
        prices_per_hour: what a device costs, by its id, in any currency.
        calls: how calls follow one another, a key of CALLS.
        predictions: of the layers on the devices, made by `what_if`.
    """

    calibration: Calibration
    measured: Sequence[Result] = ()
    recorded: Sequence[Result] = ()
    times_s: Mapping[str, float] = field(default_factory=dict)
    prices_per_hour: Mapping[str, float] = field(default_factory=dict)
    calls: Calls = USUAL_CALLS
    predictions: Mapping[Case, Prediction] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A workload in one format on one device; None is unknown.

    Attributes:
        support: whether the device computes in the format: the worst of the layers.
        reason: why it is emulated or unsupported, or why its time is unknown.
        time: seconds of the whole workload.
        origin: where the time comes from; one predicted layer makes it a prediction.
        basis: the same in words.
        speedup: over the baseline format on the same device.
        mfu: fraction of `peak` reached at that time, 0 to 1.
        peak: the peak of the arithmetic of the layer with the most FLOPs.
        memory_bytes: every array of every layer at once: an upper bound.
        fits: whether that fits the device's memory; None where only the largest layer does, or that is unknown.
        error: relative to fp64 on unrounded inputs, of the least accurate layer.
        error_origin: whether the error was measured, or is what rounding is expected to cost.
        energy_j: joules at the board's power limit: an upper bound.
        cost: of one run of the workload at the price entered.
        calls: the kind of calls that the time is of; None on a CPU, of several kinds, and of an entered time.
        notes: what a reader should know, a sentence fragment each.
        impossible: the limit of the device that an entered time is far above; None where it is above none.
        rests_on: the prediction of the layer with the most FLOPs that is predicted; None where all are measured.
    """

    device: Device
    dtype: str
    support: Support
    reason: str | None
    time: UncertainValue | None
    origin: Origin | None
    basis: str
    speedup: UncertainValue | None
    mfu: float | None
    peak: Peak | None
    memory_bytes: int
    fits: bool | None
    error: float | None
    error_origin: Literal["measured", "expected"]
    energy_j: float | None
    cost: float | None
    calls: Calls | None = None
    notes: tuple[str, ...] = ()
    impossible: str | None = None
    rests_on: Prediction | None = None

    @property
    def credible_time(self) -> UncertainValue | None:
        """The time that others may be compared with: None where it is unknown or impossible."""
        return None if self.impossible else self.time


@dataclass(frozen=True, slots=True)
class _LayerTime:
    """One layer in the format it runs in; `calls` is the kind that its time is of, None on a CPU."""

    layer: WorkloadLayer
    dtype: DType
    prediction: Prediction
    result: Result | None
    origin: Origin
    calls: Calls | None

    @property
    def time(self) -> UncertainValue | None:
        """Seconds of all its calls."""
        measured = time_of(self.result) if self.result else None
        if measured and measured.interval:
            return UncertainValue(measured.value, *measured.interval).times(self.layer.count)
        found = self.prediction
        if found.time_s is None or found.low_s is None or found.high_s is None:
            return None
        return UncertainValue(found.time_s, found.low_s, found.high_s).times(self.layer.count)


def what_if(
    workload: Workload, devices: Sequence[Device], *, dtypes: Sequence[str], baseline: str, known: Known
) -> tuple[WhatIf, ...]:
    """Return a row for each device and format, in the order given.

    Args:
        baseline: the format speedups are against; it need not be among `dtypes`.
    """
    known = replace(known, measured=_of(workload, known.measured), recorded=_of(workload, known.recorded))
    formats = [format_named(name) for name in dict.fromkeys((*dtypes, baseline))]
    names = tuple(each.name for each in formats)
    known = replace(known, predictions=_predicted(workload, tuple(devices), names, (known.calibration, known.calls)))
    rows = []
    for index, device in enumerate(devices):
        here = known if index == 0 else replace(known, times_s={})
        found = {each.name: _row(workload, device, each, here) for each in formats}
        rows += [replace(found[name], speedup=_ratio(found[baseline], found[name])) for name in dtypes]
    return tuple(rows)


def _of(workload: Workload, results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results of the layers: looked for once, and not in each format on each device."""
    wanted = {(layer.operation, layer.shape) for layer in workload.layers}
    return tuple(result for result in results if (result.case.operation, result.case.shape) in wanted)


def _ratio(baseline: WhatIf, row: WhatIf) -> UncertainValue | None:
    """Return how many times as fast `row` is as `baseline`; None when a time is unknown or impossible."""
    above = baseline.credible_time
    below = row.credible_time
    if above is None or below is None:
        return None
    if (baseline.device, baseline.dtype) == (row.device, row.dtype):
        return UncertainValue(1.0, 1.0, 1.0)
    return above.over(below)


def format_in(layer: WorkloadLayer, dtype: DType) -> DType:
    """Return the format a layer runs in when the workload is in `dtype`: its output format where it has no meaning."""
    if dtype.output_format is None or layer.contract.unsupported(dtype) is None:
        return dtype
    return format_named(dtype.output_format)


def fastest(
    results: Sequence[Result], device: Device, layer: WorkloadLayer, dtype: str, *, calls: Calls = USUAL_CALLS
) -> Result | None:
    """Return the fastest result of this call on such a device; None without a measurement.

    Args:
        calls: the kind that counts where the call was measured in it; else every other kind does.
    """
    found = [
        result
        for result in results
        if (result.case.operation, result.case.shape, result.case.dtype) == (layer.operation, layer.shape, dtype)
        and result.case.options.data == "normal"
        and (result.case.options.layout, result.case.options.align) == ("NN", "library")
        and same_device(device_of(result), device)
        and is_ranked(result)
    ]
    wanted = [measured for result in found if (measured := in_calls(result, calls))]
    return min(wanted or found, key=lambda each: each.measurement.median_s if each.measurement else 0.0, default=None)


def _row(workload: Workload, device: Device, dtype: DType, known: Known) -> WhatIf:
    formats = {layer: format_in(layer, dtype) for layer in workload.layers}
    parts = [_part(layer, device, formats[layer], known) for layer in workload.layers]
    if all(part.dtype is not dtype for part in parts):  # no part of it exists in this format
        parts = [_part(layer, device, dtype, known) for layer in workload.layers]
    supports: tuple[Support, ...] = ("native", "emulated", "unsupported")  # from the best to the worst
    worst = max(parts, key=lambda part: (supports.index(part.prediction.support), part.time is None))
    support = worst.prediction.support
    entered_s = known.times_s.get(dtype.name)
    time = UncertainValue(entered_s, entered_s, entered_s) if entered_s else _sum(parts, support)
    origin, basis = _origin(parts, entered_s) if time else (None, "")
    peak = _peak(parts)
    memory_bytes = workload.byte_count(formats.__getitem__)
    error, error_origin = _error(parts)
    row = row_of(device)
    price = known.prices_per_hour.get(device.id)
    predicted = [part for part in parts if part.origin is Origin.PREDICTED]
    heaviest = max(predicted, key=lambda part: part.layer.flop_count, default=None)
    kinds = set() if entered_s else {part.calls for part in parts}
    impossible = why_impossible(workload, device, dtype, entered_s, peak=peak) if entered_s else None
    spent_s = time.value if time and not impossible else None
    return WhatIf(
        device=device,
        dtype=dtype.name,
        support=support,
        reason=worst.prediction.reason,
        time=time,
        origin=origin,
        basis=basis,
        speedup=None,
        mfu=workload.flop_count / time.value / peak.flop_per_s if time and peak and workload.flop_count else None,
        peak=peak,
        memory_bytes=memory_bytes,
        fits=_fits(memory_bytes, workload.largest_bytes(formats.__getitem__), device),
        error=error,
        error_origin=error_origin,
        energy_j=spent_s * row.power_w if spent_s and row and row.power_w else None,
        cost=spent_s / 3600 * price if spent_s and price is not None else None,
        calls=kinds.pop() if len(kinds) == 1 else None,
        notes=(*_notes(parts, dtype), *(() if entered_s else _other_calls(parts, known.calls))),
        impossible=impossible,
        rests_on=heaviest.prediction if heaviest and time and not entered_s else None,
    )


@lru_cache(maxsize=256)  # a page requests the same predictions with every click
def _predicted(
    workload: Workload, devices: tuple[Device, ...], dtypes: tuple[str, ...], known: tuple[Calibration, Calls]
) -> Mapping[Case, Prediction]:
    """Return the predictions of the layers in each format, and in the one that they run in: made at once."""
    formats = [format_named(name) for name in dtypes]
    asked = {
        _case(layer, device, each): device
        for device in devices
        for layer in workload.layers
        for dtype in formats
        for each in (dtype, format_in(layer, dtype))
    }
    calibration, calls = known
    return dict(zip(asked, predict_each(list(asked.items()), calibration, Conditions(calls)), strict=True))


def _case(layer: WorkloadLayer, device: Device, dtype: DType) -> Case:
    return Case(layer.operation, layer.shape, dtype.name, layer.contract.vendor_library.name, device.id)


def _part(layer: WorkloadLayer, device: Device, dtype: DType, known: Known) -> _LayerTime:
    prediction = known.predictions[_case(layer, device, dtype)]
    for results, origin in ((known.measured, Origin.LIVE), (known.recorded, Origin.RECORDED)):
        if found := fastest(results, device, layer, dtype.name, calls=known.calls):
            return _LayerTime(
                layer, dtype, prediction, found, origin, None if device.kind == "cpu" else calls_of(found)
            )
    return _LayerTime(layer, dtype, prediction, None, Origin.PREDICTED, None if device.kind == "cpu" else known.calls)


def _sum(parts: Sequence[_LayerTime], support: Support) -> UncertainValue | None:
    known = [time for part in parts if (time := part.time)]
    if support == "unsupported" or len(known) < len(parts):
        return None
    return UncertainValue(
        sum(time.value for time in known), sum(time.low for time in known), sum(time.high for time in known)
    )


def _origin(parts: Sequence[_LayerTime], entered_s: float | None) -> tuple[Origin, str]:
    if entered_s:
        return Origin.ENTERED, "a time you entered"
    found = {part.origin for part in parts}
    if found == {Origin.LIVE}:
        return Origin.LIVE, f"measured here with {_implementations(parts)}"
    if Origin.PREDICTED not in found:
        return Origin.RECORDED, f"{_counted(parts) or 'recorded on such a device'} with {_implementations(parts)}"
    bases = dict.fromkeys(part.prediction.basis for part in parts if part.origin is Origin.PREDICTED)
    return Origin.PREDICTED, "; ".join(filter(None, (_counted(parts), *bases)))


def _implementations(parts: Sequence[_LayerTime]) -> str:
    """Return what the times were measured with: the fastest of each layer."""
    return ", ".join(dict.fromkeys(part.result.case.implementation for part in parts if part.result))


def _counted(parts: Sequence[_LayerTime]) -> str:
    """Return e.g. ``2 of 7 layers measured here``; empty when all have one origin."""
    if len({part.origin for part in parts}) == 1:
        return ""
    origins = {Origin.LIVE: "measured here", Origin.RECORDED: "recorded elsewhere"}
    counts = {words: sum(part.origin == origin for part in parts) for origin, words in origins.items()}
    return ", ".join(f"{count} of {len(parts)} layers {words}" for words, count in counts.items() if count)


def _peak(parts: Sequence[_LayerTime]) -> Peak | None:
    heaviest = max(parts, key=lambda part: part.layer.flop_count)
    return default_peak(heaviest.result) if heaviest.result else heaviest.prediction.peak


def _fits(all_bytes: int, largest_bytes: int, device: Device) -> bool | None:
    if device.memory_bytes is None:
        return None
    if all_bytes <= device.memory_bytes:
        return True
    return False if largest_bytes > device.memory_bytes else None


def _error(parts: Sequence[_LayerTime]) -> tuple[float | None, Literal["measured", "expected"]]:
    measured = [
        with_input_error(part.result.accuracy, part.layer.operation, part.dtype)
        if part.result and part.result.accuracy
        else None
        for part in parts
    ]
    known = [error for error in measured if error is not None]
    if len(known) == len(parts):
        return max(known), "measured"
    return max(expected_error(part.layer.operation, part.layer.shape, part.dtype) for part in parts), "expected"


def _notes(parts: Sequence[_LayerTime], dtype: DType) -> tuple[str, ...]:
    others = [part for part in parts if part.dtype is not dtype]
    if not others:
        return ()
    names = ", ".join(dict.fromkeys(other.layer.name.lower() for other in others))
    return (f"{names} in {others[0].dtype.name}: they have no {dtype.name}",)


def _other_calls(parts: Sequence[_LayerTime], asked: Calls) -> Iterator[str]:
    """Yield what was measured in another kind of calls than the one asked for, e.g. ``measured with queued calls``."""
    counts = Counter(part.calls for part in parts if part.calls and part.calls != asked)
    for calls, count in counts.items():
        which = f"{count} of {len(parts)} layers " if len(parts) > 1 else ""
        yield f"{which}measured with {CALLS_WORDS[calls]}"
