"""A request for a prediction, from the texts that are typed on pages, on the command line and in Python.

A short sweep of a device: what it changes in predictions, and where the device is unlike others of its board.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpuexplore.analysis.prediction import (
    CALLS,
    USUAL_CALLS,
    Calls,
    Conditions,
    Prediction,
    calibrate,
    predict,
    predict_each,
)
from gpuexplore.analysis.prediction.calls import arithmetic, calls_of
from gpuexplore.analysis.prediction.gpu.facts import moves_only
from gpuexplore.analysis.utilization.utilization import cache_mode, shape_label
from gpuexplore.core import (
    Case,
    Device,
    Experiment,
    InvalidInput,
    Result,
    Shape,
    format_bytes_per_s,
    format_flop_per_s,
    format_interval,
    format_multiple,
    format_percent,
    format_seconds,
    median,
)
from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.hardware import GpuFacts, bandwidth_of, row_of, rows_named, target_named
from gpuexplore.hardware.variants import choose
from gpuexplore.operations import Implementation, Operation, operation_named
from gpuexplore.request import Request, shapes_of
from gpuexplore.shapes import split

USUAL_DTYPES = "fp32,tf32,bf16,fp16,fp8"


CALLS_ALIASES: Mapping[Calls, tuple[str, ...]] = {
    "graph": ("graphs", "graphed"),
    "queued": ("queue", "stream", "async", "asynchronous", "backtoback"),
    "single": ("oneatatime", "oneshot", "sync", "synchronous"),
    "cold": ("kernel", "coldkernel", "profiler", "cupti"),
}


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """Texts as a person types them; several values of a field are separated by commas, shapes by semicolons.

    Attributes:
        operation: its name.
        gpus: driver names or keys of the table, or ids of this machine's devices.
        sizes: a list or a range, instead of `shapes`.
        shapes: exact axes, or presets.
        dtypes: formats of FORMATS.
        implementation: empty is the vendor's library.
        calls: how calls follow one another, keys of CALLS.
    """

    operation: str
    gpus: str
    sizes: str = ""
    shapes: str = ""
    dtypes: str = USUAL_DTYPES
    implementation: str = ""
    calls: str = USUAL_CALLS


def predictions(
    question: PredictionRequest, here: Iterable[Device], own: Sequence[Result] = ()
) -> tuple[Prediction, ...]:
    """Return the predictions, GPU by GPU, shape by shape, in the order of the dtypes and kinds of calls asked for.

    Args:
        here: this machine's devices, a CPU with its ceilings.
        own: results of this machine to calibrate on.

    Raises:
        InvalidInput: names what cannot be used and what is accepted.
    """
    operation = operation_named(question.operation)
    if not question.sizes and not question.shapes:
        raise InvalidInput("no size and no shape: give a size like 4096, or exact axes")
    shapes = shapes_of(Request(operation.name, sizes=question.sizes, shapes=question.shapes), operation, measured=False)
    dtypes = list(dict.fromkeys(format_named(name).name for name in split(question.dtypes)))
    name = question.implementation
    implementation = operation.implementation_named(name) if name else operation.vendor_library
    known = tuple(here)
    targets = tuple(dict.fromkeys(target_named(name, known) for name in split(question.gpus)))
    if not dtypes or not targets:
        raise InvalidInput(f"nothing to predict: give at least one gpu and one dtype of {', '.join(FORMATS)}")
    for device in targets:
        _check_runs_on(operation, implementation, device)
    calibration = calibrate(own)
    asked = [
        (Case(operation.name, shape, dtype, implementation.name, device.id), device)
        for device in targets
        for shape in shapes
        for dtype in dtypes
    ]
    kinds = dict.fromkeys(map(calls_named, split(question.calls) or ("",)))
    in_each = [predict_each(asked, calibration, Conditions(calls)) for calls in kinds]
    return tuple(prediction for of_case in zip(*in_each, strict=True) for prediction in of_case)


def calls_named(text: str) -> Calls:
    """Return the kind of calls of this name, or of one that people say: graphs, CUDA graph, one at a time.

    Raises:
        InvalidInput: there is none; names those that there are.
    """
    said = re.sub(r"[\s_-]+|^cuda", "", text.strip().casefold()).removesuffix("calls")
    found = next((calls for calls, names in CALLS_ALIASES.items() if said in (calls, *names)), None)
    if found is None:
        raise InvalidInput.of("calls", text, CALLS)
    return found


def _check_runs_on(operation: Operation, implementation: Implementation, device: Device) -> None:
    """Raise when `implementation` runs on another kind of device than `device` is."""
    if implementation.runs_on(device):
        return
    accepted = (other.name for other in operation.implementations if other.runs_on(device))
    raise InvalidInput.of(f"implementation of {operation.name} on {device.name}", implementation.name, accepted)


TITLE = "Calibration"  # of the runs
SLOWEST_S = 0.01  # ideal time of the largest product of the slowest format, and of a stream


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One case of a sweep, or one near it that was not measured.

    Attributes:
        before: predicted without the sweep.
        measured_s: the median; None for a case that was not measured.
        now: predicted with it.
    """

    before: Prediction
    measured_s: float | None
    now: Prediction


def sweep_of(device: Device) -> tuple[Experiment, ...]:
    """Return 10 to 14 cases, an experiment each operation: products of sizes by the device's peak, layers, streams.

    Raises:
        InvalidInput: no peak or bandwidth of the device is known, so that nothing bounds how long it takes.
    """
    formats, large, moved = _extent(device)
    half = formats[-1]
    item = format_named("fp32").bits // 8
    sizes = [large >> step for step in ((0, 1, 2, 3, 4) if len(formats) == 1 else (0, 2, 4))]
    asked: list[tuple[str, Sequence[Shape], Sequence[str]]] = [
        ("matmul", [Shape.of(m=size, k=size, n=size) for size in sorted(sizes)], formats),
        ("linear", [Shape.of(b=8, d=large, k=large)], [half]),
        ("batched_matmul", [_batched(large // 4)], [half]),
        ("softmax", [Shape.of(m=moved // item // 2048, n=1024)], ["fp32"]),
        ("vector_add", [Shape.of(n=moved // item // 3)], ["fp32"]),
        ("copy", [Shape.of(n=moved // item // 2)], ["fp32"]),
    ]
    return tuple(
        Experiment(name, tuple(shapes), tuple(dtypes), (operation_named(name).vendor_library.name,), (device.id,))
        for name, shapes, dtypes in asked
    )


def _extent(device: Device) -> tuple[tuple[str, ...], int, int]:
    """Return formats with units of their own, the length of the largest product, and the bytes of a stream."""
    peaks = {
        name: units.peak.flop_per_s
        for name in ("fp32", "tf32", "bf16", "fp16")
        if (units := arithmetic(_product(name, 1024, device), device)).peak and units.support == "native"
    }
    if not peaks or device.bandwidth is None:
        raise InvalidInput(f"no peak or memory bandwidth of {device.title} is known, so no sweep of a minute is")
    formats = tuple(name for name in peaks if name != "fp16" or "bf16" not in peaks)
    work = min(peaks[name] for name in formats) * SLOWEST_S
    large = next((size for size in (8192, 4096, 2048, 1024) if 2 * size**3 <= work), 512)
    most = min(SLOWEST_S * 2 * device.bandwidth.bytes_per_s, (device.memory_bytes or 2**32) / 16)
    cached = max((roof.size_bytes for roof in device.caches), default=device.cache_bytes or 0)
    return formats, large, int(min(max(4 * cached, 2**26), most))


def _product(dtype: str, size: int, device: Device) -> Case:
    return Case("matmul", Shape.of(m=size, k=size, n=size), dtype, "torch", device.id)


def _batched(size: int) -> Shape:
    return Shape.of(outer=1, inner=16, m=size, k=size, n=size, right=16)


def chosen(cases: Sequence[tuple[Hashable, float]], count: int) -> tuple[int, ...]:
    """Return the indices of `count` cases as a sweep chooses them: of every group, spread over the sizes of each.

    Args:
        cases: a group and a size each; the largest groups come first, in turn.
        count: of cases, at most all.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for at in sorted(range(len(cases)), key=lambda at: cases[at][1]):
        groups[cases[at][0]].append(at)
    ranked = sorted(groups.values(), key=len, reverse=True)
    turns = [(turn, rank) for rank, some in enumerate(ranked) for turn in range(len(some))]
    taken = [rank for _, rank in sorted(turns)[:count]]
    return tuple(
        some[int((place + 0.5) / taken.count(rank) * len(some))]
        for rank, some in enumerate(ranked)
        for place in range(taken.count(rank))
    )


def compared(device: Device, measured: Sequence[Result], earlier: Sequence[Result]) -> tuple[CalibrationRow, ...]:
    """Return what a sweep changes: its cases, then others near them.

    Args:
        measured: the results of the sweep.
        earlier: results of this device before it, newest last.
    """
    before, now = calibrate(earlier), calibrate((*earlier, *measured))
    known = [(as_measured(result), result) for result in measured if result.measurement]
    formats, large, moved = _extent(device)
    others = [
        *(_product(name, large * 3 // 4, device) for name in formats),
        _case("linear", Shape.of(b=64, d=large, k=large // 2), formats[-1], device),
        _case("layer_norm", Shape.of(m=moved // 2**14, n=1024), "fp32", device),
        _case("vector_add", Shape.of(n=moved // 48), "fp32", device),
    ]
    rows = [
        CalibrationRow(predict(case, device, before, conditions), took_s, predict(case, device, now, conditions))
        for (case, conditions), result in known
        if (took_s := result.measurement and result.measurement.median_s)
    ]
    asked = [(case, device) for case in others]
    pairs = zip(predict_each(asked, before), predict_each(asked, now), strict=True)
    return (*rows, *(CalibrationRow(first, None, second) for first, second in pairs))


def columns_of(row: CalibrationRow) -> dict[str, str]:
    """Return one case in words, by the headings of the table."""
    case = row.now.case
    shown = [case.operation, shape_label(case.shape) if len(case.shape.axes) < 4 else str(case.shape), case.dtype]
    before, now = (
        f"{format_seconds(said.time_s)} ({format_interval(said.interval_s, format_seconds)})"
        for said in (row.before, row.now)
    )
    measured = "not measured" if row.measured_s is None else format_seconds(row.measured_s)
    return {
        "Call": " ".join(shown),
        "Predicted before (9 in 10 within)": before,
        "Measured": measured,
        "Predicted now": now,
    }


def _case(operation: str, shape: Shape, dtype: str, device: Device) -> Case:
    return Case(operation, shape, dtype, operation_named(operation).vendor_library.name, device.id)


def as_measured(result: Result) -> tuple[Case, Conditions]:
    """Return the case of a result with the caches as they were, and how its calls followed one another."""
    options = replace(result.case.options, cache=cache_mode(result))
    return replace(result.case, options=options), Conditions(calls_of(result))


# How a GPU differs from others of its board, a sentence each with figures; nothing where all is usual.


def unlike_its_kind(device: Device, measured: Sequence[Result]) -> tuple[str, ...]:
    """Return how a device differs from its row of the table, by its facts and the results of a sweep."""
    facts = GpuFacts(device.name, memory_bytes=device.memory_bytes, multiprocessors=device.cores)
    row, reason = choose(facts) if device.kind != "cpu" else (None, None)
    if rows_named(device.name) and row is None and device.spec_key is None and reason:
        return (f"{device.name} is no variant of the table: {reason}.",)
    if row_of(device) is None:
        return ()
    board = calibrate()  # without results of this machine
    times: list[tuple[Prediction, float]] = []
    for result in measured:
        if result.measurement:
            case, conditions = as_measured(result)
            times.append((predict(case, device, board, conditions), result.measurement.median_s))
    return tuple(filter(None, (_rates(device, times, measured), _bandwidth(device, times), _tf32(times))))


def _rates(device: Device, times: Sequence[tuple[Prediction, float]], measured: Sequence[Result]) -> str | None:
    """Return that products of all sizes are slower or faster than predicted for the board, with power and clock."""
    ratios = [took_s / said.time_s for said, took_s in times if said.time_s and not moves_only(said.case)]
    outside = [
        took_s
        for said, took_s in times
        if said.interval_s and not moves_only(said.case) and not said.interval_s[0] <= took_s <= said.interval_s[1]
    ]
    least = 1.15  # of the nearest one, below which a board is as usual
    if 2 * len(outside) < len(ratios) or not ratios or not (min(ratios) > least or max(ratios) < 1 / least):
        return None
    spread = f"{format_multiple(min(ratios))} to {format_multiple(max(ratios))} times"
    words = f"All {len(ratios)} products took {spread} as long as predicted for {device.title}"
    if min(ratios) < 1:
        return f"{words}: it is faster than its row of the table."
    row = row_of(device)
    limit_w = device.identity.power_limit_w if device.identity else None
    clocks = [result.environment.after.clock_hz for result in measured if result.environment]
    clock_hz = median([each for each in clocks if each] or [0.0])
    about = [
        f"the driver allows {limit_w:.0f} W of the board's {row.power_w:.0f} W"
        if row and limit_w and row.power_w
        else "the driver states no power limit",
        *(
            [f"its clock was {clock_hz / 1e9:.2f} of {device.clock_hz / 1e9:.2f} GHz"]
            if device.clock_hz and clock_hz
            else []
        ),
    ]
    return f"{words}, as under a power limit or clocks below the board's: {'; '.join(about)}."


def _bandwidth(device: Device, times: Sequence[tuple[Prediction, float]]) -> str | None:
    row = row_of(device)
    listed = bandwidth_of(row) if row else None
    streams = [(said, took_s) for said, took_s in times if said.case.operation in ("copy", "vector_add")]
    if listed is None or not streams or any(took_s <= (said.high_s or took_s) for said, took_s in streams):
        return None
    said, took_s = min(streams, key=lambda pair: pair[1] / (pair[0].time_s or pair[1]))
    moved = operation_named(said.case.operation).byte_count(said.case.shape, format_named(said.case.dtype))
    share = format_percent(moved / took_s / listed.bytes_per_s)
    return (
        f"Memory: {said.case.operation} moves {format_bytes_per_s(moved / took_s)}, {share} of the row's "
        f"{format_bytes_per_s(listed.bytes_per_s)}; at least {format_bytes_per_s(moved / (said.high_s or took_s))} "
        "were predicted."
    )


def _tf32(times: Sequence[tuple[Prediction, float]]) -> str | None:
    """Return that fp32 products are faster than units for it can be, as when TF32 is switched on."""
    for said, took_s in times:
        rate = said.flop_per_s and said.time_s and said.flop_per_s * said.time_s / took_s
        pairs = [t for other, t in times if other.case == replace(said.case, dtype="tf32")]
        if said.case.dtype != "fp32" or not (rate and said.peak and pairs):
            continue
        if rate > 1.1 * said.peak.flop_per_s and took_s < 1.25 * pairs[0]:
            return (
                f"fp32 products reach {format_flop_per_s(rate)}, above the peak of "
                f"{format_flop_per_s(said.peak.flop_per_s)} and {format_multiple(pairs[0] / took_s)} times as fast as "
                "TF32: TF32 is switched on for fp32."
            )
    return None
