"""The quantities of the block `claim` of a lesson: verdicts of the fact check."""

from typing import Any

from gpuexplore.analysis.figure import QuantityRow
from gpuexplore.features.fact_check.analysis import claims_of
from gpuexplore.features.fact_check.analysis.judge import judge


def rows(block: Any) -> tuple[QuantityRow, ...]:
    """Return the verdicts of the claims of a row of the notebooks.

    Raises:
        NotFound: there is none.
    """
    return tuple(
        QuantityRow({"of": block.id, "name": claim.id}, {"verdict": judge(claim).verdict})
        for claim in claims_of(block.row)
    )
