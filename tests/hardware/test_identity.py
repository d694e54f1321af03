"""Which results say something about which device."""

import json
from dataclasses import replace

import pytest

from gpuexplore.core.model import Device, Identity
from gpuexplore.core.serialization import decode, encode
from gpuexplore.hardware.identity import device_key, is_namesake, same_device, same_unit, unit_key, why_other_device
from tests.analysis.made import device
from tests.hardware.processors import OLD_ZEN_4, ZEN_4, ZEN_5, ceilings

CPU = device()
GPU = replace(device(device_id="cuda:0"), name="NVIDIA H200", spec_key="h200", uuid="GPU-1")
OTHER = "another processor of this name: "


def test_device_is_the_same_by_its_row_of_the_table():
    row = replace(device(), name="H200 SXM", kind="table", spec_key="h200")

    assert same_device(GPU, row)
    assert device_key(GPU) == device_key(row)
    assert not same_device(replace(GPU, spec_key="h100"), row)


def test_device_without_a_row_is_the_same_by_kind_name_and_cores():
    assert same_device(replace(CPU, cores=2), CPU)
    assert not same_device(replace(CPU, cores=2), replace(CPU, cores=64))
    assert not same_device(replace(CPU, kind="cuda"), CPU)
    assert not same_device(replace(CPU, name="another"), CPU)


def test_a_device_of_another_name_is_named_and_one_without_a_name_is_unknown():
    assert why_other_device(None, CPU) == "the result does not name its device"
    assert not same_unit(None, CPU)
    assert why_other_device(ZEN_4, CPU) == "it was measured on AMD EPYC (Zen 4)"


def test_two_processors_of_one_name_are_two_devices():
    assert why_other_device(ZEN_4, ZEN_5) == OTHER + "it is Zen 4, not Zen 5"
    assert not same_unit(ZEN_4, ZEN_5)
    assert device_key(ZEN_4) != device_key(ZEN_5)
    assert is_namesake(ZEN_5, ZEN_4)
    assert not is_namesake(ZEN_4, ZEN_4)
    assert not is_namesake(GPU, ZEN_4)
    assert not is_namesake(None, ZEN_4)


def test_processor_is_the_same_whatever_its_ceilings_are_today_and_after_a_way_through_a_file():
    later = replace(ZEN_4, peaks=ceilings(150e9), notes=("Others used the CPU.",))

    assert same_device(ZEN_4, later)
    assert device_key(ZEN_4) == device_key(later)
    assert device_key(decode(Device, json.loads(json.dumps(encode(ZEN_4))))) == device_key(ZEN_4)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"stepping": 2}, "other stepping"),
        ({"instruction_sets": ("avx2",)}, "other instruction sets"),
        ({"model": 160, "cache_sizes_bytes": (32768,)}, "other model, caches"),
        ({"stepping": None, "cache_sizes_bytes": None, "microarchitecture": None}, None),
    ],
)
def test_facts_of_an_identity_count_where_both_are_known(change, reason):
    found = why_other_device(replace(ZEN_4, identity=replace(ZEN_4.identity, **change)), ZEN_4)

    assert found == (OTHER + reason if reason else None)


def test_old_recording_is_of_this_processor_where_caches_formats_and_ceilings_agree():
    assert same_device(OLD_ZEN_4, ZEN_4)
    assert same_device(ZEN_4, OLD_ZEN_4)
    assert why_other_device(OLD_ZEN_4, ZEN_5) == OTHER + "its fp64 ceiling is 115 GFLOP/s, not 262 GFLOP/s"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"cache_bytes": 2**20}, "its last-level cache is of another size"),
        ({"native": ("fp64", "fp32")}, "its native formats are fp64, fp32, not fp64, fp32, bf16"),
        ({"peaks": ()}, "the model is not stated, and no measured ceiling identifies it"),
        ({"peaks": ceilings(236e9 * 0.86)}, None),
        ({"peaks": ceilings(236e9 * 0.84)}, "its fp64 ceiling is 99.1 GFLOP/s, not 118 GFLOP/s"),
        ({"cores": 4}, "it has 4 cores, not 2"),
    ],
)
def test_old_recording_that_differs_is_of_another_processor_of_this_name(change, reason):
    found = why_other_device(replace(OLD_ZEN_4, **change), ZEN_4)

    assert found == (OTHER + reason if reason else None)


def test_two_boards_of_a_kind_are_two_units_where_both_tell_who_they_are():
    assert same_unit(GPU, GPU)
    assert same_unit(replace(GPU, uuid=None), GPU)
    assert not same_unit(replace(GPU, uuid="GPU-2"), GPU)
    assert unit_key(replace(GPU, uuid="GPU-2")) != unit_key(GPU)


def test_board_under_another_power_limit_shares_no_ceiling_and_is_the_same_device():
    full, capped = (replace(GPU, identity=Identity(power_limit_w=watts)) for watts in (700.0, 300.0))

    assert same_device(full, capped)
    assert not same_unit(full, capped)
    assert same_unit(full, GPU)
    assert unit_key(full) != unit_key(capped)


def test_board_of_another_compute_capability_is_another_device_without_a_row():
    old, new = (replace(GPU, spec_key=None, compute_capability=number) for number in ("8.0", "9.0"))

    assert why_other_device(old, new) == OTHER + "its compute capability is 8.0, not 9.0"


def test_name_for_a_reader_says_the_microarchitecture_once():
    assert (ZEN_4.title, ZEN_5.title, OLD_ZEN_4.title) == ("AMD EPYC (Zen 4)", "AMD EPYC (Zen 5)", "AMD EPYC")
    assert replace(ZEN_4, name="AMD Zen 4 engineering sample").title == "AMD Zen 4 engineering sample"


def test_cards_of_one_name_with_rows_of_their_own_are_two_devices():
    small, large = (replace(GPU, spec_key=key) for key in ("rtx-4060-ti", "rtx-4060-ti-16gb"))

    reason = "it is rtx-4060-ti, not rtx-4060-ti-16gb, in the table of accelerators"
    assert why_other_device(small, large) == OTHER + reason
    assert is_namesake(small, large)


def test_cards_without_a_row_are_told_apart_by_their_memory_but_for_what_ecc_keeps():
    plain, ecc, half = (replace(GPU, spec_key=None, memory_bytes=round(size * 2**30)) for size in (16, 15, 8))

    assert same_device(plain, ecc)
    assert why_other_device(half, plain) == OTHER + "it has 8.00 GiB of memory, not 16.0 GiB"
    assert same_device(replace(ZEN_4, memory_bytes=2**33), replace(ZEN_4, memory_bytes=2**35))
