"""The steps of a presentation: a title, then each chart with one line more at each step, then the address."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.charts import has_share
from gpuexplore.charts.panels import panels, shown_lines
from gpuexplore.charts.points import Lines

ChartName = Literal["time", "speedup", "share", "rate"]


@dataclass(frozen=True, slots=True)
class Step:
    """What is on the screen.

    Attributes:
        chart: which one; None for the title.
        panel: the dtype that it shows; None for all.
        lines: those that are revealed so far.
    """

    chart: ChartName | None = None
    panel: str | None = None
    lines: Lines = frozenset()


def steps_of(analysis: RunAnalysis) -> Sequence[Step]:
    """Return the steps of a run; without a measurement only the title."""
    found = [Step()]
    if analysis.fastest is None:
        return found
    for chart in ("time", "speedup", "share", "rate"):
        if chart == "share" and not has_share(analysis):
            continue
        for panel, lines in panels(analysis).items():
            found += _revealed(chart, panel, lines or shown_lines(analysis, ()), analysis)
    return found


def _revealed(chart: ChartName, panel: str | None, lines: Lines, analysis: RunAnalysis) -> list[Step]:
    """Return a step for each line of a chart, the slowest of the largest size first, so that the best comes last."""
    drawn = lines if chart != "speedup" else _without_baseline(lines, analysis)
    order = sorted(drawn, key=lambda line: _place(line, analysis), reverse=True)
    return [Step(chart, panel, frozenset(order[: count + 1])) for count in range(len(order))]


def _without_baseline(lines: Lines, analysis: RunAnalysis) -> Lines:
    baseline = analysis.comparison.baseline
    return frozenset(line for line in lines if line[1] != baseline and line[0].split(" · ")[0] != baseline)


def _place(line: tuple[str, str], analysis: RunAnalysis) -> tuple[float, str]:
    series, dtype = line
    times = [
        analyzed.median_s
        for analyzed in analysis.at_largest_shape
        if analyzed.case.dtype == dtype and series.startswith(analyzed.case.implementation) and analyzed.median_s
    ]
    return (min(times, default=0.0), series)
