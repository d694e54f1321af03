from dataclasses import replace

import pytest

from gpuexplore.analysis.utilization.utilization import (
    bandwidth_utilization,
    byte_count,
    bytes_per_s,
    cache_mode,
    cache_resident_reason,
    default_peak,
    flop_count,
    flop_per_s,
    mfu,
    shape_label,
    shapes_by_work,
    size_of,
)
from gpuexplore.core.model import Bandwidth, CacheRoof, Flag, Peak, Shape, Status
from tests.analysis.made import PEAKS, alone, analyzed, case, custom, failed, ok

COLD, WARM = Flag("cold", "flushed"), Flag("warm", "not flushed")


def test_work_of_a_product_of_100_and_its_rates():
    assert flop_count(case()) == 2_000_000
    assert byte_count(case()) == 3 * 100 * 100 * 4
    assert byte_count(case(dtype="bf16")) == 3 * 100 * 100 * 2

    assert flop_per_s(ok(1e-3)) == pytest.approx(2e9)
    assert bytes_per_s(ok(1e-3)) == pytest.approx(1.2e8)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_only_measured_results_have_rates_and_utilization(status):
    result = failed(status)
    assert flop_per_s(result) is bytes_per_s(result) is mfu(result, PEAKS[0]) is None
    assert bandwidth_utilization(result, Bandwidth(1e11, "datasheet", "a test")) is None
    assert alone(result).mfu is alone(result).bandwidth_utilization is None


def test_mfu_is_the_fraction_of_the_peak():
    assert mfu(ok(1e-5), PEAKS[0]) == pytest.approx(0.2)
    assert alone(ok(1e-5)).mfu == pytest.approx(0.2)
    assert alone(ok(1e-5, dtype="bf16")).mfu == pytest.approx(0.05)


def test_the_arithmetic_and_its_unit_decide_the_peak_and_an_unknown_one_gives_no_mfu():
    assert default_peak(ok(dtype="bf16", implementation="numba-cpu")).dtype == "fp32"
    assert default_peak(ok(implementation="numba-cuda")).flop_per_s == 5e11
    assert default_peak(ok(dtype="fp64")) is None
    assert alone(ok(dtype="fp64")).mfu is None


def test_a_custom_peak_replaces_that_of_the_device_in_its_dtype_alone_and_says_so():
    entered = Peak("fp32", "matrix", 2e12, "datasheet", "entered")
    assert default_peak(ok(), [entered]).kind == "own"
    assert alone(ok(1e-5), custom_peaks=custom(entered)).mfu == pytest.approx(0.1)

    entered = Peak("fp64", "matrix", 1.0, "own", "entered")
    assert alone(ok(1e-5), custom_peaks=custom(entered)).mfu == pytest.approx(0.2)


def test_bandwidth_utilization_counts_where_data_come_from_memory():
    assert alone(ok(1e-6)).bandwidth_utilization == pytest.approx(1.2)
    assert cache_resident_reason(ok()) is None

    cold = ok(1e-6, spec={"cache_bytes": 10**6}, flags=[COLD])
    assert alone(cold).bandwidth_utilization == pytest.approx(1.2)

    assert alone(ok(spec={"bandwidth": None})).bandwidth_utilization is None


def test_warm_data_that_fit_a_cache_have_no_memory_utilization_and_say_why():
    small = ok(spec={"cache_bytes": 10**6}, flags=[WARM])
    assert alone(small).bandwidth_utilization is None
    assert "last-level cache (977 KiB)" in cache_resident_reason(small)


@pytest.mark.parametrize(("level_bytes", "named"), [(10**6, "L2 cache (977 KiB)"), (None, None)])
def test_a_cache_that_is_no_faster_than_memory_holds_nothing(level_bytes, named):
    """CPUID in a virtual machine gives the last level of the host, which drops out of the roofs when it is measured."""
    nearest = CacheRoof(1, 2**10, Bandwidth(9e12, "measured_ceiling", "a triad"))
    second = [CacheRoof(2, level_bytes, Bandwidth(8e12, "measured_ceiling", "a triad"))] if level_bytes else []
    result = ok(spec={"cache_bytes": 2**40}, flags=[WARM])
    there = replace(result.environment.device, caches=(nearest, *second))
    result = replace(result, environment=replace(result.environment, device=there))

    reason = cache_resident_reason(result)
    assert (named in reason) if named else (reason is None)
    assert (alone(result).bandwidth_utilization is None) == bool(named)


def test_fractions_of_the_default_stay_when_another_kind_is_compared_with():
    (found,) = analyzed(ok(1e-5), peak_kind="published").results
    assert (found.mfu, found.bandwidth_utilization) == (None, None)
    assert found.default_mfu == pytest.approx(0.2)
    assert found.default_bandwidth_utilization == pytest.approx(0.12)


def test_cache_mode_is_what_was_flagged_then_what_was_asked_then_warm():
    assert cache_mode(ok(flags=[COLD], cache="warm")) == "cold"
    assert cache_mode(ok(cache="cold")) == "cold"
    assert cache_mode(ok()) == "warm"


def test_shapes_read_well_and_are_ordered_by_work():
    assert shape_label(Shape.of(m=512, k=512, n=4096)) == "512 × 512 × 4,096"
    assert shape_label(Shape.of(n=1_000_000)) == "n = 1,000,000"
    assert shape_label(Shape.of(b=1, h=8, s=2048, d=64)) == "b = 1, h = 8, s = 2,048, d = 64"

    assert size_of(case(size=64)) == 64
    assert size_of(case(shape=Shape.of(m=64, k=64, n=65))) is None

    wide, tall = Shape.of(m=1, k=9, n=9), Shape.of(m=2, k=2, n=2)
    assert shapes_by_work([ok(shape=wide), ok(shape=tall)]) == [tall, wide]
