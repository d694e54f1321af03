"""Words of a chart: the alternative text, which says what it shows and its main figures, and what it leaves out."""

from collections.abc import Callable, Sequence

import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult, RunAnalysis
from gpuexplore.analysis.run.summary_rules import missing_counts

MOST_FIGURES = 4


def alt_text(
    what: str,
    points: pd.DataFrame,
    analysis: RunAnalysis,
    words: Callable[[float], str],
    *,
    low_is_best: bool = False,
) -> str:
    """Return ``Time per call of Matrix multiplication over 4 sizes; at 512 × 512 × 512: torch in bf16 310 µs, ...``.

    Args:
        words: formats a value, e.g. `format_seconds`.
    """
    if not analysis.shown:
        return f"{what}: no results yet."
    title = analysis.shown[0].operation.title
    if points.empty:
        return f"{what} of {title.lower()}: nothing to draw yet."
    largest = points[points["order"] == points["order"].max()].sort_values("value", ascending=low_is_best)
    figures = [f"{case} {words(value)}" for case, value in zip(largest["case"], largest["value"], strict=True)]
    rest = len(figures) - MOST_FIGURES
    more = f", and {rest} more" if rest > 0 else ""
    count = points["order"].nunique()
    sizes = "one size" if count == 1 else f"{count} sizes"
    shape = largest["shape"].iloc[0]
    return f"{what} of {title.lower()}, {sizes}; at {shape}: {', '.join(figures[:MOST_FIGURES])}{more}."


def left_out(
    results: Sequence[AnalyzedResult], drawn: pd.DataFrame | None = None, without: str = "without a value"
) -> str | None:
    """Return ``3 of 12 cases are not drawn: 2 skipped, 1 incorrect.``, or None when all are.

    Args:
        drawn: the points of the chart, where measured cases can be missing too.
        without: what those lack, e.g. ``without a known peak``.
    """
    counts = missing_counts([analyzed.result for analyzed in results])
    measured = len(results) - counts.total()
    if drawn is not None and len(drawn) < measured:
        counts[without] = measured - len(drawn)
    if not counts:
        return None
    listed = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    verb = "is" if counts.total() == 1 else "are"
    return f"{counts.total()} of {len(results)} case{'s'[: len(results) > 1]} {verb} not drawn: {listed}."
