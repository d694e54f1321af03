"""What a chart does not show, in a sentence: cases without a measurement, and those without the figure."""

from collections.abc import Sequence

import pandas as pd

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.run.summary_rules import missing_counts


def left_out(
    results: Sequence[AnalyzedResult], drawn: pd.DataFrame | None = None, without: str = "without the figure"
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
