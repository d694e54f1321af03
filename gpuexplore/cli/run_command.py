"""`gpuexplore run`: measure in a worker process per device, print, write and save."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuexplore.analysis.model import AnalyzedResult, Context, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.comparison import comparison_for
from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization.best_results import best_of
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.charts.export import EXPORTS, export
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.cli.output import ProgressLine, check_writable, exit_code, print_columns, print_json, print_summary
from gpuexplore.cli.turns import say_who_is_waited_for
from gpuexplore.devices import discover
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.measure.sweep import groups_of
from gpuexplore.model import Case, Device, Experiment, Result
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import resolve
from gpuexplore.store import open_store
from gpuexplore.units import UNKNOWN, format_percent, format_ratio, format_seconds, format_work_rate

OWNER = "command line"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `run`."""
    parser.add_argument("operation", metavar="OPERATION", help=", ".join(OPERATIONS))
    add_experiment_arguments(parser)
    parser.add_argument("--baseline", default="", metavar="NAME", help="implementation or dtype to compare with")
    kinds = ", ".join(PEAK_SOURCES)
    parser.add_argument(
        "--peak", default="", metavar="KIND", help=f"MFU relative to one of {kinds} (default: the device's)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"write {', '.join(EXPORTS)}")
    parser.add_argument("--no-save", action="store_true", help="do not keep the run for the app")


def execute(arguments: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    if arguments.out:
        check_writable(arguments.out, EXPORTS)
    devices = discover()
    experiment = resolve(request_from(arguments, arguments.operation), [device.id for device in devices])
    check_limits(experiment, devices)
    comparison = comparison_for(experiment, arguments.baseline, arguments.peak)
    earlier = () if arguments.no_save else _earlier([device for device in devices if device.id in experiment.devices])
    results = measure(experiment, devices)
    analysis = analyze(results, comparison, Context(earlier=earlier))
    if arguments.out:
        arguments.out.write_bytes(export(arguments.out.suffix, experiment, analysis))
    if arguments.json:
        print_json(run_report(experiment, analysis))
    else:
        _print_table(analysis)
    if not arguments.no_save:  # last: should the database fail now, the results are printed
        save(experiment, results)
    return exit_code(results)


def measure(experiment: Experiment, devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return the results of every case, each device measured in a process of its own."""
    results: dict[Case, Result] = {}
    progress = ProgressLine(len(experiment.cases()))

    def take(event: Case | Result) -> None:
        progress.show(event)
        if isinstance(event, Result):
            results[event.case] = event

    engine = LocalEngine(devices)
    try:
        for device in devices:
            if device.id in experiment.devices:
                say_who_is_waited_for(device)
                engine.warm(device)
        for group in groups_of(experiment.cases()):
            engine.measure(group, take, lambda: False)
    finally:
        engine.close()
    return tuple(results[case] for case in experiment.cases())


def _earlier(devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return the best that was measured on these devices before; a database that fails does so before measuring."""
    with open_store() as store:
        return best_of(result for device in devices for _, result in store.measured_results(device))


def save(experiment: Experiment, results: Sequence[Result]) -> None:
    """Keep a run for the app, and say where it is to be found."""
    with open_store() as store:
        run_id = store.record(experiment, OWNER, results=results)
    print(f"Saved: in the app, add ?run={run_id} to the address", file=sys.stderr)


def _print_table(analysis: RunAnalysis) -> None:
    heading = ("size", "dtype", "implementation", "device", "time", "speedup", "rate", "MFU", "bound", "status")
    print_columns([heading, *(table_row(analyzed) for analyzed in analysis.results)])
    print_summary(analysis)


def table_row(analyzed: AnalyzedResult) -> tuple[str, ...]:
    """Return a line of the table of results, in the order of its heading."""
    case, result = analyzed.case, analyzed.result
    flags = " ".join(flag.name for flag in result.flags)
    return (
        shape_label(case.shape),
        case.dtype,
        case.implementation,
        case.device,
        format_seconds(analyzed.median_s),
        format_ratio(analyzed.speedup.ratio) if analyzed.speedup else UNKNOWN,
        format_work_rate(analyzed.flop_per_s, analyzed.bytes_per_s),
        format_percent(analyzed.mfu),
        analyzed.bound or UNKNOWN,
        f"{result.status}  {flags}" if result.measurement else f"{result.status}: {result.reason}",
    )
