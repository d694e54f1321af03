"""FLOP/s against size, on log scales, below the compute peaks that apply."""

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
from gpuexplore.core.units import format_flop_per_s


def throughput(source: Source, panel: str | Lines | None = None) -> alt.LayerChart:
    """Return achieved FLOP/s against size, with a line for each peak that applies, of one dtype as a `panel`."""
    analysis = analysis_of(source)
    drawn, every_peak = _points(analysis), _peaks(analysis)
    y = log_axis("Compute rate", [*ends_of(drawn), *every_peak.values()], "FLOP/s")
    rules = peak_rules(_peaks(analysis, panel))
    return lines(in_panel(drawn, panel), analysis, y=y, description=_describe(drawn, analysis), rules=rules)


def describe_throughput(source: Source) -> str:
    """Return the alternative text of the chart of FLOP/s."""
    analysis = analysis_of(source)
    return _describe(_points(analysis), analysis)


def _describe(drawn: pd.DataFrame, analysis: RunAnalysis) -> str:
    return alt_text("Compute rate", drawn, analysis, format_flop_per_s)


def _points(analysis: RunAnalysis) -> pd.DataFrame:
    return points(analysis, _rate)


def _rate(analyzed: AnalyzedResult, measurement: Measurement) -> Spread | None:
    return at_rate(analyzed.flop_per_s or None, analyzed, measurement)


def _peaks(analysis: RunAnalysis, panel: str | Lines | None = None) -> dict[str, float]:
    """Return the peaks that the cases of a panel are compared with, by their label.

    Where cases of one dtype and device have several, each label says of which implementations it is.
    """
    owners, found = owners_of(analysis.shown), drawn_in(panel, analysis)
    known = [(analyzed, peak) for analyzed in found if (peak := analyzed.peak.peak) and analyzed.flop_per_s]
    rivals: dict[tuple[str, str], set[float]] = {}
    implementations: dict[tuple[str, float], dict[str, None]] = {}
    for analyzed, peak in known:
        rivals.setdefault((analyzed.device_label, analyzed.case.dtype), set()).add(peak.flop_per_s)
        where = f" in {analyzed.case.dtype}" if analyzed.case.dtype != peak.dtype else ""
        name = f"{analyzed.case.implementation}{where}"
        implementations.setdefault((analyzed.device_label, peak.flop_per_s), {})[name] = None
    mixed = {(device, rate) for (device, _), rates in rivals.items() if len(rates) > 1 for rate in rates}
    lines = []
    for analyzed, peak in known:
        peak_key = (analyzed.device_label, peak.flop_per_s)
        kind = PEAK_SOURCES[peak.kind].label
        said = f"{kind} of {', '.join(implementations[peak_key])}" if peak_key in mixed else kind
        dtype = "" if peak.dtype == panel else peak.dtype
        lines.append(PeakLine(owners[series_of(analyzed)], dtype, said, peak.flop_per_s))
    return peak_labels(lines, format_flop_per_s)
