"""Quantities of a training in a lesson: times, losses, phases and shares of each mode, and what processes bring.

Every row has `of`, the block's id. Of a mode, `source` is its name (of several processes, `processes`; in further modes
`bf16 processes`), and has `time`, `first_call`, `rate`, `mfu`, `speedup` over the first mode, `flops` and `batch`; with
`name`: `loss` first and last (the median of the last fifth), `phase` forward, backward, optimizer and transfer, `share`
zero, and of fp16 zero unscaled, zero scaled and zero fp32, at a loss of 1e-5; `error` gradients, of the first ones to
float64's, and losses, the largest relative difference to the first mode's; with a scaler `count` skipped (steps), and
`figure` first scale and last scale. With `source` `processes` there are also `share` communicating and efficiency,
`bytes` reduced, `phase` all-reduce (alone) and `error` losses; `loss` of `source` guessing is ln of the number of
classes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot
from typing import Any

from gpuexplore.activity import Activity, Payload
from gpuexplore.analysis.figure import (
    PLAIN,
    RATE,
    SIZE,
    TIME,
    WORK,
    Dimension,
    LessonFigure,
    QuantityRow,
    Style,
    exact,
)
from gpuexplore.core import Device, Origin, median, widened
from gpuexplore.features.training.analysis import ratio_doubts, time_doubts
from gpuexplore.features.training.measure import activity_of
from gpuexplore.features.training.measure.contract import (
    PHASES,
    ModeReport,
    PhaseTime,
    Processes,
    Timing,
    TrainingReport,
    Underflow,
    joined,
    largest_difference,
    report_of,
)
from gpuexplore.features.training.measure.setup import DEFAULTS, MODES, read_setup

HERE = frozenset({Origin.LIVE.label})


def arguments_of(block: Any) -> dict[str, str]:
    """Return the arguments of the training that a block asks for."""
    numbers = {"batch": str(block.batch), "steps": str(block.steps), "processes": str(block.processes)}
    usual = {name: DEFAULTS[name] for name in ("optimizer", "seed")}  # as the page gives them, to be known again
    return {"model": block.model, "modes": ",".join(block.modes), "data": block.data, **numbers, **usual}


def activity(block: Any, devices: Sequence[Device]) -> Activity | None:
    """Return the work of a block, on the CPU; None where more processes are asked for than it has cores.

    Raises:
        InvalidInput, TooLarge: it cannot be trained anywhere.
    """
    arguments = arguments_of(block)
    read_setup(arguments, block.processes)
    device = next((device for device in devices if device.kind == "cpu"), None)
    if device is None or block.processes > (device.cores or block.processes):
        return None
    return activity_of(arguments, device, 0)


def measured_rows(block: Any, payload: Payload) -> Iterator[QuantityRow]:
    """Yield the quantities of a training from its last payload."""
    report = joined([payload])
    if report is None:
        return
    for row in _rows(block, report):
        yield replace(row, figures={name: _widened(name, row, report) for name in row.figures})


def _widened(name: str, row: QuantityRow, report: TrainingReport) -> LessonFigure | str:
    """Return a figure that rests on a clock, wider where others had the CPU; the rest is as true on a busy machine."""
    figure = row.figures[name]
    on_clock = ("time", "first_call", "rate", "mfu", "speedup", "phase")
    timed = name in on_clock or row.labels.get("name") in ("communicating", "efficiency")
    if not (timed and isinstance(figure, LessonFigure) and figure.low > 0):
        return figure
    is_paired = name == "speedup" or row.labels.get("name") == "efficiency"
    doubts = ratio_doubts(report) if is_paired else time_doubts(report)
    low, high = widened((figure.low, figure.high), figure.value, hypot(*(doubt.deviation for doubt in doubts)))
    return replace(figure, low=low, high=high)


def unmeasured_rows(block: Any, devices: Sequence[Device]) -> Iterator[QuantityRow]:
    """Yield why a training cannot be done here."""
    cores = next((device.cores for device in devices if device.kind == "cpu"), None)
    here = f"this CPU has {cores}" if cores else "this machine's CPU is unknown"
    yield QuantityRow({"of": block.id}, {}, f"{block.processes} processes need a core each: {here}")


def rehearsed_rows(block: Any) -> Iterator[QuantityRow]:
    """Yield the rows that a training of this block has, with made-up figures."""
    setup = read_setup(arguments_of(block), block.processes)
    size = 4 * setup.model.parameters
    made = Timing(1.0, (0.9, 1.1), 9)
    lost = Underflow(1e-5, 65536.0, 1.0, 0.5, 0.0)
    phases = tuple(PhaseTime(name, made) for name in PHASES[1:])  # lessons train on the CPU, which has no transfer
    together = [f"{name} × {block.processes}" for name in setup.modes if block.processes > 1]
    modes = tuple(
        ModeReport(
            name,
            losses=(1.0, 1.0),
            step_s=made,
            phases=phases,
            mfu=0.5,
            ratio=made,
            zero_gradients=((0, 0.5),),
            first_call_s=1.0,
            scales=((0, 65536.0),) if name in MODES and MODES[name].scaled else (),
            error=1e-3,
            underflow=lost if name in MODES and MODES[name].dtype == "fp16" else None,
        )
        for name in (*setup.modes, *together)
    )
    processes = Processes(block.processes, "gloo", "", made, 0.5, made, 0.5, size, 1e-8) if together else None
    yield from _rows(block, report_of(setup, 1, modes=modes, processes=processes))


def _rows(block: Any, report: TrainingReport) -> Iterator[QuantityRow]:
    yield QuantityRow({"of": block.id, "source": "guessing"}, {"loss": exact(report.chance_loss)})
    for mode in report.modes:
        yield from _mode_rows(block, mode, report)
    if report.processes:
        yield from _process_rows(block, report.processes)


def _mode_rows(block: Any, mode: ModeReport, report: TrainingReport) -> Iterator[QuantityRow]:
    name, _, count = mode.name.partition(" ")
    source = f"{name} processes" if count and name != report.modes[0].name else "processes" if count else name
    labels = {"of": block.id, "source": source}
    figures = {"flops": exact(float(report.flop_count), WORK), "batch": exact(float(report.batch))}
    figures |= _known("time", _figure(mode.step_s, TIME)) | _known("speedup", _figure(mode.ratio))
    figures |= _known("first_call", _single(mode.first_call_s, TIME))
    figures |= _known("mfu", _single(mode.mfu, style="percent"))
    if mode.step_s and mode.step_s.ci95:
        low, high = (report.flop_count / end for end in reversed(mode.step_s.ci95))
        figures["rate"] = LessonFigure(report.flop_count / mode.step_s.median, low, high, RATE, sources=HERE)
    yield QuantityRow(labels, figures)
    for phase in mode.phases:
        yield QuantityRow(labels | {"name": phase.name}, _known("phase", _figure(phase.time_s, TIME)))
    losses = [loss for loss in mode.losses if loss is not None]
    if losses:
        yield QuantityRow(labels | {"name": "first"}, _known("loss", _single(losses[0])))
        last = median(losses[-max(1, len(losses) // 5) :])
        yield QuantityRow(labels | {"name": "last"}, _known("loss", _single(last)))
    yield from (QuantityRow(labels | {"name": name}, made) for name, made in _checked(mode, report.modes[0]))


def _checked(mode: ModeReport, first: ModeReport) -> Iterator[tuple[str, dict[str, LessonFigure]]]:
    """Yield how far a mode is from others, what its scaler did, and which shares of its gradients are zero."""
    yield "gradients", _known("error", _single(mode.error))
    if mode is not first and " " not in mode.name:  # that of several processes is reported
        yield "losses", _known("error", _single(largest_difference(first.losses, mode.losses)))
    if mode.scales:
        yield "skipped", {"count": exact(float(mode.skipped_steps))}
        yield "first scale", {"figure": exact(mode.scales[0][1])}
        yield "last scale", {"figure": exact(mode.scales[-1][1])}
    shares = {"zero": mode.zero_gradients[-1][1]} if mode.zero_gradients else {}
    if lost := mode.underflow:
        shares |= {"zero unscaled": lost.unscaled, "zero scaled": lost.scaled, "zero fp32": lost.dead}
    for name, share in shares.items():
        yield name, _known("share", _single(share, style="percent"))


def _process_rows(block: Any, found: Processes) -> Iterator[QuantityRow]:
    labels = {"of": block.id, "source": "processes"}
    for name, share in (("communicating", found.communicating), ("efficiency", found.efficiency)):
        yield QuantityRow(labels | {"name": name}, _known("share", _single(share, style="percent")))
    yield QuantityRow(labels | {"name": "reduced"}, {"bytes": exact(float(found.reduced_bytes), SIZE)})
    yield QuantityRow(labels | {"name": "all-reduce"}, _known("phase", _figure(found.all_reduce_s, TIME)))
    yield QuantityRow(labels | {"name": "losses"}, _known("error", _single(found.largest_loss_difference)))


def _known(name: str, figure: LessonFigure | None) -> dict[str, LessonFigure]:
    return {} if figure is None else {name: figure}


def _figure(timing: Timing | None, dimension: Dimension = PLAIN) -> LessonFigure | None:
    if timing is None:
        return None
    low, high = timing.ci95 or (timing.median, timing.median)
    return LessonFigure(timing.median, low, high, dimension, sources=HERE)


def _single(value: float | None, dimension: Dimension = PLAIN, style: Style = "number") -> LessonFigure | None:
    return None if value is None else LessonFigure(value, value, value, dimension, style, HERE)
