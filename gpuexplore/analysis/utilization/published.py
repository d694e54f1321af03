"""Results that others published: the best matrix products they reached on devices of the table, each with its link."""

import csv
from dataclasses import dataclass
from importlib.resources import files

from gpuexplore.model import Peak, Shape
from gpuexplore.operations import operation_named


@dataclass(frozen=True, slots=True)
class PublishedResult:
    """One product somebody measured and published; not measured by gpuexplore.

    Attributes:
        gpu: the device as its author calls it.
        spec_key: its row in the table of accelerators.
        dtype: a format of FORMATS.
        shape: of `matmul`.
        flop_per_s: the rate they report.
        source: the link.
        note: conditions.
    """

    gpu: str
    spec_key: str
    dtype: str
    shape: Shape
    flop_per_s: float
    source: str
    note: str

    @property
    def time_s(self) -> float:
        """Seconds of one product at that rate."""
        return operation_named("matmul").flop_count(self.shape) / self.flop_per_s


@dataclass(frozen=True, slots=True)
class NotedResult:
    """The rates of products that the notes of the table of accelerators mention as measured; shapes are not stated.

    Attributes:
        spec_key: the row of the table whose `source_url` and `notes` they come from.
        dtype: a format of FORMATS.
        low_flop_per_s: the lowest of them.
        high_flop_per_s: the highest.
    """

    spec_key: str
    dtype: str
    low_flop_per_s: float
    high_flop_per_s: float


def best_results(spec_key: str | None) -> tuple[PublishedResult, ...]:
    """Return the best published product in each dtype on this device."""
    known = [published for published in PUBLISHED if published.spec_key == spec_key]
    return tuple({result.dtype: result for result in sorted(known, key=lambda result: result.flop_per_s)}.values())


def best_published(spec_key: str | None, dtype: str) -> Peak | None:
    """Return the best published rate of products in `dtype` on this device as a peak; None where there is none."""
    best = next((result for result in best_results(spec_key) if result.dtype == dtype), None)
    if best is None:
        return None
    return Peak(dtype, "matrix", best.flop_per_s, "published", f"{best.shape}: {best.source} ({best.note})")


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("gpuexplore.analysis") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _result(row: dict[str, str]) -> PublishedResult:
    m, n, k = map(int, row["shape"].split("x"))
    shape, flop_per_s = Shape.of(m=m, k=k, n=n), float(f"{row['tflops']}e12")
    return PublishedResult(row["gpu"], row["spec_key"], row["dtype"], shape, flop_per_s, row["source"], row["note"])


def _noted(row: dict[str, str]) -> NotedResult:
    low, high = (float(f"{row[name]}e12") for name in ("low_tflops", "high_tflops"))
    return NotedResult(row["spec_key"], row["dtype"], low, high)


PUBLISHED = tuple(_result(row) for row in _rows("published_matmul.cc-by-sa-4.0.csv"))
NOTED = tuple(_noted(row) for row in _rows("noted_matmul.csv"))
