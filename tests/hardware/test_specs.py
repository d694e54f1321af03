"""Looking accelerators up by what a person types."""

import re
from collections import Counter

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.hardware import (
    ACCELERATORS,
    accelerator_named,
    gpu_named,
    peaks_json,
    readings,
    search,
    target_named,
)
from tests.hardware.processors import ZEN_4, ZEN_5
from tests.hardware.table_checks import match
from tests.hardware.variants import HELD, NAMED, NEVER_HELD, SOMETIMES_HELD, typed_names


@pytest.mark.parametrize("query", ["NVIDIA L4", "l4", "L4", " l4 "])
def test_a_driver_name_a_key_and_a_display_name_find_the_row(query):
    assert peaks_json(query)["key"] == "l4"


def test_specs_have_exactly_the_promised_form():
    specs = peaks_json("NVIDIA A100-SXM4-80GB")
    names = ["query", "key", "kind", "peaks", "bandwidth_bytes_per_s", "bandwidth_kind", "bandwidth_source"]
    assert list(specs) == [*names, "memory_bytes", "confidence", "notes", "same_driver_name", "readings"]
    assert specs["kind"] == "datasheet"
    assert specs["bandwidth_bytes_per_s"] == 2039e9
    assert specs["peaks"]["bf16"]["flop_per_s"] == 312e12
    assert all(set(spec) == {"flop_per_s", "unit", "kind", "source"} for spec in specs["peaks"].values())


def test_an_unknown_name_has_a_null_key_and_no_peaks():
    specs = peaks_json("NVIDIA L")
    assert (specs.pop("query"), specs.pop("peaks"), specs.pop("same_driver_name")) == ("NVIDIA L", {}, [])
    assert specs.pop("readings") == []
    assert set(specs.values()) == {None}


def test_a_device_with_printed_and_derived_peaks_says_which_is_which():
    specs = peaks_json("NVIDIA L40S")
    kinds = {dtype: peak["kind"] for dtype, peak in specs["peaks"].items()}
    assert specs["kind"] == "mixed"
    assert (kinds["fp32"], kinds["tf32"], kinds["fp8"]) == ("datasheet", "datasheet", "datasheet")
    assert (kinds["fp64"], kinds["fp16"], kinds["bf16"]) == ("formula", "formula", "formula")
    derived = peaks_json("rtx-4070")
    assert derived["kind"] == derived["bandwidth_kind"] == "formula"
    assert peaks_json("Apple M1")["peaks"]["fp16"]["unit"] == "vector"


def test_specs_have_the_notes_of_the_row_and_other_cards_of_the_drivers_name():
    specs = peaks_json("NVIDIA GeForce RTX 3080")
    assert specs["notes"].startswith("The 12 GB card (70 SM, 912 GB/s)")
    assert (specs["key"], specs["same_driver_name"]) == ("rtx-3080-10gb", ["rtx-3080-12gb"])
    assert peaks_json("GeForce RTX 3080 12GB")["key"] == "rtx-3080-12gb"
    assert peaks_json("rtx-3080-ti")["notes"] is None


def test_search_finds_every_word_anywhere_and_everything_for_nothing():
    assert {row.key for row in search("hopper nvl")} == {"h100-nvl", "h200-nvl"}
    assert sorted(search(""), key=ACCELERATORS.index) == list(ACCELERATORS)
    assert [row.release_year or 0 for row in search("")] == sorted(
        (row.release_year or 0 for row in ACCELERATORS), reverse=True
    )
    assert search("no such device") == ()
    assert target_named("AMD EPYC (Zen 5)", [ZEN_4, ZEN_5]) is ZEN_5


def keys_found(names):
    """Return the key each name finds, without those that find none."""
    return {name: row.key for name in names if (row := accelerator_named(name)) is not None}


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
    found = {name: key for name, key in keys_found(variants).items() if not key.startswith("rtx-pro-6000")}
    assert found == {}, "but for the RTX PRO 6000, whose Max-Q has a row"


def test_a_variant_is_read_as_another_row_only_where_that_is_said():
    variants = (name + variant for row in ACCELERATORS for name in names_of(row) for variant in SOMETIMES_HELD)
    found = {name: key for name, key in keys_found(variants).items() if (name.casefold(), key) not in HELD}
    assert {name for name in found if not readings([name])} == set()


SHORT_NAMES = {
    "h100-sxm5-80gb": "h100, H100, nvidia h100, H100 SXM, h100-sxm, h100 80gb, h100 sxm 80",
    "a100-sxm4-80gb": "A100, a100 80 GB, A100-80GB, Tesla A100, DGX A100, a100-sxm",
    "rtx-4090": "4090, RTX 4090, rtx4090, RTX-4090, NVIDIA RTX 4090, GTX 4090, rtx 4090 24gb",
    "rtx-4090-d": "4090d, RTX 4090 D, 4090-D",
    "rtx-4070-ti-super": "4070 ti super, RTX4070TiSuper, 4070TI SUPER",
    "gtx-1080-ti": "gtx 1080 ti, 1080ti, GTX1080Ti",
    "rtx-a6000": "a6000, RTX A6000, Quadro RTX A6000",
    "rtx-pro-6000-blackwell": "rtx pro 6000, RTX Pro 6000 Blackwell, 6000 blackwell",
    "mi300x": "mi300x, MI 300X, AMD MI300X, MI300",
    "jetson-agx-orin-64gb": "jetson orin, Jetson AGX Orin, AGX Orin 64GB",
    "v100-sxm2-16gb": "V100",
    "v100-sxm2-32gb": "v100 32gb",
    "v100-pcie-16gb": "tesla v100 pcie",
    "v100s-pcie-32gb": "V100S",
    "l4": "l4",
    "t4": "T4",
    "h200-sxm-141gb": "h200",
    "b200-sxm-180gb": "B200",
    "rtx-3090": "3090",
    "p100-sxm2-16gb": "p100",
    "a100-sxm4-40gb": "A100 40GB",
    "a100-pcie-40gb": "a100 pcie",
    "h100-nvl": "H100 NVL",
    "h100-pcie-80gb": "h100-pcie",
    "rtx-3080-10gb": "RTX 3080",
    "rtx-3080-12gb": "3080 12G",
    "rtx-4060-ti-16gb": "4060 Ti 16 GB",
    "rtx-6000-ada": "6000 Ada",
    "quadro-rtx-6000": "Quadro RTX 6000",
    "gh200-96gb": "grace hopper",
    "gb10": "DGX Spark",
    "apple-m1-pro": "M1 Pro",
    "rx-7900-xtx": "7900xtx",
    "intel-max-1550-stack": "PVC",
    "mi355x": "mi355",
    "l40s": "L40s",
    "titan-rtx": "titan rtx",
}


@pytest.mark.parametrize(
    ("said", "key"), [(said, key) for key, names in SHORT_NAMES.items() for said in names.split(", ")]
)
def test_a_model_is_its_usual_variant_however_people_write_it(said, key):
    assert gpu_named(said).key == key


@pytest.mark.parametrize(
    ("said", "reading"),
    [
        ("h100", "H100 read as H100 SXM5 80GB; also PCIe, NVL"),
        ("a100", "A100 read as A100 SXM4 80GB; also SXM4 40GB, PCIe 40GB, PCIe 80GB"),
        ("a100 80gb", "A100 80GB read as A100 SXM4 80GB; also PCIe"),
        ("H200", "H200 read as H200 SXM 141GB; also NVL"),
        ("4090", "4090 read as GeForce RTX 4090"),
        ("rtx pro 6000", "RTX PRO 6000 read as RTX PRO 6000 Blackwell Workstation; also Server, Max-Q"),
        ("NVIDIA GeForce RTX 3080", "NVIDIA GeForce RTX 3080 read as GeForce RTX 3080 10GB; also 12GB"),
        ("gtx 1650", "GTX 1650 read as GeForce GTX 1650 (GDDR5); also GDDR6, GDDR6 TU106, GDDR6 TU116"),
    ],
)
def test_how_a_name_that_leaves_something_open_was_read_is_said(said, reading):
    assert readings([said, f" {said} "]) == (reading,)
    assert peaks_json(said)["readings"] == [reading]


@pytest.mark.parametrize(
    "exact", ["NVIDIA H100 80GB HBM3", "h100-sxm5-80gb", "H100 PCIe 80GB", "NVIDIA H200", "L4", "cpu"]
)
def test_an_exact_name_needs_no_reading(exact):
    assert readings([exact]) == ()


@pytest.mark.parametrize(
    ("said", "near"),
    [
        ("RTX 6000", "Quadro RTX 6000, RTX 6000 Ada Generation, RTX PRO 6000 Blackwell Workstation"),
        ("rtx 5000", "Quadro RTX 5000, RTX 5000 Ada Generation, RTX PRO 5000 Blackwell"),
        ("RTX 4090 Laptop GPU", "GeForce RTX 4090, GeForce RTX 4090 D"),
        ("2080 super", "GeForce RTX 2080 Ti, GeForce RTX 2080"),
        ("gtx 1080", "GeForce GTX 1080 Ti"),
        ("H1000", "near: H100 SXM5 80GB, H800 SXM5 80GB"),
        ("orin nano", "Jetson AGX Orin 64GB"),
        ("amd h100", "H100 SXM5 80GB"),
        ("A100 96GB", "A100 SXM4 80GB"),
        ("Titan V", "TITAN RTX"),
        ("rtx4090ti", "near: GeForce RTX 4090, GeForce RTX 4090 D"),
        ("3080 Ti laptop", "near: GeForce RTX 3080 Ti, GeForce RTX 3080 10GB, GeForce RTX 3080 12GB"),
        ("gtx 980 ti", "near: GeForce GTX 1080 Ti"),
        ("gtx980ti", "near: GeForce GTX 1080 Ti"),
        ("rtx 2060", "near: GeForce RTX 2070, GeForce RTX 2080 Ti, GeForce RTX 2080"),
        ("nvidia rtx 3050", "near: GeForce RTX 3060 12GB, GeForce RTX 3060 Ti"),
        ("rtx 4900", "near: GeForce RTX 4090"),
        ("m5", "near: Apple M4, Apple M4 Pro, Apple M4 Max"),
        ("1070", "near: GeForce GTX 1080 Ti"),
        ("rx 6800", "near: Radeon RX 7900 XTX"),
        ("MI200", "near: Instinct MI210, Instinct MI250"),
    ],
)
def test_names_of_several_chips_and_of_none_are_refused_with_those_that_are_near(said, near):
    with pytest.raises(InvalidInput, match=re.escape(near)):
        gpu_named(said)
    assert peaks_json(said)["key"] is None


def test_no_display_name_or_key_is_what_another_devices_driver_says():
    matched = {(name, row.key): match(name) for row in ACCELERATORS for name in (row.name, row.key)}
    assert {name: row.key for (name, key), row in matched.items() if row is not None and row.key != key} == {}
    owners = {name: {owner for held, owner in HELD if held == name.casefold()} for name, _ in matched}
    assert {name: owners[name] for name, key in matched if owners[name] != {key}} == {}
