"""The ideal time, by hand: the largest of three terms, with tiles and waves."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.prediction.calls import CALL_S, Arithmetic, _useful_share, ideal
from gpuexplore.core.model import Bandwidth, CacheRoof, Peak, Shape
from gpuexplore.operations.contract import Product
from tests.analysis.made import case, device

GPU = device(device_id="cuda:0", peaks=(Peak("fp32", "matrix", 1e12, "datasheet", "a test"),), bandwidth=1e11)
LEVELS = ((1, 10**5, 5e10), (2, 5 * 10**5, 3e10), (3, 10**7, 2e10))
UNITS = Arithmetic("native", None, GPU.peaks[0])


def test_the_largest_term_by_hand():
    found = ideal(case(size=4096, on="cuda:0"), GPU, UNITS)
    assert (found.bound, found.time_s, found.floor_s) == ("compute", 2 * 4096**3 / 1e12, 2 * 4096**3 / 1e12)

    found = ideal(case(operation="copy", shape=Shape.of(n=10**8), on="cuda:0"), GPU, Arithmetic("native"))
    assert (found.bound, found.time_s) == ("memory", 8e8 / 1e11)

    found = ideal(case(size=64, on="cuda:0"), GPU, UNITS)
    assert (found.bound, found.time_s) == ("overhead", CALL_S["gpu"])
    assert found.floor_s == max(2 * 64**3 / 1e12, 3 * 64**2 * 4 / 1e11)

    found = ideal(case(size=1000), device(peaks=GPU.peaks), UNITS)
    assert (found.bound, found.time_s) == ("compute", 2 * 1000**3 / 1e12 + CALL_S["cpu"])


def test_data_in_a_cpus_caches_are_moved_by_the_fastest_that_has_them_all():
    levels = [CacheRoof(level, size, Bandwidth(rate, "measured_ceiling", "")) for level, size, rate in LEVELS]
    here = replace(device(cache_bytes=10**6, bandwidth=1e10), caches=tuple(levels))
    found = ideal(case(operation="copy", shape=Shape.of(n=50_000)), here, Arithmetic("native"))  # 400 kB
    assert (found.bound, found.floor_s) == ("cache", 4e5 / 3e10)

    found = ideal(case(operation="copy", shape=Shape.of(n=100_000)), device(cache_bytes=10**6), Arithmetic("native"))
    assert found.bound == "cache"
    cold = case(operation="copy", shape=Shape.of(n=100_000), cache="cold")
    found = ideal(cold, device(cache_bytes=10**6), Arithmetic("native"))
    assert found.bound == "memory"


def test_without_a_peak_or_a_bandwidth_there_is_no_ideal():
    assert ideal(case(), GPU, Arithmetic("native", "unknown", None)) is None
    assert ideal(case(), device(bandwidth=None), UNITS) is None


def test_useful_share_of_tiles_and_waves_by_hand():
    assert _useful_share([Product(1, 256 * 4, 128 * 4, 64)], 16) == 1.0

    share = _useful_share([Product(1, 256 * 17, 128, 64)], 16)
    assert 0.5 < share < 1.0

    assert _useful_share([Product(1, 32, 32, 64)], 1) == pytest.approx(0.7 * 32 * 32 / 64**2)

    assert _useful_share([Product(1, 256, 128, 2**15)], 32) == 1.0
    assert _useful_share([Product(1, 256, 128, 64)], 32) < 0.3

    whole, part = Product(1, 256, 128, 1000), Product(1, 64, 32, 1000)
    of_whole, of_part = _useful_share([whole], 1), _useful_share([part], 1)
    work = [256 * 128, 64 * 32]
    assert _useful_share([whole, part], 1) == pytest.approx(sum(work) / (work[0] / of_whole + work[1] / of_part))

    assert _useful_share([], 16) == _useful_share([Product(1, 1, 1, 1)], None) == 1.0


@pytest.mark.parametrize("vector", [Product(1, 100_000, 1, 100), Product(1, 1, 100_000, 100), Product(8, 64, 1, 64)])
def test_a_matrix_vector_product_is_not_cut_into_tiles(vector):
    assert _useful_share([vector], 16) == 1.0
    assert _useful_share([vector._replace(m=2, n=2)], 16) < 0.5
