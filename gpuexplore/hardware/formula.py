"""Peaks of a device that is in no table: rate of its class x multiprocessors x clock, or nothing.

The compute capability alone does not settle the class: 8.6 is a GeForce RTX 3060 or an RTX A4000,
whose tensor rates differ by two. The driver's name decides where it can; else only those rates are
used on which all classes of that compute capability agree.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpuexplore.core.model import Bandwidth, Peak
from gpuexplore.hardware.accelerators import RATE_FIELDS, Rate, peaks_from, read_table


@dataclass(frozen=True, slots=True)
class _RateClass:
    """Dense FLOP per clock and multiprocessor of one class of devices, by column."""

    name: str
    compute_capability: str
    flop_per_clock: Mapping[str, float] = field(hash=False)

    def rate(self, column: str) -> float | None:
        """Return FLOP per clock and multiprocessor; None where the unit does not exist."""
        return self.flop_per_clock.get(column)


RATE_CLASSES = tuple(
    _RateClass(
        row["rate_class"], row["compute_capability"], {name: float(row[name]) for name in RATE_FIELDS if row.get(name)}
    )
    for row in read_table("flop_per_clock.csv")
)

# What a driver name must contain to distinguish the classes of one compute capability.
NAMES_OF_CLASS = {
    "turing-full": r"\b(Quadro|TITAN) RTX\b",
    "turing-geforce": r"\bGeForce RTX\b",
    "turing-tu11x": r"\bGeForce (GTX|MX)\b",
    "ampere-ga10x-geforce": r"\bGeForce\b",
    "ampere-ga10x-pro": r"\bRTX A\d",
    "ada-geforce": r"\bGeForce\b",
    "ada-pro": r"\bRTX \d+ .*Ada\b",
    "blackwell-gb20x-geforce": r"\bGeForce\b",
    "blackwell-gb20x-pro": r"\bRTX PRO\b",
    "hopper": r"\b(H100|H200|GH200)\b",
    "hopper-h800": r"\bH800\b",
    "hopper-h20": r"\bH20\b",
}
SLOWED_FIELDS = ("tf32_tensor", "fp16_tensor", "bf16_tensor", "fp8_tensor")  # under tensor load


def _classes_of(compute_capability: str, driver_name: str) -> tuple[_RateClass, ...]:
    """Return the classes the device may belong to: one where the name decides, none when unknown."""
    candidates = tuple(class_ for class_ in RATE_CLASSES if class_.compute_capability == compute_capability)
    named = tuple(
        candidate for candidate in candidates if re.search(NAMES_OF_CLASS.get(candidate.name, r"(?!)"), driver_name)
    )
    return named or candidates


def formula_peaks(
    driver_name: str, *, compute_capability: str | None, multiprocessors: int | None, clock_hz: float | None
) -> tuple[Peak, ...]:
    """Return rate x multiprocessors x clock for every dtype that is certain; empty where a factor is missing."""
    if compute_capability is None or multiprocessors is None or clock_hz is None:
        return ()
    classes = _classes_of(compute_capability, driver_name)

    def rate_of(field: str) -> Rate | None:
        rates = {rate * _clock_share(class_, field) for class_ in classes if (rate := class_.rate(field)) is not None}
        if len(rates) != 1 or any(class_.rate(field) is None for class_ in classes):
            return None
        flop_per_s = multiprocessors * clock_hz * rates.pop()
        return flop_per_s, "formula", _source(classes, multiprocessors, clock_hz, field)

    return peaks_from(rate_of, lambda field: bool(classes) and all(class_.rate(field) is None for class_ in classes))


def tensor_clock_share(compute_capability: str | None, driver_name: str, field: str) -> float:
    """Return the share of the maximum clock that the formula counts on for a column; 1 where no class is slowed."""
    classes = _classes_of(compute_capability or "", driver_name)
    return _clock_share(classes[0], field) if classes else 1.0


def _clock_share(rate_class: _RateClass, field: str) -> float:
    # Under tensor load these run, and are rated, below the clock the driver calls the maximum.
    shares = {
        "hopper": 0.924,
        "hopper-h800": 0.924,
        "hopper-h20": 0.924,
        "blackwell-b200": 0.945,
        "blackwell-b300": 0.945,
    }
    return shares.get(rate_class.name, 1.0) if field in SLOWED_FIELDS else 1.0


def _source(classes: tuple[_RateClass, ...], multiprocessors: int, clock_hz: float, field: str) -> str:
    names = " and ".join(class_.name for class_ in classes)
    share = _clock_share(classes[0], field)
    slowed = f"{share:g} x " if share != 1.0 else ""
    return f"{names} rate x {multiprocessors} multiprocessors x {slowed}{clock_hz / 1e6:.0f} MHz (highest stated)"


def formula_bandwidth(memory_clock_hz: float | None, bus_bits: int | None) -> Bandwidth | None:
    """Return 2 x memory clock x bus width / 8; None where the driver states neither."""
    if not memory_clock_hz or not bus_bits:
        return None
    source = f"2 x {memory_clock_hz / 1e6:.0f} MHz memory clock x {bus_bits} bits / 8"
    return Bandwidth(2 * memory_clock_hz * bus_bits / 8, "formula", source)


def multiprocessors_from_cores(compute_capability: str | None, cuda_cores: int | None) -> int | None:
    """Return how many multiprocessors have `cuda_cores`; a CUDA core does one fp32 multiply-add a cycle."""
    per_multiprocessor = {
        class_.rate("fp32") for class_ in RATE_CLASSES if class_.compute_capability == compute_capability
    }
    if cuda_cores is None or len(per_multiprocessor) != 1:
        return None
    flop_per_clock = per_multiprocessor.pop()
    return round(cuda_cores / (flop_per_clock / 2)) if flop_per_clock else None


def native_since(compute_capability: str | None) -> tuple[str, ...]:
    """Return the dtypes a CUDA device of this compute capability has arithmetic for; empty when unknown."""
    if compute_capability is None:
        return ()
    version = tuple(int(part) for part in compute_capability.split("."))
    # https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions
    first = {"fp64": (1, 3), "fp32": (1, 0), "tf32": (8, 0), "bf16": (8, 0), "fp16": (5, 3), "fp8": (8, 9)}
    return tuple(name for name, since in first.items() if version >= since)
