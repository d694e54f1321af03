"""`gpuexplore train`: small models learn, in several interleaved modes, alone or in several processes."""

import argparse
import sys

from gpuexplore.activity import Payload
from gpuexplore.cli.activity_run import perform
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json
from gpuexplore.core import (
    UNKNOWN,
    GpuExploreError,
    encode,
    format_bytes,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
)
from gpuexplore.features.training.analysis import conclusions
from gpuexplore.features.training.measure import activity_of
from gpuexplore.features.training.measure.contract import ModeReport, Processes, Timing, TrainingReport, joined
from gpuexplore.features.training.measure.setup import DATA, DEFAULTS, MODES, OPTIMIZERS, PRESETS
from gpuexplore.hardware import device_named, discover

CLEAR_LINE = "\r\033[K"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `train`; values stay text."""
    parser.add_argument(
        "model", nargs="?", default="", metavar="MODEL", help=f"{', '.join(PRESETS)}, or widths like 784-256-10"
    )
    for option, metavar, about in (
        ("--batch", "N", "samples per step (default: a usual value for the model)"),
        ("--steps", "N", f"steps of each mode (default: {DEFAULTS['steps']})"),
        ("--modes", "LIST", f"{', '.join(MODES)} (default: {DEFAULTS['modes']})"),
        ("--optimizer", "NAME", f"{', '.join(OPTIMIZERS)} (default: sgd)"),
        ("--learning-rate", "X", "learning rate (default: a usual value for the optimizer)"),
        ("--data", "NAME", "; ".join(f"{name}: {labels}" for name, labels in DATA.items())),
        ("--processes", "N", "number of processes, compared with one process (default: 1)"),
        ("--seed", "N", "seed of weights and batches (default: 0)"),
    ):
        parser.add_argument(option, default="", metavar=metavar, help=about)
    declare(
        parser,
        {
            "--device NAME": {"default": "cpu", "help": "device: cpu or cuda:0 (default: cpu)"},
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Train, with a line on standard error that says how far it is, and print what came of it."""
    devices = discover()
    given = {name: getattr(arguments, name) for name in DEFAULTS}
    gpu_count = sum(device.kind == "cuda" for device in devices)
    report = joined(perform(activity_of(given, device_named(arguments.device, devices), gpu_count), _show))
    if report is None:
        raise GpuExploreError("the training reported no result")
    if sys.stderr.isatty():
        print(CLEAR_LINE, end="", file=sys.stderr, flush=True)
    if arguments.json:
        print_json(encode(report))
    else:
        _print(report)
    return EXIT_OK


def _show(payload: Payload) -> None:
    """Show how far it is, on one line of a terminal."""
    report = joined([payload])
    if report is None or not sys.stderr.isatty():
        return
    losses = ", ".join(f"{mode.name} {_loss(mode.losses[-1])}" for mode in report.modes if mode.losses)
    done = report.doing or f"step {report.steps_done} of {report.steps}: loss {losses}"
    print(f"{CLEAR_LINE}{done[:100]}", end="", file=sys.stderr, flush=True)


def _print(report: TrainingReport) -> None:
    threads = "one thread per process" if report.threads == 1 else f"{report.threads} threads"
    print(
        f"{report.model}: {report.parameters:,} parameters, batch {report.batch:,}, {report.flop_count:.4g} FLOPs per "
        f"step, {report.optimizer} {report.learning_rate:g}, data {report.data}, {threads}\n"
        f"{report.steps_done} of {report.steps} steps{f', for {report.stopped}' if report.stopped else ''}; "
        f"random guessing has a loss of {report.chance_loss:.4f}\n"
    )
    headings = [
        "mode",
        "first loss",
        "last loss",
        "step",
        "95 % interval",
        "speedup",
        "samples/s",
        "MFU",
        "zero gradients",
    ]
    print_columns([headings, *map(_row, report.modes)])
    phases = [(mode.name, *(f"{phase.name} {_time(phase.time_s)}" for phase in mode.phases)) for mode in report.modes]
    print()
    print_columns([("phases", *[""] * (len(phases[0]) - 1)), *phases])
    for verdict in conclusions(report):
        print(f"  {verdict.statement}")
    if report.is_contended:
        print(f"\ncontended: other work used {format_percent(report.lost_cpu_share)} of the CPU during the training")
    if report.is_contention_unknown:
        print("\ncontention unknown: the system does not report how much CPU other work used")
    for mode in report.modes:
        _print_scaling(mode)
    if report.processes:
        _print_processes(report.processes)


def _row(mode: ModeReport) -> tuple[str, ...]:
    return (
        mode.name,
        _loss(mode.losses[0]) if mode.losses else UNKNOWN,
        _loss(mode.losses[-1]) if mode.losses else UNKNOWN,
        _time(mode.step_s),
        format_interval(mode.step_s.ci95, format_seconds) if mode.step_s else UNKNOWN,
        format_ratio(mode.ratio.median) if mode.ratio else UNKNOWN,
        f"{mode.samples_per_s:,.0f}" if mode.samples_per_s else UNKNOWN,
        format_percent(mode.mfu),
        format_percent(mode.zero_gradients[-1][1]) if mode.zero_gradients else UNKNOWN,
    )


def _loss(loss: float | None) -> str:
    return "not finite" if loss is None else f"{loss:.4f}"


def _time(time_s: Timing | None) -> str:
    return format_seconds(time_s.median) if time_s else UNKNOWN


def _print_scaling(mode: ModeReport) -> None:
    if mode.scales:
        history = ", ".join(f"{scale:g} from step {step}" for step, scale in mode.scales)
        print(f"\n{mode.name}: loss scale {history}; {mode.skipped_steps} steps skipped")
    if mode.underflow:
        found = mode.underflow
        print(
            f"{mode.name}: at a loss of {found.loss:g}, {format_percent(found.unscaled)} of the gradients are zero, "
            f"{format_percent(found.scaled)} scaled by {found.scale:g}, {format_percent(found.dead)} in fp32"
        )


def _print_processes(found: Processes) -> None:
    speedup = format_ratio(found.speedup.median) if found.speedup else UNKNOWN
    interval = format_interval(found.speedup.ci95, format_ratio) if found.speedup else UNKNOWN
    difference = UNKNOWN if found.largest_loss_difference is None else f"{found.largest_loss_difference:.1e}"
    print(
        f"\n{found.count} processes ({found.backend}) over one, {found.mode}: {speedup} ({interval}), efficiency "
        f"{format_percent(found.efficiency)}\nall-reduce of {format_bytes(found.reduced_bytes)} "
        f"({found.reduced_bytes:,} bytes): {_time(found.all_reduce_s)} alone, at most "
        f"{format_percent(found.communicating)} of a step\n"
        f"largest relative difference of losses to one process: {difference}"
    )
    if found.data_parallel:
        print(f"DataParallel on the same GPUs: {_time(found.data_parallel)} a step")
