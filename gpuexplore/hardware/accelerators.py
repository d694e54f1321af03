"""The table of known accelerators: one row of accelerators.csv each, SI units inside, unknown is None.

A row is found by the name its driver reports, never by a part of it: "L4" is in "L40S". Where one name is given to
several cards, the driver's other facts choose: see `variants.py`.

The columns that are the peak of a dtype on a unit are shared with the formula. `*_tensor` columns are matrix units and
accumulate in fp32. A product in fp32 or fp64 on a device without matrix units for it runs on the vector units, so these
are its peak. No other dtype has a substitute: bf16 on a device without bf16 units is emulated and has no peak.
"""

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from gpuexplore.core.dtypes import FORMATS, format_named
from gpuexplore.core.model import Bandwidth, Device, Peak, PeakKind, Unit

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


Rate = tuple[float, PeakKind, str]  # of one column: FLOP/s, how it was found, and the document or the factors


def peaks_from(rate_of: Callable[[str], Rate | None], absent: Callable[[str], bool]) -> tuple[Peak, ...]:
    """Return a row for every dtype and unit that has a rate.

    Args:
        rate_of: the rate of a column, None where it is unknown or no such unit exists.
        absent: whether the unit of a column is known not to exist, so that its fallback counts.
    """
    peaks: list[Peak] = []
    for (dtype, unit), column in PEAK_FIELDS.items():
        rate = rate_of(column)
        conditions = _conditions(dtype, unit)
        instead = ""
        if rate is None and unit == "matrix" and dtype in ("fp64", "fp32") and absent(column):
            rate = rate_of(PEAK_FIELDS[dtype, "vector"])
            conditions = _conditions(dtype, "vector")
            instead = " (no matrix unit for this dtype: the vector unit's peak)"
        if rate is not None:
            flop_per_s, kind, source = rate
            peaks.append(Peak(dtype, unit, flop_per_s, kind, f"{conditions}: {source}{instead}"))
    return tuple(peaks)


def _conditions(dtype: str, unit: Unit) -> str:
    """Return what a figure is for: never with sparsity, on which units, and what accumulates."""
    arithmetic = f"{format_named(dtype).accumulate} accumulation" if unit == "matrix" else f"{dtype} arithmetic"
    return f"dense, {unit} units, {arithmetic}"


DERIVATIONS: Mapping[str, str] = MappingProxyType(
    {
        "formula": "{rate_class} rate x multiprocessors x clock, from {url}",
        "sparse": "half of the vendor's rate with sparsity, {url}",
        "board": "the vendor's rate for the whole board, per device, {url}",
        "memory": "memory data rate x bus width, from {url}",
        "reported": "reported by others; the vendor publishes none: {url}",
    }
)
BANDWIDTH_FIELD = "memory_bandwidth_gbs"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One device as its maker specifies it; a board with two devices is one row, per device.

    Attributes:
        short_names: what people call the model; of its variants, which share them, the first row is the usual one.
        match_regex: anchored pattern of the driver names.
        pci_ids: vendor and device, `10de:1f82`, where cards of one name differ in it; empty where they do not.
        compute_capability: CUDA's number, or the architecture name other vendors use.
        rate_class: row of flop_per_clock.csv.
        multiprocessors: streaming multiprocessors, compute units, Xe-cores or Apple cores.
        tensor_clock_hz: clock the datasheet rates the matrix peaks at, where it is another than the boost clock.
        link_bytes_per_s: of NVLink or Infinity Fabric, both directions together; None without one.
        rates: dense FLOP/s (int8: operations/s) by column; a column that is not there is no unit.
        derived: how each figure was found that its document does not print, by column: a key of DERIVATIONS.
        confidence: `low`, `medium` or `high`; `notes` say why.
    """

    key: str
    name: str
    short_names: tuple[str, ...]
    driver_names: tuple[str, ...]
    match_regex: str
    pci_ids: tuple[str, ...]
    vendor: str
    architecture: str
    chip: str
    compute_capability: str
    rate_class: str
    release_year: int | None
    multiprocessors: int | None
    boost_clock_hz: float | None
    tensor_clock_hz: float | None
    memory_bytes: int | None
    memory_type: str | None
    memory_bus_bits: int | None
    bandwidth_bytes_per_s: float | None
    cache_bytes: int | None
    power_w: float | None
    pcie_bytes_per_s: float | None
    link_bytes_per_s: float | None
    rates: Mapping[str, float] = field(hash=False)
    derived: Mapping[str, str] = field(hash=False)
    source_url: str
    confidence: str
    notes: str


def _number(text: str, exponent: int = 0) -> float | None:
    return float(f"{text}e{exponent}") if text else None  # exact: 16.28 * 1e12 is not 16.28e12


def _whole(text: str, scale: int = 1) -> int | None:
    return round(float(text) * scale) if text else None


def _derivation(entry: str) -> tuple[str, str]:
    """Return column and derivation of `bf16_tensor=sparse`; without a word it is the formula."""
    column, _, how = entry.partition("=")
    return column, how or "formula"


def _accelerator(row: Mapping[str, str]) -> Accelerator:
    return Accelerator(
        **{name: row[name] for name in ("key", "name", "match_regex", "vendor", "architecture", "chip")},
        **{name: row[name] for name in ("compute_capability", "rate_class", "source_url", "confidence", "notes")},
        short_names=tuple(row["short_names"].split(";")),
        driver_names=tuple(row["driver_names"].split(";")),
        pci_ids=tuple(filter(None, row["pci_ids"].split(";"))),
        release_year=_whole(row["release_year"]),
        multiprocessors=_whole(row["sm_count"]),
        boost_clock_hz=_number(row["boost_clock_mhz"], 6),
        tensor_clock_hz=_number(row["tensor_clock_mhz"], 6),
        memory_bytes=_whole(row["memory_gb"], 2**30),  # memory chips are sold in binary units under the name GB
        memory_type=row["memory_type"] or None,
        memory_bus_bits=_whole(row["memory_bus_bits"]),
        bandwidth_bytes_per_s=_number(row["memory_bandwidth_gbs"], 9),
        cache_bytes=_whole(row["l2_cache_mib"], 2**20),
        power_w=_number(row["tdp_w"]),
        pcie_bytes_per_s=_number(row["pcie_gbs_per_dir"], 9),
        link_bytes_per_s=_number(row["link_gbs_bidir"], 9),
        rates={name: float(f"{row[name]}e12") for name in RATE_FIELDS if row[name]},
        derived=dict(_derivation(entry) for entry in row["derived_fields"].split(";") if entry),
    )


def read_table(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file of this package."""
    text = (files("gpuexplore.hardware") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


ACCELERATORS: tuple[Accelerator, ...] = tuple(_accelerator(row) for row in read_table("accelerators.csv"))

_BY_KEY = {accelerator.key: accelerator for accelerator in ACCELERATORS}


def row_of(device: Device) -> Accelerator | None:
    """Return the row whose figures `device` has; None where none was matched and trusted."""
    return _BY_KEY.get(device.spec_key or "")


def rows_named(driver_name: str) -> tuple[Accelerator, ...]:
    """Return the rows of every card that its driver calls `driver_name`."""
    return tuple(row for row in ACCELERATORS if re.fullmatch(row.match_regex, driver_name))


def peaks_of(accelerator: Accelerator) -> tuple[Peak, ...]:
    """Return the dense peaks of a row: `datasheet` where the vendor lists them, else `formula`."""
    return peaks_from(lambda name: _rate(accelerator, name), lambda name: name not in accelerator.rates)


def _rate(accelerator: Accelerator, name: str) -> Rate | None:
    if name not in accelerator.rates:
        return None
    return (accelerator.rates[name], *_basis(accelerator, name))


def _basis(accelerator: Accelerator, name: str) -> tuple[PeakKind, str]:
    """Return whether the vendor prints a figure, and the document, or how it was derived."""
    if name not in accelerator.derived:
        return "datasheet", accelerator.source_url
    words = DERIVATIONS[accelerator.derived[name]]
    return "formula", words.format(rate_class=accelerator.rate_class, url=accelerator.source_url)


def bandwidth_of(accelerator: Accelerator) -> Bandwidth | None:
    """Return the memory bandwidth of a row: `datasheet` where the vendor prints it, else `formula`."""
    if accelerator.bandwidth_bytes_per_s is None:
        return None
    return Bandwidth(accelerator.bandwidth_bytes_per_s, *_basis(accelerator, BANDWIDTH_FIELD))


def native_dtypes(accelerator: Accelerator) -> tuple[str, ...]:
    """Return the dtypes this device has arithmetic units for."""
    native = {dtype for (dtype, _), column in PEAK_FIELDS.items() if column in accelerator.rates}
    return tuple(name for name in FORMATS if name in native)


def with_row(device: Device, row: Accelerator) -> Device:
    """Return a device of this machine with the figures of the row that describes it, and notes that say so."""
    return replace(
        device,
        cores=device.cores or row.multiprocessors,
        clock_hz=row.boost_clock_hz or device.clock_hz,
        cache_bytes=row.cache_bytes or device.cache_bytes,
        native=native_dtypes(row),
        spec_key=row.key,
        peaks=peaks_of(row),
        bandwidth=bandwidth_of(row),
        notes=(
            *device.notes,
            f"Peaks are from the table's row {row.key} ({row.confidence} confidence), which no fact contradicts.",
            *filter(None, (row.notes and f"Of that row: {row.notes.rstrip('.')}.",)),
        ),
    )


def as_device(accelerator: Accelerator) -> Device:
    """Return the row as a device that is not here: its key is its id, and nothing can be measured on it.

    A row of the table is always the same object: to compare devices by their peaks takes longer than a prediction.
    """
    return table_device(accelerator.key) if _BY_KEY.get(accelerator.key) is accelerator else _device_of(accelerator)


@cache
def table_device(key: str) -> Device:
    """Return the row of this key, which there is, as a device that is not here."""
    return _device_of(_BY_KEY[key])


def _device_of(accelerator: Accelerator) -> Device:
    return Device(
        id=accelerator.key,
        kind="table",
        name=accelerator.name,
        cores=accelerator.multiprocessors,
        memory_bytes=accelerator.memory_bytes,
        cache_bytes=accelerator.cache_bytes,
        clock_hz=accelerator.boost_clock_hz,
        compute_capability=accelerator.compute_capability,
        native=native_dtypes(accelerator),
        spec_key=accelerator.key,
        peaks=peaks_of(accelerator),
        bandwidth=bandwidth_of(accelerator),
        notes=tuple(filter(None, (accelerator.notes,))),
    )
