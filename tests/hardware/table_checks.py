"""What every row of the table of accelerators fulfils: each check returns the rows that do not, and how."""

import re
from collections import Counter, defaultdict
from dataclasses import fields
from itertools import pairwise

from gpuexplore.core.dtypes import FORMATS
from gpuexplore.hardware.accelerators import (
    BANDWIDTH_FIELD,
    DERIVATIONS,
    PEAK_FIELDS,
    Accelerator,
    bandwidth_of,
    native_dtypes,
    peaks_of,
    read_table,
    rows_named,
)
from gpuexplore.hardware.formula import RATE_CLASSES, SLOWED_FIELDS, _classes_of, formula_peaks

PRECISIONS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8")
NUMBERS = [field.name for field in fields(Accelerator) if field.type in (int | None, float | None)]
VENDORS_DOCUMENTS = (
    r"https://([a-z-]+\.)?(nvidia|amd|intel|apple)\.com/|https://github\.com/NVIDIA/"
    r"|https://d1\.awsstatic\.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet"  # by NVIDIA, for a card of AWS alone
)
MATRIX_CLOCK = (*SLOWED_FIELDS, "fp8_tensor_fp16acc_or_mx", "fp4_tensor", "int8_tensor_tops")
# Within 1 %, the digits makers print, peaks rise as precision falls; these are built otherwise.
BUILT_OTHERWISE = {
    ("mi100", "matrix", "bf16"): "CDNA1 runs bf16 at half the fp16 rate",
    ("p40", "vector", "fp16"): "GP102 has one fp16 unit for 64 fp32 units",
    ("gtx-1080-ti", "vector", "fp16"): "GP102 has one fp16 unit for 64 fp32 units",
}


def repeated_keys(rows):
    """Return the keys that more than one row has."""
    return {key: count for key, count in Counter(row.key for row in rows).items() if count > 1}


def repeated_names(rows):
    """Return the display names that more than one row has, and the cards of one name that no fact tells apart."""
    owners = defaultdict(list)
    for row in rows:
        for called in (row.name.casefold(), *((name, *told_apart_by(row)) for name in row.driver_names)):
            owners[called].append(row.key)
    return {(called, *keys): len(keys) for called, keys in owners.items() if len(keys) > 1}


def told_apart_by(row):
    """Return what a driver states that tells a card from others of its name."""
    return (row.memory_bytes, row.multiprocessors, row.bandwidth_bytes_per_s, row.pci_ids)


def match(driver_name):
    """Return the first row of this driver name; None without one."""
    return next(iter(rows_named(driver_name)), None)


def wrongly_matched(rows):
    """Return the driver names that match not their own row, or one of another name: {(name, its key): keys matched}."""
    matched = {
        (name, row.key): [other.key for other in rows if re.fullmatch(other.match_regex, name)]
        for row in rows
        for name in row.driver_names
    }
    owners = {name: [row.key for row in rows if name in row.driver_names] for name, _ in matched}
    return {(name, key): keys for (name, key), keys in matched.items() if keys != owners[name]}


def _figures(row):
    """Return the columns of a row that hold a rate or the bandwidth, by the name of the column in the file."""
    bandwidth = {BANDWIDTH_FIELD: row.bandwidth_bytes_per_s} if row.bandwidth_bytes_per_s else {}
    return {**row.rates, **bandwidth}


def undeclared_figures(rows):
    """Return the figures that are called both printed and derived, or neither, or derived in no way that is known."""
    found = {}
    printed_fields = {entry["key"]: entry["vendor_printed_fields"] for entry in read_table("accelerators.csv")}
    for row in rows:
        printed = set(filter(None, printed_fields[row.key].split(";")))
        derived = set(row.derived)
        wrong = (printed & derived) | (set(_figures(row)) ^ (printed | derived))
        wrong |= {name for name, how in row.derived.items() if how not in DERIVATIONS}
        found |= {row.key: wrong} if wrong else {}
    return found


def printed_elsewhere(rows):
    """Return the rows that call a figure printed whose document is not the vendor's."""
    return {
        row.key: row.source_url
        for row in rows
        if set(_figures(row)) - set(row.derived) and not re.match(VENDORS_DOCUMENTS, row.source_url)
    }


def wrong_kinds(rows):
    """Return the peaks and bandwidths whose kind says other than the row's derivations."""
    wrong = set()
    for row in rows:
        for peak in peaks_of(row):
            column = PEAK_FIELDS[peak.dtype, peak.unit]
            name = column if column in row.rates else PEAK_FIELDS[peak.dtype, "vector"]
            wrong |= {(row.key, name)} if (peak.kind == "formula") != (name in row.derived) else set()
        bandwidth = bandwidth_of(row)
        if bandwidth and (bandwidth.kind == "formula") != (BANDWIDTH_FIELD in row.derived):
            wrong.add((row.key, BANDWIDTH_FIELD))
    return dict.fromkeys(wrong)


def off_their_derivation(rows, within=0.0015):
    """Return the computed rates that rate x multiprocessors x clock does not give, with the ratio."""
    classes = {rate_class.name: rate_class for rate_class in RATE_CLASSES}
    ratios = {}
    for row in rows:
        for name in (name for name, how in row.derived.items() if how == "formula" and name in row.rates):
            matrix_clock = row.tensor_clock_hz if name in MATRIX_CLOCK else None
            rate = classes[row.rate_class].rate(name) or 0.0
            computed = rate * row.multiprocessors * (matrix_clock or row.boost_clock_hz)
            ratios[row.key, name] = computed / row.rates[name]
    return {key: ratio for key, ratio in ratios.items() if abs(ratio - 1) > within}


def not_above_zero(rows):
    """Return the quantities that are neither unknown nor above zero."""
    return {
        (row.key, name): getattr(row, name)
        for row in rows
        for name in NUMBERS
        if getattr(row, name) is not None and not getattr(row, name) > 0
    }


def falling_peaks(rows):
    """Return where a peak is below that of a wider format, and where an exception of the list above is none."""
    falls = {(row.key, unit, dtype) for row in rows for unit in ("matrix", "vector") for dtype in _falls(row, unit)}
    return falls ^ set(BUILT_OTHERWISE)


def _falls(row, unit):
    by_dtype = {peak.dtype: peak.flop_per_s for peak in peaks_of(row) if peak.unit == unit}
    known = [dtype for dtype in PRECISIONS if dtype in by_dtype]
    return {narrow for wide, narrow in pairwise(known) if by_dtype[narrow] < 0.99 * by_dtype[wide]}


def peaks_without_rate_or_document(rows):
    """Return the peaks that are not above zero or name no document, with both."""
    return {
        (row.key, peak.dtype, peak.unit): (peak.flop_per_s, peak.source)
        for row in rows
        for peak in peaks_of(row)
        if not (peak.flop_per_s > 0 and "https://" in peak.source)
    }


def wrong_native_dtypes(rows):
    """Return the rows whose native dtypes are not those with a peak, with both."""
    found = {row.key: (set(native_dtypes(row)), {peak.dtype for peak in peaks_of(row)}) for row in rows}
    return {key: sets for key, sets in found.items() if sets[0] != sets[1] or not sets[1] or sets[0] - set(FORMATS)}


def wrong_rate_classes(rows):
    """Return the driver names whose class has another compute capability, or which the formula puts in another one."""
    capabilities = {rate_class.name: rate_class.compute_capability for rate_class in RATE_CLASSES}
    classes = {
        (row.key, name): (row.rate_class, {rate_class.name for rate_class in _classes_of(row.compute_capability, name)})
        for row in rows
        for name in row.driver_names
        if row.compute_capability in capabilities.values()
    }
    unknown = {(row.key, row.rate_class): None for row in rows if row.rate_class not in capabilities}
    return unknown | {key: found for key, found in classes.items() if found[0] not in found[1]}


def rates(peaks):
    """Return FLOP/s by dtype and unit."""
    return {(peak.dtype, peak.unit): peak.flop_per_s for peak in peaks}


def replayed(row):
    """Return the rates of the formula for an NVIDIA row, as if it were in no table."""
    return rates(
        formula_peaks(
            row.driver_names[0],
            compute_capability=row.compute_capability,
            multiprocessors=row.multiprocessors,
            clock_hz=row.boost_clock_hz,
        )
    )


def off_the_formula(rows, within=0.07):
    """Return formula over table where they differ by more, and the rows the formula is silent on or adds a peak to."""
    ratios = {}
    for row in rows:
        table, found = rates(peaks_of(row)), replayed(row)
        ratios |= {(row.key, *key): rate / table[key] if key in table else None for key, rate in found.items()}
        ratios |= {} if found else {(row.key, "no peak at all"): None}
    return {key: ratio for key, ratio in ratios.items() if ratio is None or abs(ratio - 1) > within}
