"""The named quantities of a step: of what was measured, recorded, published, predicted or computed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from gpuexplore.analysis.figure import (
    BANDWIDTH,
    INTENSITY,
    PLAIN,
    RATE,
    SIZE,
    TIME,
    WORK,
    WRONG,
    Clocked,
    Dimension,
    LessonFigure,
    QuantityRow,
    Style,
    exact,
)
from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.occupancy import occupancy, waves
from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.verdict.times import time_of
from gpuexplore.core import Case, Device, InvalidInput, Measurement, Origin
from gpuexplore.core.dtypes import format_named
from gpuexplore.features.lessons.lesson.blocks import LaunchBlock
from gpuexplore.features.lessons.lesson.expression import Value
from gpuexplore.hardware import CAPABILITIES, ComputeCapability, capability_named, capability_of, gpu_named
from gpuexplore.kernels.geometry import WARP
from gpuexplore.operations import operation_named

Make = Callable[..., LessonFigure]  # of a value, its interval, its unit and its style
HERE = "here"  # what a launch calls this machine's GPU, or its CPU where there is none


def facts_of(devices: Sequence[Device]) -> Mapping[str, Value]:
    """Return the facts of a machine with `devices`: of its GPU where it has one, else of its CPU."""
    gpu = next((device for device in devices if device.kind == "cuda"), None)
    device = gpu or next(iter(devices), None)
    native = device.native if device else ()
    cores = next((known.cores for known in devices if known.kind == "cpu" and known.cores), 1)
    found: dict[str, Value] = {"gpu": gpu is not None, "bf16_units": "bf16" in native, "fp16_units": "fp16" in native}
    gpus = sum(known.kind == "cuda" for known in devices)
    return found | {"cores": exact(float(cores)), "gpus": exact(float(gpus))}


def result_row(analyzed: AnalyzedResult, device: str, of: str = "") -> QuantityRow:
    """Return the quantities of a result.

    Args:
        device: what selectors call the one it was measured on.
        of: the id of the block that asked for it.
    """
    measurement = analyzed.measurement
    labels = case_labels(analyzed.case, analyzed.origin, device, of)
    work = work_figures(analyzed.flop_count, analyzed.byte_count)
    if measurement is None:
        return QuantityRow(labels, work, f"{analyzed.label}: {analyzed.result.reason}")
    doubts = WRONG.intersection(flag.name for flag in analyzed.result.flags)
    made = _making(frozenset({analyzed.origin.label}), doubts)
    estimate = time_of(analyzed.result)
    clocked = Clocked(analyzed.result, 1, f"{of} {analyzed.origin}")
    time = replace(made(measurement.median_s, estimate.interval if estimate else None, TIME), clocked=clocked)
    return QuantityRow(labels, work | _times(made, measurement, time) | _derived(made, analyzed, time))


def prediction_row(prediction: Prediction, device: str, of: str = "") -> QuantityRow:
    """Return the quantities of a prediction, with its interval; `device` and `of` as for a result."""
    operation = operation_named(prediction.case.operation)
    case = prediction.case
    labels = case_labels(case, Origin.PREDICTED, device, of)
    flop_count = operation.flop_count(case.shape)
    work = work_figures(flop_count, operation.byte_count(case.shape, format_named(case.dtype)))
    if prediction.time_s is None:
        return QuantityRow(labels, work, prediction.reason or f"{prediction.device.title}: no prediction")
    made = _making(frozenset({Origin.PREDICTED.label}))
    found: dict[str, LessonFigure | str] = {
        "time": made(prediction.time_s, prediction.interval_s, TIME),
        "support": prediction.support,
    }
    if flop_count:
        found["rate"] = made(flop_count / prediction.time_s, _over(flop_count, prediction.interval_s), RATE)
    if prediction.peak:
        found["peak"] = made(prediction.peak.flop_per_s, None, RATE)
    if prediction.device.bandwidth:
        found["peak_bandwidth"] = made(prediction.device.bandwidth.bytes_per_s, None, BANDWIDTH)
    return QuantityRow(labels, work | found | ({"bound": prediction.bound} if prediction.bound else {}))


def launch_row(block: LaunchBlock, devices: Sequence[Device] = ()) -> QuantityRow:
    """Return blocks, waves and occupancy of a launch.

    Args:
        devices: of this machine, which a launch on `here` runs on.

    Raises:
        InvalidInput: no such GPU or compute capability, or the block does not fit it.
    """
    if block.threads < 1 or block.elements < 1:
        raise InvalidInput.of("elements and threads", f"{block.elements} and {block.threads}", "whole numbers from 1")
    multiprocessors, capability = _limits(block, devices)
    blocks = -(-block.elements // block.threads)
    figures: dict[str, LessonFigure | str] = {
        "blocks": exact(float(blocks)),
        "warps": exact(float(-(-block.threads // WARP))),
        "share": exact(float(block.elements - block.elements // block.threads * block.threads)),
    }
    # A core takes one block at a time.
    blocks_of_each = int(block.gpu == HERE and not any(device.kind == "cuda" for device in devices))
    if capability:
        full = occupancy(
            capability,
            threads_per_block=block.threads,
            registers_per_thread=block.registers,
            shared_bytes_per_block=block.shared,
        )
        figures["occupancy"] = exact(full.occupancy, style="percent")
        blocks_of_each = full.blocks_per_multiprocessor
    if multiprocessors:
        figures["multiprocessors"] = exact(float(multiprocessors))
    if multiprocessors and blocks_of_each:
        passing = waves(blocks, blocks_of_each, multiprocessors)
        last = passing.tail_blocks or passing.blocks_per_wave
        figures |= {"waves": exact(float(passing.count)), "last_wave": exact(float(last))}
    return QuantityRow({"of": block.id, "size": str(block.elements)}, figures)


def _limits(block: LaunchBlock, devices: Sequence[Device]) -> tuple[int, ComputeCapability | None]:
    """Return the multiprocessors and the capability of a launch's GPU; without a GPU `here`, the cores and None."""
    if block.gpu != HERE:
        row = gpu_named(block.gpu, f"; {HERE}") if block.gpu else None
        multiprocessors = block.multiprocessors or (row.multiprocessors if row else 0) or 0
        return multiprocessors, capability_of(row) if row else capability_named(block.cc or "7.5")
    gpu = next((device for device in devices if device.kind == "cuda"), None)
    if gpu is None:
        return next((device.cores for device in devices if device.cores), 1), None
    return gpu.cores or 0, CAPABILITIES.get(gpu.compute_capability or "")


def work_figures(flop_count: int, byte_count: int) -> dict[str, LessonFigure | str]:
    """Return what arithmetic alone says of a case."""
    return {
        "flops": exact(float(flop_count), WORK),
        "bytes": exact(float(byte_count), SIZE),
        "intensity": exact(flop_count / byte_count, INTENSITY),
    }


def case_labels(case: Case, origin: Origin, device: str, of: str = "") -> Mapping[str, str]:
    """Return what the quantities of a case are of, as selectors name it."""
    size = operation_named(case.operation).size_of(case.shape)
    options = case.options
    return {
        "impl": case.implementation,
        "dtype": case.dtype,
        "size": "" if size is None else str(size),
        "shape": str(case.shape),
        "device": device,
        "source": origin.label,
        "operation": case.operation,
        "cache": options.cache or "",
        "data": options.data,
        "threads": "" if options.threads is None else str(options.threads),
        "of": of,
    }


def _making(sources: frozenset[str], doubts: frozenset[str] = frozenset()) -> Make:
    """Return what makes the figures of one result."""

    def make(
        value: float, ends: tuple[float, float] | None, dimension: Dimension = PLAIN, style: Style = "number"
    ) -> LessonFigure:
        low, high = ends or (value, value)
        return LessonFigure(value, low, high, dimension, style, sources, doubts)

    return make


def _times(made: Make, measurement: Measurement, time: LessonFigure) -> dict[str, LessonFigure | str]:
    samples = measurement.samples_s
    found: dict[str, LessonFigure | str] = {
        "time": time,
        "mean_time": made(sum(samples) / len(samples), None, TIME),
        "min_time": made(measurement.min_s, None, TIME),
        "samples": made(float(len(samples)), None),
    }
    if measurement.first_call_s is not None:
        found["first_call"] = made(measurement.first_call_s, None, TIME)
    if measurement.ci95_s:
        low, high = measurement.ci95_s
        found["precision"] = made((high - low) / 2 / measurement.median_s, None, style="percent")
    return found


def _derived(made: Make, analyzed: AnalyzedResult, time: LessonFigure) -> dict[str, LessonFigure | str]:
    ends = (time.low, time.high)
    found = dict[str, LessonFigure | str]()
    rate = time.clocked and replace(time.clocked, power=-1)
    if analyzed.flop_per_s:
        found["rate"] = replace(made(analyzed.flop_per_s, _over(analyzed.flop_count, ends), RATE), clocked=rate)
    if analyzed.bytes_per_s:
        found["bandwidth"] = replace(
            made(analyzed.bytes_per_s, _over(analyzed.byte_count, ends), BANDWIDTH), clocked=rate
        )
    if analyzed.default_peak:
        peak = analyzed.default_peak.flop_per_s
        found["peak"] = made(peak, None, RATE)
        if analyzed.default_mfu:
            found["mfu"] = made(analyzed.default_mfu, _over(analyzed.flop_count / peak, ends), style="percent")
    if analyzed.default_bandwidth:
        found["peak_bandwidth"] = made(analyzed.default_bandwidth.bytes_per_s, None, BANDWIDTH)
    if analyzed.speedup:
        found["speedup"] = made(analyzed.speedup.ratio, analyzed.speedup.ci95)
    if analyzed.result.accuracy and analyzed.result.accuracy.relative_error is not None:
        # It depends on no clock, and on no disturbance.
        found["error"] = replace(made(analyzed.result.accuracy.relative_error, None), doubts=frozenset())
    found["support"] = "emulated" if analyzed.flag("emulated") else "native"
    return found | ({"bound": analyzed.bound} if analyzed.bound else {})


def _over(work: float, ends: tuple[float, float] | None) -> tuple[float, float] | None:
    return (work / ends[1], work / ends[0]) if ends else None
