"""Cards of one driver name: memory, multiprocessors, bandwidth and PCI id choose the row, or none is chosen."""

from dataclasses import replace

import pytest

from gpuexplore.hardware.accelerators import ACCELERATORS, rows_named
from gpuexplore.hardware.discovery import _device_from
from gpuexplore.hardware.nvml import GpuFacts
from gpuexplore.hardware.variants import BANDWIDTH_TOLERANCE, choose

ROWS = {row.key: row for row in ACCELERATORS}


def facts_of(row, name):
    """Return what a driver says of a card of `row`; ECC keeps 6 % of the memory."""
    known = row.bandwidth_bytes_per_s and row.memory_bus_bits
    memory_clock_hz = row.bandwidth_bytes_per_s * 8 / row.memory_bus_bits / 2 if known else None
    return GpuFacts(
        name,
        memory_bytes=round(0.94 * row.memory_bytes) if row.memory_bytes else None,
        multiprocessors=row.multiprocessors,
        memory_clock_hz=memory_clock_hz,
        bus_bits=row.memory_bus_bits,
        pci_id=row.pci_ids[0] if row.pci_ids else "10de:0000",
    )


NAMED = [(row.key, name) for row in ACCELERATORS for name in row.driver_names]
SHARED = [(key, name) for key, name in NAMED if len(rows_named(name)) > 1]
BY_MEMORY = [(key, name) for key, name in SHARED if not ROWS[key].pci_ids]


def test_every_card_of_the_table_gets_its_own_row():
    chosen = {(key, name): choose(facts_of(ROWS[key], name))[0] for key, name in NAMED}

    assert {named: row.key if row else None for named, row in chosen.items() if row is not ROWS[named[0]]} == {}


def test_cards_sold_with_two_sizes_of_memory_are_told_apart_by_it_alone():
    assert {key for key, _ in BY_MEMORY} == {
        *("rtx-3060-12gb", "rtx-3060-8gb", "rtx-3080-10gb", "rtx-3080-12gb"),
        *("rtx-4060-ti", "rtx-4060-ti-16gb", "rtx-5060-ti", "rtx-5060-ti-8gb"),
    }
    for key, name in BY_MEMORY:
        assert choose(GpuFacts(name, memory_bytes=ROWS[key].memory_bytes))[0] is ROWS[key]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA RTX A2000", "rtx-a2000"),
        ("NVIDIA RTX A2000 12GB", "rtx-a2000-12gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("Tesla P100-PCIE-12GB", "p100-pcie-12gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA H100 NVL", "h100-nvl"),
    ],
)
def test_cards_whose_driver_says_the_size_are_known_by_their_name(name, key):
    assert choose(GpuFacts(name))[0] is ROWS[key]


@pytest.mark.parametrize(("key", "name"), SHARED)
def test_a_name_of_several_cards_is_ambiguous_where_the_driver_says_no_more(key, name):
    row, doubt = choose(GpuFacts(name))

    assert row is None
    assert doubt.startswith("the name is ambiguous")
    assert key in doubt


GTX_1650 = GpuFacts("NVIDIA GeForce GTX 1650", memory_bytes=4 * 2**30, multiprocessors=14, bus_bits=128)


@pytest.mark.parametrize(
    ("memory_clock_hz", "pci_id", "key"),
    [
        (4001e6, "10de:1f82", "gtx-1650"),
        (6001e6, "10de:1f82", "gtx-1650-gddr6"),
        (6001e6, "10de:1f0a", "gtx-1650-tu106"),
        (6001e6, "10de:2188", "gtx-1650-tu116"),
        (4001e6, None, "gtx-1650"),
    ],
)
def test_memory_clock_and_pci_id_tell_the_gtx_1650_apart(memory_clock_hz, pci_id, key):
    assert choose(replace(GTX_1650, memory_clock_hz=memory_clock_hz, pci_id=pci_id))[0] is ROWS[key]


def test_gtx_1650_of_an_unknown_chip_is_none_of_the_three_for_certain():
    _, doubt = choose(replace(GTX_1650, memory_clock_hz=6001e6))

    assert doubt.endswith("which of gtx-1650-gddr6, gtx-1650-tu106, gtx-1650-tu116 it is")


def test_card_with_slower_memory_of_the_same_size_is_not_the_row():
    gddr6 = GpuFacts("NVIDIA GeForce RTX 4070", memory_clock_hz=10_001e6, bus_bits=192)

    assert choose(replace(gddr6, memory_clock_hz=10_501e6))[0] is ROWS["rtx-4070"]
    assert choose(gddr6)[1] == "rtx-4070: memory clock and bus width give 480 GB/s, the table 504 GB/s"


def test_memory_kept_by_ecc_costs_no_row_and_half_the_memory_does():
    a10g = GpuFacts("NVIDIA A10G", memory_bytes=23_028 * 2**20, multiprocessors=80)

    assert choose(a10g)[0] is ROWS["a10g"]
    assert "11.2 GiB of memory, the table 24 GiB" in choose(replace(a10g, memory_bytes=11_514 * 2**20))[1]


def test_memory_that_a_cpu_shares_is_not_judged_by_its_clock():
    orin = GpuFacts("Orin", multiprocessors=16, memory_clock_hz=1e9, bus_bits=64)

    assert choose(orin)[0] is ROWS["jetson-agx-orin-64gb"]
    assert BANDWIDTH_TOLERANCE < 1 - 480 / 504


def test_a_slice_of_a_known_card_gets_no_row():
    assert choose(GpuFacts("NVIDIA H200", sliced=True)) == (None, "the GPU is split into MIG instances")


GIB = 2**30


@pytest.mark.parametrize(
    ("name", "multiprocessors", "capability", "memory_bytes", "key"),
    [
        ("NVIDIA A100-PG509-200", 108, "8.0", 39.6 * GIB, "a100-sxm4-40gb"),
        ("A100-PG506-232", 108, "8.0", 79.3 * GIB, "a100-sxm4-80gb"),
        ("NVIDIA H100-PG520-200", 132, "9.0", 79.6 * GIB, "h100-sxm5-80gb"),
        ("NVIDIA H100 P1010", 114, "9.0", 79.6 * GIB, "h100-pcie-80gb"),
        ("Graphics Device", 80, "7.0", 15.8 * GIB, "v100-sxm2-16gb"),
        ("NVIDIA PG132-330", 128, "8.9", 23.6 * GIB, "rtx-4090"),
        ("AMD Radeon Graphics", 304, "9.4", 191.5 * GIB, "mi300x"),
        ("AMD Instinct MI325X OAM", 304, None, 255.5 * GIB, "mi325x"),
        ("NVIDIA A100-PG509-200", 124, "8.0", 39.6 * GIB, None),  # more than any A100 that was sold
        ("NVIDIA A100-PG509-200", 108, "8.6", 39.6 * GIB, None),
        ("NVIDIA A100-PG509-200", None, "8.0", 39.6 * GIB, None),
        ("NVIDIA A100-PG509-200", 108, "8.0", 19.6 * GIB, None),
        ("NVIDIA PG509-210", 108, "8.0", 79.3 * GIB, None),  # an A100 or an A800
        ("NVIDIA Graphics Device", 142, "8.9", 47.6 * GIB, None),  # L40, L40S or RTX 6000 Ada
        ("GRID A100X-40C", 108, "8.0", 40 * GIB, None),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", 14, "8.0", 9.5 * GIB, None),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, "8.9", 15.9 * GIB, None),  # the facts are those of an RTX 4080
        ("NVIDIA GeForce RTX 5090 D v2", 170, "12.0", 31.8 * GIB, None),
        ("AMD Radeon Graphics", 8, None, 16 * GIB, None),
    ],
)
def test_a_board_without_a_known_name_is_told_by_its_facts_or_not_at_all(
    name, multiprocessors, capability, memory_bytes, key
):
    facts = GpuFacts(name, None, int(memory_bytes), multiprocessors, capability)
    row, told = choose(facts)
    assert (row and row.key) == key
    assert told, "how it was told, or why not"
    device = _device_from(0, facts)
    assert (device.spec_key, device.name) == (key, name)
    assert any(told in note for note in device.notes)


def test_a_board_that_was_cut_into_instances_is_not_told():
    facts = GpuFacts("A100-PG506-232", None, 80 * GIB, 108, "8.0")
    assert choose(facts)[0] is ROWS["a100-sxm4-80gb"]
    assert choose(replace(facts, sliced=True))[0] is None
