"""What a chart does not show, in a sentence: cases without a measurement, and those without the figure."""

from collections import Counter

import pandas as pd

from gpuexplore.charts.frame import Source, results_of
from gpuexplore.model import Status


def left_out(source: Source, drawn: pd.DataFrame | None = None, without: str = "without the figure") -> str | None:
    """Return ``3 of 12 cases are not drawn: 2 skipped, 1 incorrect.``, or None when all are.

    Args:
        drawn: the points of the chart, where measured cases can be missing too.
        without: what those lack, e.g. ``without a known peak``.
    """
    results = results_of(source)
    counts = Counter(result.status.value.replace("_", " ") for result in results if result.status is not Status.OK)
    measured = len(results) - counts.total()
    if drawn is not None and len(drawn) < measured:
        counts[without] = measured - len(drawn)
    if not counts:
        return None
    listed = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    verb = "is" if counts.total() == 1 else "are"
    return f"{counts.total()} of {len(results)} case{'s'[: len(results) > 1]} {verb} not drawn: {listed}."
