"""The table of accelerators: found by whole names only, and consistent with itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.hardware.accelerators import ACCELERATORS, bandwidth_of, peaks_of
from tests.hardware.table_checks import (
    falling_peaks,
    match,
    not_above_zero,
    off_their_derivation,
    peaks_without_rate_or_document,
    printed_elsewhere,
    repeated_keys,
    repeated_names,
    undeclared_figures,
    wrong_kinds,
    wrong_native_dtypes,
    wrongly_matched,
)

NAMES = [(name, row.key) for row in ACCELERATORS for name in row.driver_names]
NOT_IN_THE_TABLE = (
    "NVIDIA GeForce RTX 4090 Laptop GPU",
    "NVIDIA GeForce RTX 3080 Ti Laptop GPU",
    "NVIDIA RTX A2000 Laptop GPU",
    "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
    "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "NVIDIA Graphics Device",
    "NVIDIA GeForce RTX 5090 D",
    "NVIDIA GeForce RTX 5090 D v2",
    "NVIDIA GeForce GTX 1650 with Max-Q Design",
    "GRID A100X-40C",
    "NVIDIA L4 ",
    "nvidia l4",
    "",
)


@pytest.mark.parametrize(
    "defects",
    [
        repeated_keys,
        repeated_names,
        wrongly_matched,
        not_above_zero,
        falling_peaks,
        peaks_without_rate_or_document,
        wrong_native_dtypes,
        undeclared_figures,
        printed_elsewhere,
        wrong_kinds,
        off_their_derivation,
    ],
)
def test_every_row_agrees_with_itself_and_the_others(defects):
    assert len(ACCELERATORS) > 100
    assert not defects(ACCELERATORS)


@pytest.mark.parametrize("name", NOT_IN_THE_TABLE)
def test_laptops_slices_d_variants_and_engineering_boards_match_nothing(name):
    assert match(name) is None


@given(st.sampled_from(NAMES), st.text(min_size=1, max_size=8))
def test_a_name_with_anything_after_it_is_another_device(named, suffix):
    name, key = named
    found = match(name + suffix)
    assert found is None or (found.key != key or name + suffix in found.driver_names)


def test_a_dtype_without_a_unit_has_no_peak():
    t4, gtx = match("Tesla T4"), match("NVIDIA GeForce GTX 1080 Ti")
    assert t4
    assert gtx
    assert {peak.dtype for peak in peaks_of(t4)} == {"fp64", "fp32", "fp16"}
    assert not {"bf16", "tf32"} & {peak.dtype for peak in peaks_of(gtx)}


def test_fp32_products_without_matrix_units_run_on_the_vector_units_and_say_so():
    h100 = match("NVIDIA H100 80GB HBM3")
    assert h100
    matrix, vector = (next(p for p in peaks_of(h100) if (p.dtype, p.unit) == ("fp32", u)) for u in ("matrix", "vector"))
    assert matrix.flop_per_s == vector.flop_per_s == 66.9e12
    assert "vector unit" in matrix.source


def test_cdna_has_fp32_matrix_units_of_its_own():
    mi210 = match("AMD Instinct MI210")
    assert mi210
    rates = {peak.unit: peak.flop_per_s for peak in peaks_of(mi210) if peak.dtype == "fp32"}
    assert rates == {"matrix": 45.3e12, "vector": 22.6e12}


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("h20", "fp32"),
        ("l40s", "fp16_tensor"),
        ("b200-sxm-180gb", "memory_bandwidth_gbs"),
        ("h200-sxm-141gb", "bf16_tensor"),
        ("rtx-5090", "fp8_tensor"),
        ("mi355x", "fp4_tensor"),
    ],
)
def test_figures_that_once_were_called_printed_are_derived(key, field):
    row = next(row for row in ACCELERATORS if row.key == key)

    assert field in row.derived


@pytest.mark.parametrize(
    ("key", "dtype", "words"),
    [
        ("l40s", "bf16", "ada-pro rate x multiprocessors x clock, from https://www.nvidia.com"),
        ("l4", "bf16", "half of the vendor's rate with sparsity, https://www.nvidia.com"),
        ("mi250", "bf16", "the vendor's rate for the whole board, per device, https://www.amd.com"),
        ("h20", "bf16", "reported by others; the vendor publishes none: https://www.tomshardware.com"),
    ],
)
def test_a_derived_peak_says_how(key, dtype, words):
    row = next(row for row in ACCELERATORS if row.key == key)
    peak = next(peak for peak in peaks_of(row) if (peak.dtype, peak.unit) == (dtype, "matrix"))

    assert peak.kind == "formula"
    assert words in peak.source


def test_a_bandwidth_says_whether_its_vendor_prints_it():
    kinds = {row.key: bandwidth_of(row) for row in ACCELERATORS}

    assert (kinds["h200-sxm-141gb"].kind, kinds["h200-sxm-141gb"].bytes_per_s) == ("datasheet", 4800e9)
    assert kinds["b200-sxm-180gb"].kind == "formula"
    assert kinds["b200-sxm-180gb"].source.startswith("memory data rate x bus width, from https://")
