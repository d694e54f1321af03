"""Which lines a chart shows, and which dtypes get a panel of their own, where one chart would hold too many.

A line is an implementation on a device, by its name on charts, in one dtype.
"""

from collections.abc import Collection, Mapping

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.charts.points import Lines
from gpuexplore.charts.series import series_name, series_of
from gpuexplore.dtypes import DTYPES

MOST_LINES = 6  # of one chart
MOST_PANELS = 4  # that stand side by side
EMULATED = "emulated formats"  # stands for the lines of formats that their device does not compute in


def lines_of(analysis: RunAnalysis) -> Mapping[tuple[str, str], bool]:
    """Return every line that is measured, and whether its format is emulated there."""
    found: dict[tuple[str, str], bool] = {}
    for analyzed in analysis.shown:
        if analyzed.measurement:
            line = (series_name(series_of(analyzed), analysis.shown), analyzed.case.dtype)
            found[line] = found.get(line, False) or analyzed.flag("emulated") is not None
    return found


def shown_lines(analysis: RunAnalysis, hidden: Collection[str]) -> Lines:
    """Return the lines that are left where some are hidden: series and dtypes by their names, or EMULATED."""
    return frozenset(
        (series, dtype)
        for (series, dtype), is_emulated in lines_of(analysis).items()
        if series not in hidden and dtype not in hidden and not (is_emulated and EMULATED in hidden)
    )


def panels_of(analysis: RunAnalysis, hidden: Collection[str] = ()) -> tuple[str, ...]:
    """Return the dtypes whose lines are drawn in panels side by side; none where one chart holds all lines."""
    lines = shown_lines(analysis, hidden)
    dtypes = tuple(dtype for dtype in DTYPES if any(dtype == of for _, of in lines))
    over_sizes = len({analyzed.case.shape for analyzed in analysis.shown if analyzed.measurement}) > 1
    return dtypes if over_sizes and len(lines) > MOST_LINES and 1 < len(dtypes) <= MOST_PANELS else ()


def panels(
    analysis: RunAnalysis, hidden: Collection[str] = (), *, apart: bool = True
) -> Mapping[str | None, Lines | None]:
    """Return what each panel shows, by its dtype; of a single chart under None, all of it where nothing is hidden.

    Args:
        analysis: of a run.
        hidden: as of `shown_lines`.
        apart: whether many lines get a panel for each dtype.
    """
    lines, dtypes = shown_lines(analysis, hidden), panels_of(analysis, hidden) if apart else ()
    if dtypes:
        return {panel: frozenset(line for line in lines if line[1] == panel) for panel in dtypes}
    return {None: lines if hidden else None}
