"""The conclusions that `gpuexplore run` prints; loaded while the workers start."""

from collections.abc import Sequence

from gpuexplore.analysis.model import AnalyzedResult, Comparison, Context, RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.estimate import REPORTED_FROM_S, check_limits, estimate
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization import best_of, comparison_for, shape_label
from gpuexplore.cli.output import print_columns, print_json, say
from gpuexplore.core import (
    UNKNOWN,
    Device,
    Experiment,
    Result,
    format_percent,
    format_ratio,
    format_seconds,
    format_work_rate,
)

__all__ = ["checked", "concluded", "say_what_takes_long", "show"]


def checked(experiment: Experiment, devices: Sequence[Device], baseline: str, peak: str) -> Comparison:
    """Return what results are compared with.

    Raises:
        InvalidInput: the experiment takes too much of `devices`, or it has no such baseline or peak.
    """
    check_limits(experiment, devices)
    return comparison_for(experiment, baseline, peak)


def say_what_takes_long(experiment: Experiment, devices: Sequence[Device], earlier: Sequence[Result] | None) -> None:
    """Say how long a run will take, and how to leave out what is slow, where that is long."""
    expected = estimate(experiment, devices, earlier, cold=True)
    if expected.seconds < REPORTED_FROM_S:
        return
    dtype, implementation = next(iter(expected.slow), (None, None))
    way = f" (leave out {dtype} from --dtype, or {implementation} from --impl, to avoid it)" if dtype else ""
    say(f"gpuexplore: {expected.cases} cases take {expected.sentence}{way}")


def concluded(results: Sequence[Result], comparison: Comparison, earlier: Sequence[Result] | None) -> RunAnalysis:
    """Return what follows from results, and from what was measured on the device before."""
    return analyze(results, comparison, Context(earlier=best_of(earlier or ())))


def show(experiment: Experiment, analysis: RunAnalysis, *, as_json: bool) -> None:
    """Print a table and what it means, or one JSON object."""
    if as_json:
        print_json(run_report(experiment, analysis))
        return
    heading = ("size", "dtype", "implementation", "device", "time", "speedup", "rate", "MFU", "roof", "status")
    print_columns([heading, *(_table_row(analyzed) for analyzed in analysis.results)])
    _print_summary(analysis)


def _print_summary(analysis: RunAnalysis) -> None:
    """Print what the results mean, then why the fastest is as it is: each sentence once, with its evidence."""
    result = analysis.headline_result
    diagnoses = result.diagnoses if result else ()
    sentences = {diagnosis.sentence for diagnosis in diagnoses}
    details = (sentence for sentence in analysis.summary.details if sentence not in sentences)
    print("", analysis.summary.headline, *details, *(note.sentence for note in analysis.machines), sep="\n")
    if result and diagnoses:
        print(f"\nWhat limits {result.label} at {shape_label(result.case.shape)}:")
    for diagnosis in diagnoses:
        print(f"- {diagnosis.sentence}\n  {diagnosis.evidence}")


def _table_row(analyzed: AnalyzedResult) -> tuple[str, ...]:
    """Return a line of the table of results, in the order of its heading."""
    case = analyzed.case
    result = analyzed.result
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
