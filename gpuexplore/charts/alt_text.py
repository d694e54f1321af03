"""Alternative text: one sentence that says what a chart shows and its main figures."""

from collections.abc import Callable

import pandas as pd

from gpuexplore.analysis.model import RunAnalysis

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
    place = largest["shape"].iloc[0]
    return f"{what} of {title.lower()}, {sizes}; at {place}: {', '.join(figures[:MOST_FIGURES])}{more}."
