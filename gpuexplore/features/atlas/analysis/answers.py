"""What Python gets of the atlas: points, or GPUs ranked for a call, as values and as data frames."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuexplore.features.atlas.analysis.citations import Citation
from gpuexplore.features.atlas.analysis.points import Point, citations
from gpuexplore.features.atlas.analysis.rows import choice_row, citation_row, point_row
from gpuexplore.features.atlas.analysis.which_gpu import Choice

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, repr=False)
class Atlas:
    """What GPUs were measured to do: its points, one after the other."""

    points: tuple[Point, ...]

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Who measured them, each collection once."""
        return citations(self.points)

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per point, SI base units; unknown is missing."""
        return _frame([point_row(point) for point in self.points])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `gpuexplore atlas OPERATION --json` prints."""
        return {
            "points": [point_row(point) | {"shape": dict(point.shape.axes)} for point in self.points],
            "sources": [citation_row(citation) for citation in self.citations],
        }

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        gpus = {point.spec_key for point in self.points}
        return f"<{len(self)} measurements on {len(gpus)} GPUs from {len(self.citations)} sources>"


@dataclass(frozen=True, slots=True, repr=False)
class Ranking:
    """GPUs for one call, from the best to the worst: its choices, one after the other."""

    choices: tuple[Choice, ...]

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per GPU and dtype, SI base units; unknown is missing."""
        return _frame([choice_row(choice) for choice in self.choices])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `gpuexplore atlas OPERATION --which --json` prints."""
        return {"choices": [choice_row(choice) | {"shape": dict(choice.layer.shape.axes)} for choice in self.choices]}

    def __iter__(self) -> Iterator[Choice]:
        return iter(self.choices)

    def __len__(self) -> int:
        return len(self.choices)

    def __repr__(self) -> str:
        best = self.choices[0].device.title if self.choices else "none"
        return f"<{len(self)} GPUs ranked, the first is {best}>"


def _frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows).convert_dtypes()
