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
        source: a link, or the document.
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


def best_published(spec_key: str | None, dtype: str) -> Peak | None:
    """Return the best published rate of products in `dtype` on this device as a peak; None where there is none."""
    found = [one for one in PUBLISHED if (one.spec_key, one.dtype) == (spec_key, dtype)]
    if not found:
        return None
    best = max(found, key=lambda one: one.flop_per_s)
    return Peak(dtype, "matrix", best.flop_per_s, "published", f"{best.shape}: {best.source} ({best.note})")


def _read() -> tuple[PublishedResult, ...]:
    with (files("gpuexplore.analysis") / "data" / "published_matmul.csv").open(encoding="utf-8") as lines:
        return tuple(_result(row) for row in csv.DictReader(lines))


def _result(row: dict[str, str]) -> PublishedResult:
    m, n, k = map(int, row["shape"].split("x"))
    shape, flop_per_s = Shape.of(m=m, k=k, n=n), float(f"{row['tflops']}e12")
    return PublishedResult(row["gpu"], row["spec_key"], row["dtype"], shape, flop_per_s, row["source"], row["note"])


PUBLISHED = _read()
