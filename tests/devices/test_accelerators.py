"""The table of accelerators: found by whole names only, and consistent with itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.devices.accelerators import ACCELERATORS, match, peaks_of, trusted
from tests.devices.table_checks import (
    falling_peaks,
    not_above_zero,
    peaks_without_rate_or_document,
    repeated_keys,
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


def test_the_table_holds_each_device_under_a_key_of_its_own():
    assert len(ACCELERATORS) > 100
    assert repeated_keys(ACCELERATORS) == {}


def test_every_driver_name_matches_its_own_row_and_no_other():
    assert wrongly_matched(ACCELERATORS) == {}


@pytest.mark.parametrize("name", NOT_IN_THE_TABLE)
def test_laptops_slices_d_variants_and_engineering_boards_match_nothing(name):
    assert match(name) is None


@given(st.sampled_from(NAMES), st.text(min_size=1, max_size=8))
def test_a_name_with_anything_after_it_is_another_device(named, suffix):
    name, key = named
    found = match(name + suffix)
    assert found is None or (found.key != key or name + suffix in found.driver_names)


def test_every_known_quantity_is_above_zero():
    assert not_above_zero(ACCELERATORS) == {}


def test_peaks_never_fall_as_precision_falls():
    assert falling_peaks(ACCELERATORS) == set()


def test_every_peak_is_positive_and_cites_its_document():
    assert peaks_without_rate_or_document(ACCELERATORS) == {}


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


def test_a_figure_that_no_maker_prints_is_called_a_formula():
    h100 = match("NVIDIA H100 80GB HBM3")
    assert h100
    assert {peak.kind for peak in peaks_of(h100)} <= {"datasheet", "formula"}
    assert all(
        (peak.kind == "formula") == ("fp16_vector" in h100.derived)
        for peak in peaks_of(h100)
        if peak.unit == "vector" and peak.dtype == "fp16"
    )


def test_native_dtypes_are_those_with_a_peak():
    assert wrong_native_dtypes(ACCELERATORS) == {}


def test_a_row_is_trusted_when_the_driver_agrees_or_says_nothing():
    row = match("NVIDIA GeForce RTX 3080")
    assert row
    assert trusted(row, 68, 10 * 2**30) is None
    assert trusted(row, None, None) is None


def test_a_device_that_shares_the_name_is_told_apart_by_memory_and_multiprocessors():
    row = match("NVIDIA GeForce RTX 3080")
    assert row
    assert "12.0 GiB" in (trusted(row, None, 12 * 2**30) or "")
    assert "70 multiprocessors" in (trusted(row, 70, 10 * 2**30) or "")


def test_memory_kept_by_ecc_does_not_cost_trust():
    row = match("NVIDIA A10G")
    assert row
    assert trusted(row, 80, 23028 * 2**20) is None
