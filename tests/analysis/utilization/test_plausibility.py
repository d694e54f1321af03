"""What hardware cannot do was not done: such times are no measured peak, no roof and no figure of a what-if."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.utilization.best_results import is_plausible
from gpuexplore.analysis.utilization.utilization import bytes_from_memory
from gpuexplore.core.model import Bandwidth, CacheRoof, Shape
from tests.analysis.made import failed, ok
from tests.analysis.utilization.test_above_peak import geforce
from tests.analysis.utilization.test_peak_choice import on_gpu

COPY = {"operation": "copy", "shape": Shape.of(n=1000)}  # 4,000 bytes in, 4,000 out


@pytest.mark.parametrize(
    ("fraction", "held_hz", "believed"),
    [
        (0.9, None, True),
        (1.15, None, True),  # boards boost
        (1.25, None, False),
        (1.25, 2.73e9, True),  # 8 % above the rated clock, and 15 % more
        (1.4, 2.73e9, False),
        (1.1, 2.1e9, False),  # 32 % above what that clock allows
    ],
)
def test_rated_peak_is_passed_by_as_much_as_clocks_explain(fraction, held_hz, believed):
    assert is_plausible(geforce(fraction, held_hz)) is believed


@pytest.mark.parametrize(("median_s", "believed"), [(3.5e-4, True), (3.4e-4, False)])  # 1.23 and 1.27 TFLOP/s of 1
def test_measured_peak_may_be_missed_by_a_quarter(median_s, believed):
    assert is_plausible(ok(median_s, size=600)) is believed


@pytest.mark.parametrize(("median_s", "believed"), [(1.5e-4, True), (1e-4, False)])  # 5.3 and 8 TB/s of 4.8
def test_memory_is_not_passed_by_far_when_no_cache_holds_the_data(median_s, believed):
    assert is_plausible(on_gpu(ok(median_s, operation="copy", shape=Shape.of(n=10**8)), "NVIDIA H200")) is believed


@pytest.mark.parametrize(("bytes_per_s", "believed"), [(1.2e12, True), (1.3e12, False)])
def test_nothing_comes_faster_than_from_the_fastest_cache(bytes_per_s, believed):
    caches = tuple(
        CacheRoof(level, 2**15, Bandwidth(rate, "measured_ceiling", "")) for level, rate in ((1, 1e12), (2, 1e11))
    )
    result = ok(8e3 / bytes_per_s, spec={"peaks": (), "bandwidth": None}, **COPY)
    on = replace(result.environment, device=replace(result.environment.device, caches=caches))

    assert is_plausible(replace(result, environment=on)) is believed


def test_without_a_time_or_a_limit_there_is_nothing_to_believe_or_to_doubt():
    assert not is_plausible(failed())
    assert is_plausible(ok(1e-12, spec={"peaks": (), "bandwidth": None}))


@pytest.mark.parametrize(
    ("cache_bytes", "cache", "expected"),
    [(1000, "warm", 7000), (10**6, "warm", 0), (10**6, "cold", 4000), (1000, "cold", 7000), (None, "cold", None)],
)
def test_flushed_cache_delivers_nothing_but_may_keep_what_is_written(cache_bytes, cache, expected):
    assert bytes_from_memory(ok(spec={"cache_bytes": cache_bytes}, cache=cache, **COPY)) == expected
