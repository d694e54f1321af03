from dataclasses import replace

import pytest

from gpuexplore.analysis.roofs import roof_experiments
from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.analysis.utilization.utilization import byte_count
from gpuexplore.core.model import Peak
from tests.analysis.made import device


def sizes(**spec):
    product, triad = roof_experiments(device(**spec))
    return product.shapes[0]["m"], triad.shapes[0]["n"]


@pytest.mark.parametrize(
    ("flop_per_s", "size"),
    [(1e9, 1024), (2.36e11, 2048), (1e12, 2048), (1e15, 8192), (None, 1024)],  # 2·2048³ take 73 ms at 236 GFLOP/s
)
def test_product_takes_a_tenth_of_a_second_at_most_where_it_may_be_small(flop_per_s, size):
    peaks = (Peak("fp32", "matrix", flop_per_s, "datasheet", "a test"),) if flop_per_s else ()
    assert sizes(peaks=peaks)[0] == size


def test_triad_overflows_the_caches_and_takes_long_enough():
    _, large = roof_experiments(device(cache_bytes=32 * 2**20))
    _, fast = roof_experiments(device(cache_bytes=1000, bandwidth=3e12))

    assert byte_count(large.cases()[0]) >= 4 * 32 * 2**20
    assert byte_count(fast.cases()[0]) >= 2e-4 * 3e12


@pytest.mark.parametrize(
    ("native", "dtypes"),
    [(("fp64", "fp32", "bf16"), ("fp32", "bf16")), (("fp16", "fp32"), ("fp32", "fp16")), ((), ("fp32",))],
)
def test_products_are_in_the_dtypes_that_the_device_has_units_for(native, dtypes):
    assert roof_experiments(replace(device(), native=native))[0].dtypes == dtypes


def test_both_ask_for_the_default_implementations_of_the_device_and_are_not_refused():
    here = device(memory_bytes=2**33)
    product, triad = roof_experiments(here)

    assert (product.implementations, triad.implementations) == (("numpy", "numba-cpu", "torch"),) * 2
    for experiment in (product, triad):
        check_limits(experiment, [here])
    assert "numba-cuda" in roof_experiments(device(device_id="cuda:0"))[0].implementations
