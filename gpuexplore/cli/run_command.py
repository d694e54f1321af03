"""`gpuexplore run`: measure in a worker process per device, print, write and save."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuexplore.analysis.model import AnalyzedResult, Context, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.comparison import comparison_for
from gpuexplore.analysis.run.estimate import TOLD_FROM_S, check_limits, estimate
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization.best_results import best_of
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.cli.output import ProgressLine, check_writable, exit_code, print_columns, print_json, print_summary
from gpuexplore.cli.streams import say
from gpuexplore.cli.turns import say_who_is_waited_for
from gpuexplore.devices import discover
from gpuexplore.errors import InvalidInput, not_installed
from gpuexplore.jobs.engines import batches_of
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.model import Case, Device, Experiment, Result, Status
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import resolve
from gpuexplore.units import UNKNOWN, format_percent, format_ratio, format_seconds, format_work_rate

OWNER = "command line"
FILE_TYPES = (".json", ".csv", ".parquet")  # those of charts.export, which takes pandas to import
INTERRUPTED = "interrupted before it was measured"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, when something was measured already.

    Attributes:
        results: one of every case; those that were not measured are CANCELLED.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        super().__init__()
        self.results = tuple(results)


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
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"write {', '.join(FILE_TYPES)}")
    parser.add_argument("--no-save", action="store_true", help="do not keep the run for the app")


def execute(arguments: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    export = _exporter(arguments.out) if arguments.out else None
    devices = discover()
    experiment = resolve(request_from(arguments, arguments.operation, devices), [device.id for device in devices])
    check_limits(experiment, devices)
    comparison = comparison_for(experiment, arguments.baseline, arguments.peak)
    used = [device for device in devices if device.id in experiment.devices]
    engine = LocalEngine(used)
    earlier: tuple[Result, ...] | None = None
    try:
        for device in used:
            engine.start(device)
        earlier = None if arguments.no_save else _earlier(used)
        _say_what_takes_long(experiment, devices, earlier)
        results = measure(experiment, used, engine)
    except Interrupted as interrupted:
        results = interrupted.results
    finally:
        engine.close()
    analysis = analyze(results, comparison, Context(earlier=best_of(earlier or ())))
    try:
        if export:
            arguments.out.write_bytes(export(arguments.out.suffix, experiment, analysis))
        if arguments.json:
            print_json(run_report(experiment, analysis))
        else:
            _print_table(analysis)
        sys.stdout.flush()  # before the run is kept: should the database fail now, the results are printed,
    finally:  # and should nobody read what is printed, they are kept
        if not arguments.no_save:
            save(experiment, results)
    return exit_code(results)


def measure(experiment: Experiment, devices: Sequence[Device], engine: LocalEngine) -> tuple[Result, ...]:
    """Return the results of every case, each device measured in a process of its own.

    Raises:
        Interrupted: by Ctrl-C, when something was measured already.
    """
    results: dict[Case, Result] = {}
    progress = ProgressLine(len(experiment.cases()))

    def take(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event
        progress.show(event)

    try:
        for device in devices:
            if device.id in experiment.devices:
                say_who_is_waited_for(device)
        for batch in batches_of(experiment.cases()):
            engine.measure(batch, take, lambda: False)
    except KeyboardInterrupt as error:
        if not results:
            raise
        say(f"gpuexplore: interrupted: {len(results)} of {len(experiment.cases())} cases were measured")
        raise Interrupted([_result_of(case, results) for case in experiment.cases()]) from error
    return tuple(results[case] for case in experiment.cases())


def _say_what_takes_long(experiment: Experiment, devices: Sequence[Device], earlier: Sequence[Result] | None) -> None:
    expected = estimate(experiment, devices, earlier, cold=True)
    if expected.seconds < TOLD_FROM_S:
        return
    slow = expected.slow[0] if expected.slow else None
    way = f" (--dtype without {slow.dtype}, or --impl without {slow.implementation}, leaves it out)" if slow else ""
    say(f"gpuexplore: {expected.cases} cases take {expected.sentence}{way}")


def _result_of(case: Case, results: Mapping[Case, Result]) -> Result:
    """Return what is known of a case: after an interrupt, its first pass is all there will be."""
    found = results.get(case)
    return replace(found, provisional=False) if found else Result(case, Status.CANCELLED, INTERRUPTED)


def _exporter(path: Path) -> Callable[[str, Experiment, RunAnalysis], bytes]:
    """Return what writes the file: better missing before measuring than after."""
    check_writable(path, FILE_TYPES)
    from gpuexplore.charts.export import export

    return export


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


def _print_table(analysis: RunAnalysis) -> None:
    heading = ("size", "dtype", "implementation", "device", "time", "speedup", "rate", "MFU", "bound", "status")
    print_columns([heading, *(table_row(analyzed) for analyzed in analysis.results)])
    print_summary(analysis)


def table_row(analyzed: AnalyzedResult) -> tuple[str, ...]:
    """Return a line of the table of results, in the order of its heading."""
    case, result = analyzed.case, analyzed.result
    flags = " ".join(analyzed.marks)
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
