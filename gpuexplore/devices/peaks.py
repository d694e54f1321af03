"""Which column of the data files is the peak of which dtype on which unit: shared by table and formula.

`*_tensor` columns are matrix units and accumulate in fp32. A product in fp32 or fp64 on a device
without matrix units for it runs on the vector units, so these are its peak. No other dtype has a
substitute: bf16 on a device without bf16 units is emulated and has no peak.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
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


PEAK_FIELDS: Mapping[tuple[str, Unit], str] = MappingProxyType(
    {
        ("fp64", "matrix"): "fp64_tensor",
        ("fp32", "matrix"): "fp32_matrix",
        ("tf32", "matrix"): "tf32_tensor",
        ("bf16", "matrix"): "bf16_tensor",
        ("fp16", "matrix"): "fp16_tensor",
        ("fp8", "matrix"): "fp8_tensor",
        ("fp64", "vector"): "fp64",
        ("fp32", "vector"): "fp32",
        ("fp16", "vector"): "fp16_vector",
    }
)
ON_VECTOR_UNITS = ("fp64", "fp32")  # products too, where there are no matrix units for them
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
    peaks: list[Peak] = []
    for (dtype, unit), field in PEAK_FIELDS.items():
        rate = rate_of(field)
        source = rate and f"{_conditions(dtype, unit)}: {rate.source}"
        if rate is None and unit == "matrix" and dtype in ON_VECTOR_UNITS and absent(field):
            rate = rate_of(PEAK_FIELDS[dtype, "vector"])
            source = rate and f"{_conditions(dtype, 'vector')}: {rate.source} ({VECTOR_UNITS_DO_IT})"
        if rate and source:
            peaks.append(Peak(dtype, unit, rate.flop_per_s, rate.kind, source))
    return tuple(peaks)


def _conditions(dtype: str, unit: Unit) -> str:
    """Return what a figure is for: never with sparsity, on which units, and what accumulates."""
    arithmetic = f"{format_named(dtype).accumulate} accumulation" if unit == "matrix" else f"{dtype} arithmetic"
    return f"dense, {unit} units, {arithmetic}"
