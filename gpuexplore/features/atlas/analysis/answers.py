"""What Python gets of the atlas: points, or GPUs ranked for a call, as values and as data frames."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuexplore.features.atlas.analysis.citations import Citation
from gpuexplore.features.atlas.analysis.points import AtlasPoint, citations
from gpuexplore.features.atlas.analysis.which_gpu import GpuChoice
from gpuexplore.typed_text import spreadsheet_safe

if TYPE_CHECKING:
    import pandas as pd


Row = dict[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class Atlas:
    """What GPUs were measured to do: its points, one after the other."""

    points: tuple[AtlasPoint, ...]

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

    def __iter__(self) -> Iterator[AtlasPoint]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        gpus = {point.spec_key for point in self.points}
        return f"<{len(self)} measurements on {len(gpus)} GPUs from {len(self.citations)} sources>"


@dataclass(frozen=True, slots=True, repr=False)
class Ranking:
    """GPUs for one call, from the best to the worst: its choices, one after the other."""

    choices: tuple[GpuChoice, ...]

    def to_pandas(self) -> "pd.DataFrame":
        """Return one row per GPU and dtype, SI base units; unknown is missing."""
        return _frame([choice_row(choice) for choice in self.choices])

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `gpuexplore atlas OPERATION --which --json` prints."""
        return {"choices": [choice_row(choice) | {"shape": dict(choice.layer.shape.axes)} for choice in self.choices]}

    def __iter__(self) -> Iterator[GpuChoice]:
        return iter(self.choices)

    def __len__(self) -> int:
        return len(self.choices)

    def __repr__(self) -> str:
        best = self.choices[0].device.title if self.choices else "none"
        return f"<{len(self)} GPUs ranked, the first is {best}>"


def _frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows).convert_dtypes()


# Points and choices as flat rows for JSON, CSV and data frames: units in the columns' names, unknown is None.


def point_row(point: AtlasPoint) -> Row:
    """Return a point as a row; its shape as text."""
    return {
        "gpu": point.device.title,
        "spec_key": point.spec_key,
        "operation": point.operation,
        "shape": str(point.shape),
        "dtype": point.dtype,
        "implementation": point.implementation,
        "time_s": point.time_s,
        "calls": point.calls,
        "flop_count": point.flop_count,
        "byte_count": point.byte_count,
        "flop_per_s": point.flop_per_s,
        "bytes_per_s": point.bytes_per_s,
        "bound": point.bound,
        "mfu": point.mfu,
        "bandwidth_utilization": point.bandwidth_utilization,
        "origin": point.origin,
        "conditions": point.conditions,
        "source": point.citation.name,
        "licence": point.citation.licence,
        "url": point.url,
        "run": point.run_id,
    }


def choice_row(choice: GpuChoice) -> Row:
    """Return a choice as a row; its shape as text."""
    found, listed, time = choice.found, choice.listed, choice.time
    return {
        "gpu": choice.device.title,
        "spec_key": choice.device.spec_key,
        "operation": choice.layer.operation,
        "shape": str(choice.layer.shape),
        "dtype": found.dtype,
        "support": found.support,
        "reason": found.reason,
        "time_s": time and time.value,
        "low_s": time and time.low,
        "high_s": time and time.high,
        "origin": found.origin and found.origin.value,
        "basis": found.basis or None,
        "url": choice.point and choice.point.url,
        "flop_per_s": choice.flop_per_s,
        "bytes_per_s": choice.bytes_per_s,
        "mfu": found.mfu,
        "energy_j": found.energy_j,
        "memory_needed_bytes": found.memory_bytes,
        "memory_bytes": choice.device.memory_bytes,
        "fits": found.fits,
        "price_per_hour": choice.price_per_hour,
        "price_source": listed and f"{listed.provider}, {listed.read_on}, {listed.page}",
        "cost_of_million": choice.cost_of_million,
    }


def citation_row(citation: Citation) -> Row:
    """Return a citation as a row."""
    return {
        "source": citation.name,
        "licence": citation.licence,
        "citation": citation.text,
        "how": citation.how,
        "url": citation.url,
    }


def csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows, at least one, as CSV that no spreadsheet computes; unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: spreadsheet_safe(value) if isinstance(value, str) else value for name, value in row.items()}
        )
    return text.getvalue()
