"""The table of microarchitectures names what its sources name, and nothing else."""

from dataclasses import replace
from itertools import combinations

import pytest

from gpuexplore.core.hardware import CAN_HAVE, FIRST_WITH
from gpuexplore.core.model import Device, Identity
from gpuexplore.core.serialization import decode, encode
from gpuexplore.hardware.accelerators import read_table
from gpuexplore.hardware.cpu import INSTRUCTION_SETS, MICROARCHITECTURES, _cpu_identity, _microarchitecture_of
from gpuexplore.hardware.identity import same_device, why_other_device


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        (("AuthenticAMD", 23, 49, 0), "Zen 2"),  # EPYC 7002
        (("AuthenticAMD", 25, 1, 1), "Zen 3"),  # EPYC 7003
        (("AuthenticAMD", 25, 17, 1), "Zen 4"),  # EPYC 9004
        (("AuthenticAMD", 26, 2, 1), "Zen 5"),  # EPYC 9005
        (("GenuineIntel", 6, 85, 4), "Skylake-SP"),
        (("GenuineIntel", 6, 85, 7), "Cascade Lake"),
        (("GenuineIntel", 6, 106, 6), "Ice Lake"),
        (("GenuineIntel", 6, 143, 8), "Sapphire Rapids"),
        (("GenuineIntel", 6, 207, 2), "Emerald Rapids"),
        (("GenuineIntel", 6, 173, 1), "Granite Rapids"),
        (("0x41", 8, 0xD0C, 0x31), "Neoverse N1"),
        (("0x41", 8, 0xD40, 0x11), "Neoverse V1"),
        (("0x41", 8, 0xD4F, 0), "Neoverse V2"),
        (("AuthenticAMD", 27, 2, 1), None),
        (("GenuineIntel", 6, 85, 9), None),
        (("GenuineIntel", 6, 85, None), None),
        (("GenuineIntel", 25, 17, 1), None),
        ((None, None, None, None), None),
    ],
)
def test_numbers_of_a_cpu_have_a_name_or_none(numbers, name):
    assert _microarchitecture_of(*numbers) == name


def test_no_cpu_has_two_names():
    for (*numbers, models, steppings, name), (*others, other_models, other_steppings, other) in combinations(
        MICROARCHITECTURES, 2
    ):
        shared_models = numbers == others and {*models} & {*other_models}
        shared_steppings = None in (steppings, other_steppings) or {*steppings} & {*other_steppings}
        assert not (shared_models and shared_steppings), (name, other)


def test_every_row_has_its_source():
    assert all(row["source_url"].startswith("https://") for row in read_table("microarchitectures.csv"))


def test_every_microarchitecture_says_which_instruction_sets_it_can_have():
    assert {name for *_, name in MICROARCHITECTURES} == set(CAN_HAVE)
    known = {flag for words in FIRST_WITH.values() for flag in words}
    assert frozenset().union(*CAN_HAVE.values()) <= known <= set(INSTRUCTION_SETS)


SERVER = "fpu avx avx2 fma f16c avx512f avx512bw avx512vl avx512_vnni"


@pytest.mark.parametrize(
    ("vendor", "family", "model", "flags", "name"),
    [
        (
            "GenuineIntel",
            6,
            167,
            f"{SERVER} avx512_bf16 avx512_fp16 amx_bf16 amx_tile",
            "with AMX, Sapphire Rapids or newer",
        ),
        ("GenuineIntel", 6, 167, SERVER, "Rocket Lake"),
        ("GenuineIntel", 6, 167, "fpu avx2 fma", "Rocket Lake"),
        ("GenuineIntel", 6, 143, "fpu avx2 fma", "Sapphire Rapids"),
        ("GenuineIntel", 6, 143, f"{SERVER} amx_bf16 amx_tile amx_fp16", "with AMX FP16, Granite Rapids or newer"),
        ("GenuineIntel", 6, 106, f"{SERVER} avx512_fp16", "with AVX-512 FP16, Sapphire Rapids or newer"),
        ("GenuineIntel", 6, 106, f"{SERVER} avx512_bf16", "with AVX-512 BF16, Cooper Lake or newer"),
        ("GenuineIntel", 6, 63, "fpu avx2 avx512f avx512bw", "with AVX-512, Skylake-SP or newer"),
        ("GenuineIntel", 6, 79, "fpu avx2 avx_vnni", "with AVX-VNNI, Alder Lake or newer"),
        ("GenuineIntel", 6, 151, f"{SERVER} avx_vnni avx512_fp16", "Alder Lake"),
        ("GenuineIntel", 6, 173, f"{SERVER} amx_bf16 amx_fp16", "Granite Rapids"),
        ("GenuineIntel", 6, 9, f"{SERVER} amx_bf16", None),
        ("AuthenticAMD", 25, 1, f"{SERVER}", "with AVX-512, Zen 4 or newer"),
        ("AuthenticAMD", 25, 1, f"{SERVER} avx512_bf16", "with AVX-512 BF16, Zen 4 or newer"),
        ("AuthenticAMD", 23, 49, "fpu avx2 avx_vnni", "with AVX-VNNI, Zen 5 or newer"),
        ("AuthenticAMD", 25, 17, f"{SERVER} avx512_bf16 avx_vnni", "with AVX-VNNI, Zen 5 or newer"),
        ("AuthenticAMD", 25, 17, f"{SERVER} avx512_bf16", "Zen 4"),
        ("AuthenticAMD", 26, 2, f"{SERVER} avx512_fp16 amx_fp16", "with AMX, newer than Zen 5"),
        ("0x41", 8, 0xD0C, "fp asimd asimdhp asimddp fphp", "Neoverse N1"),
        ("0x41", 8, 0xD0C, "fp asimd asimdhp sve bf16", "with SVE, Neoverse V1 or newer"),
        ("0x41", 8, 0xD40, "fp asimd asimdhp sve sve2 bf16", "with SVE2, Neoverse N2 or newer"),
        ("0x41", 8, 0xD08, "fp asimd asimddp", "with half precision or dot products, Armv8.2 or newer"),
    ],
)
def test_flags_veto_the_name_of_a_processor_that_cannot_have_them(tmp_path, vendor, family, model, flags, name):
    arm = {"CPU implementer": vendor, "CPU architecture": family, "CPU part": hex(model), "Features": flags}
    x86 = {
        "vendor_id": vendor,
        "cpu family": family,
        "model": model,
        "stepping": 1,
        "model name": "CPU",
        "flags": flags,
    }
    (tmp_path / "proc").mkdir()
    lines = (f"{key}\t: {value}\n" for key, value in (arm if vendor == "0x41" else x86).items())
    (tmp_path / "proc/cpuinfo").write_text("".join(lines))
    found = _cpu_identity(tmp_path)
    assert found.microarchitecture == name
    assert decode(Identity, encode(found)) == found


def test_results_that_were_recorded_under_a_vetoed_name_are_of_the_same_processor():
    flags = ("avx2", "avx512f", "avx512_fp16", "amx_bf16")
    recorded = {"vendor": "GenuineIntel", "family": 6, "model": 167, "instruction_sets": flags}
    before = decode(
        Device,
        {"id": "cpu", "kind": "cpu", "name": "Xeon", "identity": recorded | {"microarchitecture": "Rocket Lake"}},
    )
    now = Device("cpu", "cpu", "Xeon", identity=Identity(**recorded, microarchitecture="Rocket Lake"))
    assert before.title == "Xeon (with AMX, Sapphire Rapids or newer)"
    assert same_device(before, now)
    rocket_lake = Identity(**recorded | {"instruction_sets": flags[:2]}, microarchitecture="Rocket Lake")
    assert why_other_device(before, replace(now, identity=rocket_lake)) == (
        "another processor of this name: it is with AMX, Sapphire Rapids or newer, not Rocket Lake"
    )
