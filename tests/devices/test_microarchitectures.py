"""The table of microarchitectures names what its sources name, and nothing else."""

from itertools import combinations

import pytest

from gpuexplore.devices.accelerators import read_table
from gpuexplore.devices.microarchitectures import MICROARCHITECTURES, microarchitecture_of


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
    assert microarchitecture_of(*numbers) == name


def test_no_cpu_has_two_names():
    for row, other in combinations(MICROARCHITECTURES, 2):
        models = (row.vendor, row.family) == (other.vendor, other.family) and {*row.models} & {*other.models}
        steppings = None in (row.steppings, other.steppings) or {*row.steppings} & {*other.steppings}
        assert not (models and steppings), (row, other)


def test_every_row_has_its_source():
    assert all(row["source_url"].startswith("https://") for row in read_table("microarchitectures.csv"))
