"""Bytes/s against size, on log scales, below the memory bandwidth; caches can lift a point above it."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, analysis_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Lines, Spread, at_rate, drawn_in, ends_of, in_panel, points
from gpuexplore.charts.reference_lines import PeakLine, peak_labels, peak_rules
from gpuexplore.charts.series import owners_of, series_of
from gpuexplore.core.model import Measurement
from gpuexplore.core.units import format_bytes_per_s


def bandwidth(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return achieved bytes/s against size, with a line for each device's bandwidth, of one dtype as a `panel`."""
    analysis = analysis_of(source)
    drawn, every_peak = _points(analysis), _peaks(analysis)
    y = log_axis("Memory rate", [*ends_of(drawn), *every_peak.values()], "B/s")
    rules = peak_rules(_peaks(analysis, panel))
    return lines(in_panel(drawn, panel), analysis, y=y, description=_describe(drawn, analysis), rules=rules)


def describe_bandwidth(source: Source) -> str:
    """Return the alternative text of the chart of bytes/s."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text("Memory rate", drawn, analysis, format_bytes_per_s)


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    return points(analysis, _rate)


def _rate(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
    return at_rate(analyzed.bytes_per_s, analyzed, measurement)


def _peaks(analysis: RunAnalysis, panel: str | Lines | None = None) -> dict[str, float]:
    """Return the bandwidths that the cases of a panel are compared with, by their label."""
    owners = owners_of(analysis.shown)
    lines = [
        PeakLine(owners[series_of(analyzed)], "", PEAK_SOURCES[peak.kind].bandwidth_label, peak.bytes_per_s)
        for analyzed in drawn_in(panel, analysis)
        if (peak := analyzed.bandwidth.peak) and analyzed.bytes_per_s
    ]
    return peak_labels(lines, format_bytes_per_s)
