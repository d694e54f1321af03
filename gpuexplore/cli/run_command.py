"""`gpuexplore run`: measure in a worker process per device, print, write and save."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.run.estimate import refuse
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.utilization.measured_ceiling import best_of
from gpuexplore.analysis.utilization.peak_choice import Against, peak_kind
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS
from gpuexplore.charts.export import EXPORTS, export
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.cli.output import ProgressLine, check_writable, exit_code, print_columns, print_json, print_summary
from gpuexplore.devices import discover
from gpuexplore.errors import InvalidInput
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
    parser.add_argument("--baseline", default=None, metavar="NAME", help="implementation or dtype to compare with")
    kinds = ", ".join(PEAK_KINDS)
    parser.add_argument(
        "--peak", default="", metavar="KIND", help=f"MFU against one of {kinds} (default: the device's)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"write {', '.join(EXPORTS)}")
    parser.add_argument("--no-save", action="store_true", help="do not keep the run for the app")


def execute(arguments: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    if arguments.out:
        check_writable(arguments.out, EXPORTS)
    kind, devices = peak_kind(arguments.peak), discover()
    experiment = resolve(request_from(arguments, arguments.operation), [device.id for device in devices])
    refuse(experiment, devices)
    _refuse_baseline(arguments.baseline, experiment)
    known = () if arguments.no_save else _earlier([device for device in devices if device.id in experiment.devices])
    results = measure(experiment, devices)
    against = Against(kind, known=known)
    if arguments.out:
        arguments.out.write_bytes(export(arguments.out.suffix, experiment, results, against))
    if arguments.json:
        print_json(run_report(experiment, results, baseline=arguments.baseline, against=against))
    else:
        _print_table(results, arguments.baseline, against)
    if not arguments.no_save:  # last: should the database fail now, the results are printed
        _save(experiment, results)
    return exit_code(results)


def _refuse_baseline(baseline: str | None, experiment: Experiment) -> None:
    accepted = (*experiment.implementations, *experiment.dtypes)
    if baseline is not None and baseline not in accepted:
        raise InvalidInput.of("baseline", baseline, accepted)


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
                engine.warm(device)
        for group in groups_of(experiment.cases()):
            engine.measure(group, take, lambda: False)
    finally:
        engine.close()
    return tuple(results[case] for case in experiment.cases())


def _earlier(devices: Sequence[Device]) -> tuple[Result, ...]:
    """Return the best that was measured on these devices before; a database that fails does so before measuring."""
    with open_store() as store:
        return best_of(one for device in devices for _, one in store.measured_results(device))


def _save(experiment: Experiment, results: Sequence[Result]) -> None:
    with open_store() as store:
        run_id = store.record(experiment, OWNER, results=results)
    print(f"Saved: in the app, add ?run={run_id} to the address", file=sys.stderr)


def _print_table(results: Sequence[Result], baseline: str | None, against: Against) -> None:
    heading = ("size", "dtype", "implementation", "device", "time", "speedup", "rate", "MFU", "status")
    rows = [
        _row(result, its)
        for result, its in zip(results, figures(results, baseline=baseline, against=against), strict=True)
    ]
    print_columns([heading, *rows])
    summary = summarize(results, baseline=baseline, against=against)
    print_summary(summary, results, against)


def _row(result: Result, derived: Figures) -> tuple[str, ...]:
    case, measurement = result.case, result.measurement
    flags = " ".join(flag.name for flag in result.flags)
    return (
        shape_label(case.shape),
        case.dtype,
        case.implementation,
        case.device,
        format_seconds(measurement.median_s) if measurement else UNKNOWN,
        format_ratio(derived.speedup.ratio) if derived.speedup else UNKNOWN,
        format_work_rate(derived.flop_per_s, derived.bytes_per_s),
        format_percent(derived.mfu),
        f"{result.status}  {flags}" if measurement else f"{result.status}: {result.reason}",
    )
