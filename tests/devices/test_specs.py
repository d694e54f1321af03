"""Looking accelerators up by what a person types."""

from collections import Counter

import pytest

from gpuexplore.devices import ACCELERATORS, match, peaks_json, search, target_named
from tests.devices.processors import ZEN_4, ZEN_5
from tests.devices.variants import HELD, NAMED, NEVER_HELD, SOMETIMES_HELD, typed_names


@pytest.mark.parametrize("query", ["NVIDIA L4", "l4", "L4", " l4 "])
def test_a_driver_name_a_key_and_a_display_name_find_the_row(query):
    assert peaks_json(query)["key"] == "l4"


def test_processors_of_one_name_are_told_apart_by_their_titles():
    assert target_named("AMD EPYC (Zen 5)", [ZEN_4, ZEN_5]) is ZEN_5


def test_specs_have_exactly_the_promised_form():
    specs = peaks_json("NVIDIA A100-SXM4-80GB")
    names = ["query", "key", "kind", "peaks", "bandwidth_bytes_per_s", "bandwidth_kind", "bandwidth_source"]
    assert list(specs) == [*names, "memory_bytes", "confidence", "notes", "same_driver_name"]
    assert specs["kind"] == "datasheet"
    assert specs["bandwidth_bytes_per_s"] == 2039e9
    assert specs["peaks"]["bf16"]["flop_per_s"] == 312e12
    assert all(set(spec) == {"flop_per_s", "unit", "kind", "source"} for spec in specs["peaks"].values())


def test_an_unknown_name_has_a_null_key_and_no_peaks():
    specs = peaks_json("NVIDIA L")
    assert (specs.pop("query"), specs.pop("peaks"), specs.pop("same_driver_name")) == ("NVIDIA L", {}, [])
    assert set(specs.values()) == {None}


def test_a_device_whose_peaks_are_all_derived_is_called_a_formula():
    specs = peaks_json("rtx-4070")
    assert specs["kind"] == specs["bandwidth_kind"] == "formula"


def test_a_device_with_printed_and_derived_peaks_says_which_is_which():
    specs = peaks_json("NVIDIA L40S")
    kinds = {dtype: peak["kind"] for dtype, peak in specs["peaks"].items()}
    assert specs["kind"] == "mixed"
    assert (kinds["fp32"], kinds["tf32"], kinds["fp8"]) == ("datasheet", "datasheet", "datasheet")
    assert (kinds["fp64"], kinds["fp16"], kinds["bf16"]) == ("formula", "formula", "formula")


def test_specs_have_the_notes_of_the_row_and_other_cards_of_the_drivers_name():
    specs = peaks_json("NVIDIA GeForce RTX 3080")
    assert specs["notes"].startswith("The 12 GB card (70 SM, 912 GB/s)")
    assert (specs["key"], specs["same_driver_name"]) == ("rtx-3080-10gb", ["rtx-3080-12gb"])
    assert peaks_json("GeForce RTX 3080 12GB")["key"] == "rtx-3080-12gb"
    assert peaks_json("rtx-3080-ti")["notes"] is None


def test_a_dtype_with_vector_units_only_is_given_with_these():
    assert peaks_json("Apple M1")["peaks"]["fp16"]["unit"] == "vector"


def test_search_finds_every_word_anywhere_and_everything_for_nothing():
    assert {row.key for row in search("hopper nvl")} == {"h100-nvl", "h200-nvl"}
    assert search("") == ACCELERATORS
    assert search("no such device") == ()


def keys_found(names):
    """Return the key each name finds, without those that find none."""
    return {name: key for name in names if (key := peaks_json(name)["key"]) is not None}


def names_of(row):
    return (*typed_names(row), row.name, row.key)


def test_every_row_is_found_by_key_and_by_display_name():
    names = {name: row.key for row in ACCELERATORS for name in (row.key, row.name.upper())}
    assert keys_found(names) == names


def test_every_driver_name_finds_its_row_with_and_without_its_maker():
    found = keys_found(name for name, _ in NAMED)
    assert found == dict(reversed(NAMED)), "the first of several cards of one name"
    others = [(name, key) for name, key in NAMED if found[name] != key]
    assert all(key in peaks_json(name)["same_driver_name"] for name, key in others)
    assert {name for name, _ in others} == {name for name, count in Counter(n for n, _ in NAMED).items() if count > 1}


def test_no_laptop_slice_d_or_engineering_variant_of_any_name_is_taken_for_it():
    variants = (name + variant for row in ACCELERATORS for name in names_of(row) for variant in NEVER_HELD)
    assert keys_found(variants) == {}


def test_a_variant_is_found_only_where_the_table_holds_it_under_exactly_that_name():
    variants = (name + variant for row in ACCELERATORS for name in names_of(row) for variant in SOMETIMES_HELD)
    found = keys_found(variants)
    assert found, "some variants are rows of their own"
    assert {name: key for name, key in found.items() if (name.casefold(), key) not in HELD} == {}


def test_no_display_name_or_key_is_what_another_devices_driver_says():
    matched = {(name, row.key): match(name) for row in ACCELERATORS for name in (row.name, row.key)}
    assert {name: row.key for (name, key), row in matched.items() if row is not None and row.key != key} == {}
    owners = {name: {owner for held, owner in HELD if held == name.casefold()} for name, _ in matched}
    assert {name: owners[name] for name, key in matched if owners[name] != {key}} == {}
