"""The pandas data frame of an analysis."""

from typing import Protocol

import pandas as pd

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.json_report import rows
from gpuexplore.core.model import Run


class _Analyzable(Protocol):
    """A run in Python: it can be analyzed."""

    def analyze(self) -> RunAnalysis:
        """Return what follows from its results, compared with the defaults."""


Source = RunAnalysis | _Analyzable


def analysis_of(source: Source) -> RunAnalysis:
    """Return an analysis as it is, or that of a run compared with the defaults.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(source, RunAnalysis):
        return source
    if not hasattr(source, "analyze"):
        raise TypeError(f"a chart takes a run or what run.analyze() returns, not a {type(source).__name__}")
    return source.analyze()


def to_frame(source: Source, run: Run | None = None) -> pd.DataFrame:
    """Return one row per result with the columns of `gpuexplore.analysis.run.json_report`; unknown is missing.

    Args:
        source: of the results.
        run: the run of the store that they are of; None for none.
    """
    return pd.DataFrame(rows(analysis_of(source), run)).convert_dtypes()
