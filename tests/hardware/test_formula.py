"""The formula for devices that are in no table, replayed on those that are."""

import pytest

from gpuexplore.hardware.accelerators import ACCELERATORS, peaks_of
from gpuexplore.hardware.formula import (
    NAMES_OF_CLASS,
    RATE_CLASSES,
    SLOWED_FIELDS,
    _classes_of,
    formula_bandwidth,
    formula_peaks,
    multiprocessors_from_cores,
    native_since,
)
from tests.hardware.table_checks import off_the_formula, rates, replayed, wrong_rate_classes

NVIDIA = [row for row in ACCELERATORS if row.vendor == "NVIDIA"]
AT_ONE_CLOCK = [row for row in NVIDIA if row.tensor_clock_hz is None]
CLASSES = {class_.name: class_ for class_ in RATE_CLASSES}
CLOSE, ENOUGH = 0.05, 0.95


def peaks(name="NVIDIA GeForce RTX 4090 Laptop GPU", capability="8.9", multiprocessors=76, clock_hz=2.0e9):
    return formula_peaks(name, compute_capability=capability, multiprocessors=multiprocessors, clock_hz=clock_hz)


def test_every_row_has_the_rate_class_of_its_compute_capability_and_name():
    assert wrong_rate_classes(ACCELERATORS) == {}
    assert set(NAMES_OF_CLASS) <= {class_.name for class_ in RATE_CLASSES}


def test_replayed_on_a_known_device_it_agrees_with_the_table():
    assert len(AT_ONE_CLOCK) > 70
    assert off_the_formula(AT_ONE_CLOCK) == {}


def compared(values):
    """Return how many values (key, of the table, of the formula or None) are given, how many not, and which are off."""
    ratios = {key: found / known for key, known, found in values if found is not None}
    off = {key: round(ratio, 3) for key, ratio in ratios.items() if abs(ratio - 1) > CLOSE}
    return len(ratios), len(values) - len(ratios), off


def test_the_formula_for_unknown_devices_gives_95_percent_of_the_tables_own_peaks_within_5_percent():
    values = []
    for row in NVIDIA:
        found = replayed(row)
        values += [((row.key, *key), value, found.get(key)) for key, value in rates(peaks_of(row)).items()]

    given, missing, off = compared(values)
    assert given > 650
    assert missing < 0.06 * given  # a compute capability does not always settle the class
    assert len(off) <= (1 - ENOUGH) * given, off


def test_the_formula_gives_no_peak_that_the_table_does_not_have():
    more = {row.key: set(replayed(row)) - set(rates(peaks_of(row))) for row in NVIDIA}
    assert {key: added for key, added in more.items() if added} == {}


def replayed_field(row, field):
    """Return rate x multiprocessors x clock of a column, whoever made the device; None without a rate."""
    rate = CLASSES[row.rate_class].rate(field)
    if None in (rate, row.multiprocessors, row.boost_clock_hz):
        return None
    slowed = field in (*SLOWED_FIELDS, *("fp8_tensor_fp16acc_or_mx", "fp4_tensor", "int8_tensor_tops"))
    return rate * row.multiprocessors * (row.tensor_clock_hz or row.boost_clock_hz if slowed else row.boost_clock_hz)


def test_rates_of_every_maker_give_95_percent_of_all_the_tables_values_within_5_percent():
    values = [
        ((row.key, field), value, replayed_field(row, field))
        for row in ACCELERATORS
        for field, value in row.rates.items()
    ]

    given, missing, off = compared(values)
    assert given > 780
    assert missing < 0.03 * given
    assert len(off) <= (1 - ENOUGH) * given, off


# The table has no memory clocks, so bandwidth is replayed where somebody published what the driver states.
MEMORY_CLOCKS_HZ = {
    "rtx-4090": 10_501e6,  # https://github.com/NVIDIA/nvbench/pull/207
    "t4": 5_001e6,  # https://github.com/NVIDIA/nvidia-docker/issues/1446
    "v100-sxm2-16gb": 877e6,  # https://github.com/NVIDIA/nvidia-docker/issues/914
}


@pytest.mark.parametrize(("key", "memory_clock_hz"), MEMORY_CLOCKS_HZ.items())
def test_the_bandwidth_from_a_drivers_memory_clock_is_the_tables_within_5_percent(key, memory_clock_hz):
    row = next(row for row in NVIDIA if row.key == key)
    found = formula_bandwidth(memory_clock_hz, row.memory_bus_bits)
    assert found.bytes_per_s == pytest.approx(row.bandwidth_bytes_per_s, rel=CLOSE)


def test_a_geforce_laptop_gets_the_geforce_rates_and_a_professional_card_the_full_one():
    assert rates(peaks())[("bf16", "matrix")] == 512 * 76 * 2.0e9
    assert rates(peaks("NVIDIA RTX PRO 2000 Blackwell", "12.0"))[("fp16", "matrix")] == 1024 * 76 * 2.0e9


def test_a_name_that_does_not_decide_leaves_only_what_all_classes_agree_on():
    assert set(rates(peaks("NVIDIA Graphics Device"))) == {
        ("fp64", "matrix"),
        ("fp64", "vector"),
        ("fp32", "matrix"),
        ("fp32", "vector"),
        ("fp16", "vector"),
    }


def test_tensor_cores_of_a_hopper_run_below_the_maximum_clock():
    found = rates(peaks("NVIDIA H100 64GB", "9.0", 132, 1.98e9))
    assert found[("bf16", "matrix")] == pytest.approx(4096 * 132 * 1.98e9 * 0.924)
    assert found[("fp32", "vector")] == 256 * 132 * 1.98e9


@pytest.mark.parametrize("missing", ["capability", "multiprocessors", "clock_hz"])
def test_without_a_factor_there_is_no_peak(missing):
    assert peaks(**{missing: None}) == ()


def test_an_unknown_compute_capability_has_no_peaks_rather_than_a_neighbours():
    assert peaks(capability="99.0") == ()
    assert _classes_of("99.0", "NVIDIA X") == ()


def test_the_source_names_class_multiprocessors_and_clock():
    peak = peaks()[0]
    assert peak.kind == "formula"
    assert all(word in peak.source for word in ("ada-geforce", "76 multiprocessors", "2000 MHz"))


def test_bandwidth_is_twice_the_memory_clock_times_the_bus():
    found = formula_bandwidth(10_501e6, 384)
    assert found
    assert found.bytes_per_s == pytest.approx(1008.1e9, rel=1e-4)
    assert formula_bandwidth(None, 384) is formula_bandwidth(1e9, None) is None


@pytest.mark.parametrize(
    ("capability", "cores", "count"),
    [("9.0", 16896, 132), ("8.0", 6912, 108), ("7.5", 2560, 40), ("8.6", 10496, 82), ("99.0", 128, None)],
)
def test_multiprocessors_follow_from_cuda_cores(capability, cores, count):
    assert multiprocessors_from_cores(capability, cores) == count


def test_bf16_is_native_from_ampere_on():
    assert "bf16" not in native_since("7.5")
    assert "bf16" in native_since("8.0")
    assert native_since(None) == ()
