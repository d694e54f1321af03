"""Which column of the data files is the peak of which dtype on which unit: shared by table and formula.

`*_tensor` columns are matrix units and accumulate in fp32. A product in fp32 or fp64 on a device
without matrix units for it runs on the vector units, so these are its peak. No other dtype has a
substitute: bf16 on a device without bf16 units is emulated and has no peak.
"""

from collections.abc import Callable
from typing import NamedTuple

from gpuexplore.dtypes import format_named
from gpuexplore.model import Peak, PeakKind, Unit

RATE_FIELDS = (
    "fp64",
    "fp64_tensor",
    "fp32",
    "tf32_tensor",
    "fp16_vector",
    "fp16_tensor",
    "fp16_tensor_fp16acc",
    "bf16_tensor",
    "fp8_tensor",
    "fp8_tensor_fp16acc_or_mx",
    "fp4_tensor",
    "int8_tensor_tops",
    "fp32_matrix",
)


class PeakField(NamedTuple):
    """The column of one dtype on one unit, and the vector column a product falls back to."""

    dtype: str
    unit: Unit
    field: str
    fallback: str | None = None


PEAK_FIELDS = (
    PeakField("fp64", "matrix", "fp64_tensor", "fp64"),
    PeakField("fp32", "matrix", "fp32_matrix", "fp32"),
    PeakField("tf32", "matrix", "tf32_tensor"),
    PeakField("bf16", "matrix", "bf16_tensor"),
    PeakField("fp16", "matrix", "fp16_tensor"),
    PeakField("fp8", "matrix", "fp8_tensor"),
    PeakField("fp64", "vector", "fp64"),
    PeakField("fp32", "vector", "fp32"),
    PeakField("fp16", "vector", "fp16_vector"),
)
VECTOR_UNITS_DO_IT = "no matrix unit for this dtype: the vector unit's peak"


class Rate(NamedTuple):
    """What one column says: FLOP/s, how they were found, and the document or the factors."""

    flop_per_s: float
    kind: PeakKind
    source: str


def peaks_from(rate_of: Callable[[str], Rate | None], absent: Callable[[str], bool]) -> tuple[Peak, ...]:
    """Return a row for every dtype and unit that has a rate.

    Args:
        rate_of: the rate of a column, None where it is unknown or no such unit exists.
        absent: whether the unit of a column is known not to exist, so that its fallback counts.
    """
    found = (_peak(row, rate_of, absent) for row in PEAK_FIELDS)
    return tuple(peak for peak in found if peak is not None)


def _peak(row: PeakField, rate_of: Callable[[str], Rate | None], absent: Callable[[str], bool]) -> Peak | None:
    rate, unit, source_note = rate_of(row.field), row.unit, ""
    if rate is None and row.fallback is not None and absent(row.field):
        rate, unit, source_note = rate_of(row.fallback), "vector", f" ({VECTOR_UNITS_DO_IT})"
    if rate is None:
        return None
    source = f"{_conditions(row.dtype, unit)}: {rate.source}{source_note}"
    return Peak(row.dtype, row.unit, rate.flop_per_s, rate.kind, source)


def _conditions(dtype: str, unit: Unit) -> str:
    """Return what a figure is for: never with sparsity, on which units, and what accumulates."""
    arithmetic = f"{format_named(dtype).accumulate} accumulation" if unit == "matrix" else f"{dtype} arithmetic"
    return f"dense, {unit} units, {arithmetic}"
