"""Two runs beside each other, case by case: what got faster or slower, what stayed, and what cannot be told."""

from gpuexplore.analysis.compare.compare import ComparedCase, RunComparison, Side, Told, compare_runs
from gpuexplore.analysis.compare.differences import Difference, differences
from gpuexplore.analysis.compare.texts import as_json, as_markdown

__all__ = [
    "ComparedCase",
    "Difference",
    "RunComparison",
    "Side",
    "Told",
    "as_json",
    "as_markdown",
    "compare_runs",
    "differences",
]
