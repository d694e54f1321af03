"""Looking accelerators up by what a person types."""

import pytest

from gpuexplore.devices import ACCELERATORS, peaks_json, search


@pytest.mark.parametrize("query", ["NVIDIA L4", "l4", "L4", " l4 "])
def test_a_driver_name_a_key_and_a_display_name_find_the_row(query):
    assert peaks_json(query)["key"] == "l4"


def test_specs_have_exactly_the_promised_form():
    specs = peaks_json("NVIDIA A100-SXM4-80GB")
    assert list(specs) == ["query", "key", "kind", "peaks", "bandwidth_bytes_per_s", "confidence"]
    assert specs["kind"] == "datasheet"
    assert specs["bandwidth_bytes_per_s"] == 2039e9
    assert specs["peaks"]["bf16"]["flop_per_s"] == 312e12
    assert all(set(one) == {"flop_per_s", "unit", "source"} for one in specs["peaks"].values())


def test_an_unknown_name_has_a_null_key_and_no_peaks():
    unknown = {"key": None, "kind": None, "peaks": {}, "bandwidth_bytes_per_s": None, "confidence": None}
    assert peaks_json("NVIDIA L") == {"query": "NVIDIA L", **unknown}


def test_a_device_whose_peaks_are_all_derived_is_called_a_formula():
    assert peaks_json("rtx-4070")["kind"] == "formula"


def test_a_dtype_with_vector_units_only_is_given_with_these():
    assert peaks_json("Apple M1")["peaks"]["fp16"]["unit"] == "vector"


def test_search_finds_every_word_anywhere_and_everything_for_nothing():
    assert {row.key for row in search("hopper nvl")} == {"h100-nvl", "h200-nvl"}
    assert search("") == ACCELERATORS
    assert search("no such device") == ()


@pytest.mark.parametrize("row", ACCELERATORS, ids=lambda row: row.key)
def test_every_row_is_found_by_key_and_by_display_name(row):
    assert peaks_json(row.key)["key"] == row.key
    assert peaks_json(row.name.upper())["key"] == row.key
