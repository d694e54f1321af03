"""Made-up results below made-up roofs: fp32 1e12 FLOP/s, memory 1e11 B/s, so the ridge is at 10 FLOP/byte."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.roofline import point_of, published_points, without_flops
from gpuexplore.analysis.roofs import roofs
from gpuexplore.core.model import Bandwidth, CacheRoof, Flag, Options, Origin, Shape
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.analysis.made import alone, device, failed, ok

L1 = CacheRoof(1, 20_000, Bandwidth(8e11, "measured_ceiling", "triad"))
L2 = CacheRoof(2, 10**6, Bandwidth(4e11, "measured_ceiling", "triad"))
ROOFS = roofs(replace(device(), caches=(L1, L2)))
CACHED = {"cache_bytes": 10**6}


def test_a_point_has_the_flat_roof_right_of_the_ridge_and_the_slope_of_memory_left_of_it():
    point = point_of(alone(ok(1e-3, size=600)), ROOFS, run="abc")

    assert (point.intensity, point.flop_per_s) == (pytest.approx(100), pytest.approx(4.32e11))
    assert (point.bound, point.fraction) == ("compute", pytest.approx(0.432))
    assert (point.run, point.origin, point.name) == ("abc", Origin.LIVE, "torch in fp32 at 600 × 600 × 600")

    point = point_of(
        alone(ok(1e-6, size=30)), ROOFS
    )  # 5 FLOP/byte: 5e11 FLOP/s are attainable, 54,000 FLOPs in 1 µs reached

    assert (point.bound, point.attainable) == ("memory", pytest.approx(5e11))
    assert point.fraction == pytest.approx(0.108)

    right, left = (point_of(alone(ok(1e-3, size=size)), ROOFS) for size in (600, 30))

    assert (right.roof.label, left.roof.label) == ("fp32, matrix units", "Memory")


@pytest.mark.parametrize(("size", "cache", "bytes_per_s"), [(30, "L1 cache", 8e11), (50, "L2 cache", 4e11)])
def test_data_that_stay_in_a_cache_come_from_the_smallest_that_holds_them(size, cache, bytes_per_s):
    vectors = {"operation": "vector_add", "implementation": "numba-cpu", "shape": Shape.of(n=size**2)}
    point = point_of(alone(ok(1e-6, spec=CACHED, **vectors)), ROOFS)

    assert (point.serving.label, point.bound) == (cache, "cache")
    assert point.attainable == pytest.approx(point.intensity * bytes_per_s)


def test_unknown_peak_memory_or_cache_leaves_the_roof_unknown_where_it_decides():
    without_caches = roofs(device())

    slow, fast = (
        point_of(alone(ok(1e-3, size=size, spec={"cache_bytes": 10**9})), without_caches) for size in (30, 600)
    )

    assert (slow.attainable, slow.fraction, slow.roof, slow.serving) == (None, None, None, None)
    assert (slow.bound, fast.bound) == ("cache", "compute")
    assert fast.attainable == 1e12

    assert point_of(alone(ok(dtype="fp64")), ROOFS).fraction is None
    assert point_of(alone(ok(size=600)), roofs(device(bandwidth=None))).fraction is None


def test_a_point_has_its_origin_layout_arithmetic_and_the_cost_of_a_call():
    point = point_of(alone(ok(1e-3, size=600, dtype="bf16", implementation="numpy")), ROOFS)

    assert (point.dtype, point.compute.dtype) == ("bf16", "fp32")

    assert point_of(alone(ok(size=600), origin=Origin.RECORDED), ROOFS).origin is Origin.RECORDED

    result = ok(size=600)
    turned = replace(result, case=replace(result.case, options=Options(layout="NT")))

    assert point_of(alone(turned), ROOFS).label == "torch in fp32, NT"

    assert point_of(alone(ok(size=600, flags=[Flag("launch_bound", "5 µs")])), ROOFS).bound == "overhead"


def test_what_computes_nothing_or_was_not_measured_has_no_place():
    copy = ok(operation="copy", implementation="numpy", shape=Shape.of(n=100))

    assert point_of(alone(copy), ROOFS) is None
    assert point_of(alone(failed()), ROOFS) is None
    assert without_flops([copy, ok(), failed()]) == 1


def test_best_published_product_of_each_dtype_is_a_point_with_its_source():
    row = as_device(next(accelerator for accelerator in ACCELERATORS if accelerator.key == "h100-sxm5-80gb"))

    points = {published_point.dtype: published_point for published_point in published_points(row, roofs(row))}

    assert {point.origin for point in points.values()} == {Origin.PUBLISHED}
    assert all(point.source.startswith("http") and point.run is None for point in points.values())
    assert 0 < points["bf16"].fraction < 1
    assert published_points(device(), ROOFS) == ()
