"""What a machine's table says of the spread between processes, and what it says nothing of."""

from dataclasses import replace
from math import exp, log

import pytest

from gpuexplore.core.model import Bandwidth, CacheRoof, Case, Device, Measurement, Options, Result, Shape, Status
from gpuexplore.measure.conditions.repeatability import (
    FEWEST_PROCESSES,
    Repeatability,
    Spread,
    _deviation_of,
    _load_repeatability,
    save_repeatability,
    size_class,
    spread_between_processes,
    spreads_of,
)

BANDWIDTH = Bandwidth(1e11, "measured_ceiling", "triad")
DEVICE = Device(
    "cpu", "cpu", "Made CPU", cores=2, caches=(CacheRoof(1, 65_536, BANDWIDTH), CacheRoof(2, 2_097_152, BANDWIDTH))
)
TABLE = Repeatability(
    "2026-11-22T00:00:00+00:00",
    12,
    (
        Spread("numpy", "one", "L1", 0.02, 0.01),
        Spread("torch", "one", "L1", 0.05, 0.02),
        Spread("torch", "many", "L1", 0.07, 0.03),
        Spread("numpy", "one", "memory", 0.2),
    ),
)


def case(n=1000, implementation="numpy", **options):
    return Case("vector_add", Shape.of(n=n), "fp32", implementation, "cpu", Options(**options))


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("n", "expected"), [(1000, "L1"), (5461, "L1"), (5462, "L2"), (174_763, "memory")])
def test_the_class_is_the_smallest_cache_that_holds_all_arrays(n, expected):
    assert size_class(case(n), DEVICE) == expected


def test_without_measured_caches_the_last_level_counts():
    assert size_class(case(1000), Device("cuda:0", "cuda", "Made GPU", cache_bytes=1 << 20)) == "L2"
    assert size_class(case(1000), Device("cuda:0", "cuda", "Made GPU")) == "memory"


def test_without_a_table_nothing_is_known():
    assert spread_between_processes(case(), DEVICE) is None


def test_a_table_is_kept_for_the_processor_it_was_measured_on():
    save_repeatability(DEVICE, TABLE)

    assert _load_repeatability(DEVICE) == TABLE
    assert spread_between_processes(case(), DEVICE) == TABLE.spreads[0]
    assert _load_repeatability(replace(DEVICE, name="Another CPU")) is None


def test_a_library_without_a_row_gets_the_largest_of_its_class_and_a_class_without_rows_nothing():
    save_repeatability(DEVICE, TABLE)

    assert spread_between_processes(case(implementation="numba-cpu"), DEVICE) == TABLE.spreads[2]
    assert spread_between_processes(case(implementation="torch"), replace(DEVICE, cores=1)) is None
    assert spread_between_processes(case(n=100_000), DEVICE) is None


def test_a_table_says_nothing_of_other_thread_counts():
    save_repeatability(DEVICE, TABLE)

    assert spread_between_processes(case(threads=2), DEVICE) == TABLE.spreads[0]
    assert spread_between_processes(case(threads=1), DEVICE) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"spreads": 3}', "\x00"])
def test_a_table_that_cannot_be_read_is_none(home, text):
    save_repeatability(DEVICE, TABLE)
    next((home / "cache").glob("repeatability-*.json")).write_text(text)

    assert _load_repeatability(DEVICE) is None


def test_the_least_repeatable_case_of_a_class_stands_for_it():
    steady = [exp(0.001 * number) for number in range(FEWEST_PROCESSES)]
    scattered = [exp(0.1 * number) for number in range(FEWEST_PROCESSES)]
    runs = [
        {each: ok(each, median_s) for each, median_s in ((case(1000), good), (case(2000), bad))}
        for good, bad in zip(steady, scattered, strict=True)
    ]
    runs[0][case(1000, "torch")] = ok(case(1000, "torch"), 1.0)  # too few

    (found,) = spreads_of(runs, DEVICE)

    assert found == Spread("numpy", "one", "L1", pytest.approx(_deviation_of(scattered)))
    assert _deviation_of(scattered) == pytest.approx(2.776 * 0.158114 * (6 / 5) ** 0.5, rel=1e-4)


def test_a_class_borrows_half_of_its_variance_from_all_with_as_many_threads():
    steady = [exp(0.001 * number) for number in range(FEWEST_PROCESSES)]
    scattered = [exp(0.1 * number) for number in range(FEWEST_PROCESSES)]
    small, large, threaded = case(1000), case(10**8), Case("matmul", Shape.of(m=64, k=64, n=64), "fp32", "numpy", "cpu")
    runs = [
        {each: ok(each, median_s) for each, median_s in ((small, good), (large, bad), (threaded, good))}
        for good, bad in zip(steady, scattered, strict=True)
    ]

    one_small, one_large, many = spreads_of(runs, DEVICE)

    own, other = _deviation_of(steady), _deviation_of(scattered)
    assert one_small.deviation == pytest.approx((3 * own**2 + other**2) ** 0.5 / 2)
    assert one_large.deviation == pytest.approx((3 * other**2 + own**2) ** 0.5 / 2)
    assert many == Spread("numpy", "many", "L1", pytest.approx(own))


def test_ratios_borrow_as_medians_do():
    tied = [exp(0.001 * number) for number in range(FEWEST_PROCESSES)]
    apart = [exp(0.1 * number) for number in range(FEWEST_PROCESSES)]
    small, large = case(1000), case(10**8)
    runs = [
        {small: ok(small, 1.0), case(1000, "torch"): ok(case(1000, "torch"), near)}
        | {large: ok(large, 1.0), case(10**8, "torch"): ok(case(10**8, "torch"), far)}
        for near, far in zip(tied, apart, strict=True)
    ]

    found = {(spread.library, spread.size_class): spread.of_ratios for spread in spreads_of(runs, DEVICE)}

    own, other = _deviation_of(tied) / 2**0.5, _deviation_of(apart) / 2**0.5
    squares = (2 * own**2 + other**2) / 3  # torch takes many threads for the large one, which stands alone
    assert found["numpy", "L1"] == found["torch", "L1"] == pytest.approx(((own**2 + squares) / 2) ** 0.5)
    assert found["numpy", "memory"] == pytest.approx(((other**2 + squares) / 2) ** 0.5)
    assert found["torch", "memory"] == pytest.approx(other)


def test_the_deviation_holds_the_next_process():
    logs = [-0.1, -0.05, 0.0, 0.05, 0.1]  # t of four degrees of freedom, times their deviation and sqrt(1 + 1/5)
    assert _deviation_of(list(map(exp, logs))) == pytest.approx(2.776 * 0.0790569 * 1.0954451, rel=1e-5)


def test_the_deviation_holds_both_speeds_of_a_machine_that_has_two():
    steady = [1.0, 1.001] * 5
    assert _deviation_of([*steady, 1.5]) == pytest.approx(log(1.5), rel=1e-2)
    assert _deviation_of(steady) < 0.002


def test_what_slows_all_of_a_process_leaves_ratios_as_they_are():
    slow = [exp(0.1 * number) for number in range(FEWEST_PROCESSES)]
    runs = [
        {case(1000): ok(case(1000), factor), case(1000, "torch"): ok(case(1000, "torch"), factor * (1 + number / 100))}
        for number, factor in enumerate(slow)
    ]

    numpy, torch = spreads_of(runs, DEVICE)

    own, other = _deviation_of(slow), _deviation_of([factor * (1 + number / 100) for number, factor in enumerate(slow)])
    assert numpy.deviation == pytest.approx((3 * own**2 + other**2) ** 0.5 / 2)
    of_ratios = _deviation_of([1, 1.01, 1.02, 1.03, 1.04]) / 2**0.5
    assert (numpy.of_ratios, torch.of_ratios) == (pytest.approx(of_ratios), pytest.approx(of_ratios))


def ok(case, median_s):
    return Result(case, Status.OK, measurement=Measurement((median_s,) * 6, 1.0))
