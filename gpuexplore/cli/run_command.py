"""`gpuexplore run`: measure in a worker process per device, print, write and save.

Workers start before anything is loaded that only concludes: they take half a second to load what they measure with.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from gpuexplore.cli.experiment_arguments import add_experiment_arguments, add_operation, operation_of, request_from
from gpuexplore.cli.output import declare, say
from gpuexplore.core import Case, Device, Experiment, InvalidInput, PeakKind, Result, Status, not_installed
from gpuexplore.hardware import discover
from gpuexplore.jobs.engines import batches_of, limits_typed
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.request import resolve

if TYPE_CHECKING:
    from gpuexplore.analysis.model import RunAnalysis

    Export = Callable[[Experiment, RunAnalysis], bytes]

OWNER = "command line"
FILE_TYPES = (
    ".html",
    ".json",
    ".csv",
    ".parquet",
    ".md",
    ".tex",
    ".pyperf.json",
    ".pytest-benchmark.json",
)  # of charts.exports, which takes pandas to import
INTERRUPTED = "interrupted before it was measured"


class _Interrupted(KeyboardInterrupt):
    """Ctrl-C, when something was measured already.

    Attributes:
        results: one of every case; those that were not measured are CANCELLED.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__()
        self.results = tuple(results)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `run`."""
    add_operation(parser)
    add_experiment_arguments(parser)
    parser.add_argument("--baseline", default="", metavar="NAME", help="implementation or dtype to compare with")
    kinds = ", ".join(get_args(PeakKind))
    declare(
        parser,
        {
            "--peak KIND": f"MFU relative to one of {kinds} (default: the device's)",
            "--memory-limit SIZE": "memory limit of the process that measures, like 4GB "
            "(default: 90 %% of free, 50 %% with your own code)",
            "--time-limit TIME": "time limit for building a case and its first call, like 10s (default: 60s)",
            "--json": "print one JSON object",
            "--out FILE": {"type": Path, "default": None, "help": f"write {', '.join(FILE_TYPES)}"},
            "--no-save": "do not save the run for the app",
            "--room URL": "send the run to a room on another server: https://host/?room=CODE",
            "--name NAME": "your name in the room (default: your login name)",
        },
        default="",
    )
    parser.set_defaults(is_shown=True)  # a notebook draws the results itself


def execute(arguments: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    _, results = carry_out(arguments)
    from gpuexplore.cli.output import exit_code

    return exit_code(results)


def carry_out(arguments: argparse.Namespace) -> tuple[Experiment, tuple[Result, ...]]:
    """Run the experiment, print, write and keep what was asked for, and return it with a result of every case."""
    export = _exporter(arguments.out) if arguments.out else None
    devices = discover()
    experiment = resolve(request_from(arguments, operation_of(arguments), devices), [device.id for device in devices])
    send = _sender(arguments.room, arguments.name)
    limits = limits_typed(arguments.memory_limit, arguments.time_limit)
    engine = LocalEngine([device for device in devices if device.id in experiment.devices], limits=limits)
    try:
        for device in devices:
            engine.start(device)
        results, analysis = _carried_out(experiment, engine, arguments=arguments, devices=devices, export=export)
    finally:
        engine.close()
    if send:
        send(experiment, analysis)
    return experiment, results


def _carried_out(
    experiment: Experiment,
    engine: LocalEngine,
    *,
    arguments: argparse.Namespace,
    devices: Sequence[Device],
    export: "Export | None",
) -> "tuple[tuple[Result, ...], RunAnalysis]":
    from gpuexplore.cli import run_report

    used = [device for device in devices if device.id in experiment.devices]
    comparison = run_report.checked(experiment, devices, arguments.baseline, arguments.peak)
    earlier = None if arguments.no_save else _earlier(used)
    run_report.say_what_takes_long(experiment, devices, earlier)
    try:
        results = measure(experiment, used, engine)
    except _Interrupted as interrupted:
        results = interrupted.results
    analysis = run_report.concluded(results, comparison, earlier)
    try:
        if export:
            arguments.out.write_bytes(export(experiment, analysis))
        if arguments.is_shown:
            run_report.show(experiment, analysis, as_json=arguments.json)
        sys.stdout.flush()  # before the run is kept: should the database fail now, the results are printed,
    finally:  # and where the output is not read, they are kept
        if not arguments.no_save:
            save(experiment, results)
    return results, analysis


def _sender(address: str, name: str) -> "Callable[[Experiment, RunAnalysis], None] | None":
    """Join the room of an address, and return what sends a run to it: better refused before measuring than after."""
    if not address:
        if name:
            raise InvalidInput.of("--name", name, "a name together with --room URL")
        return None
    from gpuexplore.analysis.run.json_report import run_report
    from gpuexplore.cli.room_sending import destination, keep
    from gpuexplore.rooms import spoken

    room = destination(address, name)
    known = room.join()
    keep(room)
    say(f"In room {spoken(room.code)} of {room.app} as {known}")

    def send(experiment: Experiment, analysis: "RunAnalysis") -> None:
        say(f"Sent to room {spoken(room.code)}: {room.send(run_report(experiment, analysis))}")

    return send


def measure(experiment: Experiment, devices: Sequence[Device], engine: LocalEngine) -> tuple[Result, ...]:
    """Return the results of every case, each device measured in a process of its own.

    Raises:
        Interrupted: by Ctrl-C, when something was measured already.
    """
    from gpuexplore.cli.device_locking import report_lock_holder
    from gpuexplore.cli.output import ProgressLine

    results: dict[Case, Result] = {}
    progress = ProgressLine(len(experiment.cases()))

    def take(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event
        progress.show(event)

    try:
        for device in devices:
            if device.id in experiment.devices:
                report_lock_holder(device)
        for batch in batches_of(experiment.cases()):
            engine.measure(batch, take, lambda: False)
    except KeyboardInterrupt as error:
        if not results:
            raise
        say(f"gpuexplore: interrupted: {len(results)} of {len(experiment.cases())} cases were measured")
        # After an interrupt, the first pass of a case is all there will be
        final = {case: replace(found, provisional=False) for case, found in results.items()}
        cases = experiment.cases()
        raise _Interrupted([final.get(case, Result(case, Status.CANCELLED, INTERRUPTED)) for case in cases]) from error
    return tuple(results[case] for case in experiment.cases())


def _exporter(path: Path) -> "Export":
    """Return what writes the file: better missing before measuring than after."""
    from gpuexplore.charts.exports import EXPORTS, Exported, export, format_of
    from gpuexplore.cli.output import check_writable

    suffix = format_of(path)
    check_writable(path, EXPORTS)
    return lambda experiment, analysis: export(suffix, Exported(experiment, analysis))


def _earlier(devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return what was measured on these devices before; a database that fails does so before measuring."""
    try:
        from gpuexplore.store import open_store
    except ModuleNotFoundError as error:
        raise InvalidInput(f"{not_installed(error)}; or measure with --no-save") from error
    with open_store() as store:
        return tuple(result for device in devices for _, result in store.measured_results(device))


def save(experiment: Experiment, results: Sequence[Result]) -> None:
    """Keep a run for the app, and say where it is to be found."""
    from gpuexplore.store import open_store

    with open_store() as store:
        run_id = store.record(experiment, OWNER, results=results)
    say(f"Saved: in the app, add ?run={run_id} to the address")
