from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.analysis.model import ImplementationLimits
from gpuexplore.analysis.roofs import attainable_flop_per_s, ridge_point
from gpuexplore.analysis.run.analyze import _bound_of, _intensity
from gpuexplore.core.model import Bandwidth, CacheRoof, Flag, Shape
from tests.analysis.made import PEAKS, alone, analyzed, case, custom, failed, ok

POSITIVE = st.floats(1e-3, 1e15)


def bound(result, bandwidth=None):
    """Return what bounds a result, with the memory bandwidth a user entered."""
    return alone(result, custom_peaks=custom(bandwidth=bandwidth)).bound


def serving(result):
    return alone(result).limits.serving


def test_a_square_product_in_fp32_has_an_intensity_of_n_over_six_and_a_ridge_is_peak_over_bandwidth():
    assert _intensity(case(size=600)) == pytest.approx(100)
    assert ridge_point(1e12, 1e11) == pytest.approx(10)


@given(POSITIVE, POSITIVE, POSITIVE)
def test_the_roof_is_never_above_either_peak(flop_per_byte, flop_per_s, bytes_per_s):
    roof = attainable_flop_per_s(flop_per_byte, flop_per_s, bytes_per_s)
    assert roof <= flop_per_s
    assert roof <= flop_per_byte * bytes_per_s


@given(POSITIVE, POSITIVE)
def test_both_roofs_meet_at_the_ridge(flop_per_s, bytes_per_s):
    ridge = ridge_point(flop_per_s, bytes_per_s)
    assert attainable_flop_per_s(ridge, flop_per_s, bytes_per_s) == pytest.approx(flop_per_s)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (ok(size=600), "compute"),  # above the ridge
        (ok(size=30), "memory"),
        (ok(size=30, spec={"cache_bytes": 10**6}), "cache"),
        (ok(size=600, flags=[Flag("launch_bound", "3 µs of 4 µs")]), "overhead"),
        (ok(operation="vector_add", shape=Shape.of(n=10**8), implementation="numba-cuda"), "memory"),  # at every size
        (ok(dtype="fp64"), None),  # whose peak is unknown
        (ok(spec={"bandwidth": None}), None),
        (failed(size=600), None),
    ],
)
def test_bound_is_by_the_ridge_by_the_cache_and_by_the_cost_of_a_call(result, expected):
    assert bound(result) == expected


def with_caches(result, *caches):
    device = replace(result.environment.device, caches=caches)
    return replace(result, environment=replace(result.environment, device=device))


@pytest.mark.parametrize(("bytes_per_s", "limit"), [(1.9e11, "cache"), (2e11, "compute")])  # 5 FLOP/byte, 1e12 FLOP/s
def test_cache_that_delivers_fast_enough_leaves_arithmetic_as_the_limit(bytes_per_s, limit):
    cache = CacheRoof(2, 10**6, Bandwidth(bytes_per_s, "measured_ceiling", "triad"))
    result = with_caches(ok(size=30, spec={"cache_bytes": 10**6}), cache)

    assert serving(result) is cache.bandwidth
    assert bound(result) == limit


def test_data_come_from_the_smallest_cache_that_holds_them_and_from_memory_where_none_does():
    near, far = (
        CacheRoof(level, size, Bandwidth(1e12, "measured_ceiling", "x")) for level, size in ((1, 10), (2, 10**6))
    )

    assert serving(with_caches(ok(size=30, spec={"cache_bytes": 10**6}), near, far)) is far.bandwidth
    assert serving(with_caches(ok(size=30, spec={"cache_bytes": 10**6}), near)).bytes_per_s == 1e11
    assert serving(with_caches(ok(size=30, spec={"cache_bytes": 10**6}))) is None  # no level was measured
    assert serving(with_caches(ok(size=600), near, far)).bytes_per_s == 1e11


def test_custom_bandwidth_moves_the_ridge():
    entered = Bandwidth(1e10, "own", "me")

    assert bound(ok(size=600), entered) == "compute"
    assert bound(ok(size=400), entered) == "memory"
    assert bound(ok(spec={"bandwidth": None}), entered) == "memory"


def test_peak_and_bandwidth_alone_decide_the_bound():
    memory = Bandwidth(1e11, "datasheet", "a test")

    assert _bound_of(ok(size=600), ImplementationLimits(PEAKS[0], memory, memory)) == "compute"
    assert _bound_of(ok(size=30), ImplementationLimits(PEAKS[0], memory, memory)) == "memory"
    assert _bound_of(ok(size=600), ImplementationLimits(None, memory, memory)) is None


def test_bound_stays_when_another_kind_of_peak_is_compared_with():
    (found,) = analyzed(ok(size=600), peak_kind="published").results
    assert (found.peak.peak, found.bound) == (None, "compute")
