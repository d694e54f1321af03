"""Bytes/s against size, on log scales, below the memory bandwidth; caches can lift a point above it."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.run.derived import Figures, figures
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.analysis.utilization.utilization import BANDWIDTH_KINDS
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.peak_labels import PeakLine, peak_labels
from gpuexplore.charts.points import Span, at_rate, points
from gpuexplore.charts.reference_lines import peak_rules
from gpuexplore.charts.series import owner
from gpuexplore.model import Measurement
from gpuexplore.units import format_bytes_per_s


def bandwidth(source: Source, against: Against = USUAL) -> alt.LayerChart:
    """Return achieved bytes/s against size, with a line for the memory bandwidth of each device."""
    drawn, peaks = _points(source, against), _peaks(source, against)
    values = [*drawn["low"], *drawn["high"], *peaks.values()]
    y = log_axis("Memory rate", values, "B/s")
    rules = peak_rules(peaks)
    return lines(drawn, results_of(source), y=y, description=describe_bandwidth(source), rules=rules)


def describe_bandwidth(source: Source) -> str:
    """Return the alternative text of the chart of bytes/s."""
    return alt_text("Memory rate", _points(source), results_of(source), format_bytes_per_s)


def _points(source: Source, against: Against = USUAL) -> pd.DataFrame:
    return points(source, _rate, against=against)


def _rate(measurement: Measurement, derived: Figures) -> Span | None:
    return at_rate(derived.bytes_per_s, measurement)


def _peaks(source: Source, against: Against) -> dict[str, float]:
    """Return the bandwidths that measured cases are held against, by their label."""
    results = results_of(source)
    return peak_labels(
        (
            PeakLine(
                owner(result, results),
                "",
                BANDWIDTH_KINDS[its.bandwidth.kind].removeprefix("the "),
                its.bandwidth.bytes_per_s,
            )
            for result, its in zip(results, figures(results, against=against), strict=True)
            if its.bandwidth and its.bytes_per_s
        ),
        format_bytes_per_s,
    )
