"""Points and choices as flat rows for JSON, CSV and data frames: units in the columns' names, unknown is None."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from gpuexplore.features.atlas.analysis.citations import Citation
from gpuexplore.features.atlas.analysis.points import Point
from gpuexplore.features.atlas.analysis.which_gpu import Choice
from gpuexplore.typed_text import spreadsheet_safe

Row = dict[str, Any]


def point_row(point: Point) -> Row:
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


def choice_row(choice: Choice) -> Row:
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
