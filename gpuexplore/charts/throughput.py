"""FLOP/s against size, on log scales, below the compute peaks that apply."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.peak_labels import PeakLine, peak_labels
from gpuexplore.charts.points import Span, at_rate, points
from gpuexplore.charts.reference_lines import peak_rules
from gpuexplore.charts.series import owner
from gpuexplore.model import Measurement
from gpuexplore.units import format_flop_per_s


def throughput(source: Source, against: Against = USUAL) -> alt.LayerChart:
    """Return achieved FLOP/s against size, with a line for each peak that applies."""
    drawn, peaks = _points(source, against), _peaks(source, against)
    values = [*drawn["low"], *drawn["high"], *peaks.values()]
    y = log_axis("Compute rate", values, "FLOP/s")
    return lines(drawn, results_of(source), y=y, description=describe_throughput(source), rules=peak_rules(peaks))


def describe_throughput(source: Source) -> str:
    """Return the alternative text of the chart of FLOP/s."""
    return alt_text("Compute rate", _points(source), results_of(source), format_flop_per_s)


def _points(source: Source, against: Against = USUAL) -> pd.DataFrame:
    return points(source, _rate, against=against)


def _rate(measurement: Measurement, derived: Figures) -> Span | None:
    return at_rate(derived.flop_per_s or None, measurement)


def _peaks(source: Source, against: Against) -> dict[str, float]:
    """Return the peaks that measured cases are held against, by their label."""
    results = results_of(source)
    return peak_labels(
        (
            PeakLine(
                owner(result, results),
                its.peak.dtype,
                PEAK_KINDS[its.peak.kind].removeprefix("the "),
                its.peak.flop_per_s,
            )
            for result, its in zip(results, figures(results, against=against), strict=True)
            if its.peak and its.flop_per_s
        ),
        format_flop_per_s,
    )
