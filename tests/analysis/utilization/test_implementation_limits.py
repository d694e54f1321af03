"""What an implementation can reach: one core's roofs, a read more for an ordinary store, half a peak for additions."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.roofline import point_of
from gpuexplore.analysis.roofs import roofs
from gpuexplore.core.model import Bandwidth, CacheRoof, Peak, Shape, ThreadRoofs
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import alone, custom, device, ok

STREAMING, ORDINARY = 1e11, 7.5e10  # 3 bytes counted of 4 that move: the write-allocate of a triad
ONE = ThreadRoofs(
    peaks=(Peak("fp32", "vector", 1e11, "measured_ceiling", "one thread"),),
    bandwidth=Bandwidth(4e10, "measured_ceiling", "one thread"),
    ordinary_stores=Bandwidth(3e10, "measured_ceiling", "one thread"),
    caches=(CacheRoof(1, 1000, Bandwidth(4e11, "measured_ceiling", "one thread")),),
)
KNOWN = {"ordinary_stores": Bandwidth(ORDINARY, "measured_ceiling", "a test"), "one_thread": ONE, "cores": 2}


def measured(operation, shape, *, implementation="numba-cpu", known=KNOWN, **about):
    result = ok(1e-3, operation=operation, shape=shape, implementation=implementation, **about)
    return replace(result, environment=replace(result.environment, device=replace(device(), **known)))


def memory_of(*arguments, **about):
    return alone(measured(*arguments, **about)).limits.memory.bytes_per_s


def test_ordinary_stores_cost_a_read_more_unless_they_stream_or_are_no_slower():
    n = Shape.of(n=10**6)
    assert memory_of("triad", n) == pytest.approx(ORDINARY)
    assert memory_of("copy", n) == pytest.approx(STREAMING * 2 / 3)
    assert memory_of("reduce_sum", Shape.of(m=1, n=10**6)) == pytest.approx(STREAMING, rel=1e-5)

    copied = measured("copy", Shape.of(n=10**6), implementation="numpy")
    assert alone(copied).limits.memory.bytes_per_s == 4e10

    entered = custom(bandwidth=Bandwidth(1e10, "own", "me"), on=copied.environment.device)
    added = alone(measured("vector_add", Shape.of(n=10**6)), custom_peaks=entered)
    assert added.limits.memory.bytes_per_s == 1e10

    faster = KNOWN | {"ordinary_stores": Bandwidth(1.2e11, "measured_ceiling", "a test")}
    assert memory_of("copy", Shape.of(n=10**6), known=faster) == 1.2e11


def test_additions_alone_reach_half_of_a_peak():
    added, fused = (alone(measured(name, Shape.of(n=10**6))) for name in ("vector_add", "triad"))
    assert (added.limits.peak.flop_per_s, fused.limits.peak.flop_per_s) == (2.5e11, 5e11)
    assert added.default_peak.flop_per_s == 5e11


def test_one_thread_has_the_limits_of_one_core_and_the_mfu_of_the_device():
    analyzed = alone(measured("triad", Shape.of(n=10**6), implementation="numpy"))
    assert analyzed.limits.one_thread
    assert analyzed.limits.peak.flop_per_s == 1e11
    assert analyzed.limits.memory.bytes_per_s == pytest.approx(3e10)
    assert analyzed.mfu == pytest.approx(analyzed.flop_per_s / 5e11)


@pytest.mark.parametrize(("elements", "one_thread"), [(32_768, True), (32_769, False)])
def test_torch_stays_on_one_thread_up_to_a_grain(elements, one_thread):
    analyzed = alone(measured("vector_add", Shape.of(n=elements), implementation="torch"))
    assert analyzed.limits.one_thread is one_thread


def test_a_point_of_one_thread_is_below_the_roofs_of_one_core():
    result = measured("triad", Shape.of(n=10**6), implementation="numpy")
    point = point_of(alone(result), roofs(result.environment.device))
    assert (point.serving.label, point.compute.label) == ("Memory, one thread", "fp32, vector units, one thread")
    assert point.attainable == pytest.approx(point.intensity * 3e10)

    unknown = measured("triad", Shape.of(n=10**6), implementation="numpy", known=KNOWN | {"one_thread": None})
    assert point_of(alone(unknown), roofs(unknown.environment.device)).attainable is None


def test_everything_of_numpy_but_blas_is_declared_to_use_one_thread():
    declared = {
        operation.name
        for operation in OPERATIONS.values()
        if "fp32" in operation.implementation_named("numpy").one_thread
    }
    element_wise = {"vector_add", "multiply", "triad", "copy", "optimizer_step"}
    assert declared == element_wise | {"reduce_sum", "softmax", "layer_norm"}
