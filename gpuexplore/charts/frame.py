"""The one place that turns results into a pandas data frame."""

from collections.abc import Sequence
from typing import Protocol

import pandas as pd

from gpuexplore.analysis.run.flat_rows import rows
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.model import Result


class HasResults(Protocol):
    """A run, stored or in memory."""

    @property
    def results(self) -> Sequence[Result]:
        """What became of its cases."""


Source = HasResults | Sequence[Result]


def results_of(source: Source) -> tuple[Result, ...]:
    """Return the results of a run, or a sequence of results as it is."""
    return tuple(source if isinstance(source, Sequence) else source.results)


def to_frame(source: Source, baseline: str | None = None, against: Against = USUAL) -> pd.DataFrame:
    """Return one row per result with the columns of `gpuexplore.analysis.run.flat_rows`; unknown is missing."""
    return pd.DataFrame(rows(results_of(source), baseline=baseline, against=against)).convert_dtypes()
