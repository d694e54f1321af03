"""FLOP/s against size, on log scales, below the compute peaks that apply."""

import altair as alt
import pandas as pd

from gpuexplore.analysis.denominators import USUAL, Against
from gpuexplore.analysis.figures import Figures, figures
from gpuexplore.analysis.mfu import PEAK_KINDS
from gpuexplore.charts.alt_text import alt_text
from gpuexplore.charts.axes import log_axis
from gpuexplore.charts.frame import Source, results_of
from gpuexplore.charts.lines import lines
from gpuexplore.charts.points import Span, at_rate, points
from gpuexplore.charts.rules import peak_rules
from gpuexplore.dtypes import DTYPES
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
    """Return the peaks that measured cases are held against, equal ones under one label."""
    derived = figures(results_of(source), against=against)
    present = {one.peak for one in derived if one.peak and one.flop_per_s}
    dtypes: dict[tuple[float, str], set[str]] = {}
    for peak in present:
        dtypes.setdefault((peak.flop_per_s, PEAK_KINDS[peak.kind].removeprefix("the ")), set()).add(peak.dtype)
    return {
        f"{', '.join(name for name in DTYPES if name in names)}, {kind}: {format_flop_per_s(rate)}": rate
        for (rate, kind), names in dtypes.items()
    }
