import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.analysis.roofline import attainable_flop_per_s, bound, intensity, ridge_point
from gpuexplore.model import Flag, Shape
from tests.analysis.made import case, ok

POSITIVE = st.floats(1e-3, 1e15)


def test_intensity_of_a_square_product_is_n_over_six_in_fp32():
    assert intensity(case(size=600)) == pytest.approx(100)


def test_ridge_point():
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


def test_above_the_ridge_it_is_compute():
    assert bound(ok(size=600)) == "compute"


def test_below_the_ridge_it_is_memory():
    assert bound(ok(size=30)) == "memory"


def test_below_the_ridge_with_data_in_cache_it_is_the_cache():
    assert bound(ok(size=30, spec={"cache_bytes": 10**6})) == "cache"


def test_near_the_cost_of_a_call_it_is_overhead():
    assert bound(ok(size=600, flags=[Flag("launch_bound", "3 µs of 4 µs")])) == "overhead"


def test_an_unknown_peak_leaves_the_bound_unknown():
    assert bound(ok(dtype="fp64")) is None
    assert bound(ok(spec={"bandwidth": None})) is None


def test_element_wise_work_is_memory_bound_at_every_size():
    shape = Shape.of(n=10**8)
    assert bound(ok(operation="vector_add", shape=shape, implementation="numba-cuda")) == "memory"
