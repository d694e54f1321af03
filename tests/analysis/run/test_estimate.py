import re
from dataclasses import replace

import pytest

from gpuexplore.analysis.run.estimate import (
    COMPILE_PRODUCT_S,
    OVERHEAD_S,
    OVERHEAD_WITH_PAGES_S,
    SPREAD,
    START_OF_S,
    START_S,
    USED_OF_MORE,
    _case_count,
    check_limits,
    estimate,
)
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import DEFAULT_BUDGET_S, Experiment, Options, Shape
from gpuexplore.operations import operation_named
from tests.analysis.made import device, ok

START = START_S + START_OF_S["torch"]


def experiment(
    sizes=(100,), dtypes=("fp32",), implementations=("torch",), budget_s=DEFAULT_BUDGET_S, operation="matmul"
):
    shapes = tuple(Shape.of(m=size, k=size, n=size) for size in sizes)
    return Experiment(operation, shapes, dtypes, implementations, options=Options(budget_s=budget_s))


def test_estimate_of_two_sizes_and_of_a_larger_budget():
    found = estimate(experiment((10, 100)))
    assert (found.cases, found.runnable, found.unsupported) == (2, 2, ())
    assert found.bytes_largest == 30_000 * (4 + 3 * 4 + 3 * 8)
    assert found.seconds == pytest.approx(2 * (DEFAULT_BUDGET_S + OVERHEAD_WITH_PAGES_S))  # the calls are short
    assert 2 * OVERHEAD_WITH_PAGES_S / SPREAD < found.seconds_low < found.seconds < found.seconds_high
    assert found.flop_total == 2_000 + 2_000_000

    more = estimate(experiment(budget_s=DEFAULT_BUDGET_S + 1.0)).seconds - estimate(experiment()).seconds
    assert more == pytest.approx(USED_OF_MORE)


def test_kernels_that_were_never_run_here_are_compiled_first():
    """Numba compiles one for each dtype, two at once; what is not known of earlier runs adds nothing."""
    asked = experiment(dtypes=("fp32", "bf16", "fp16"), implementations=("numba-cpu", "numpy"))
    here = device()
    cold = estimate(asked, [here], cold=True).seconds
    ran = ok(size=100, dtype="bf16", implementation="numba-cpu")

    assert estimate(asked, [here], [], cold=True).seconds == pytest.approx(cold + 1.5 * COMPILE_PRODUCT_S)
    assert estimate(asked, [here], [ran], cold=True).seconds == pytest.approx(cold + COMPILE_PRODUCT_S)
    assert estimate(experiment(), [here], [], cold=True).seconds == estimate(experiment(), [here], cold=True).seconds


def test_a_worker_that_is_there_has_compiled_what_a_first_visit_computes():
    here = device()
    for name, compiling_s in (("matmul", 0.0), ("linear", COMPILE_PRODUCT_S)):
        asked = replace(experiment(implementations=("numba-cpu",)), operation=name)
        asked = replace(asked, shapes=(operation_named(name).shape_of_size(100),))
        known = estimate(asked, [here]).seconds
        assert estimate(asked, [here], []).seconds == pytest.approx(known + compiling_s)


def test_fresh_processes_cost_their_starts_for_each_group_and_a_cold_worker_its_own():
    once, asked = experiment((10, 100)), experiment((10, 100))
    found = estimate(replace(asked, options=replace(asked.options, repeat=4)))

    assert found.seconds == pytest.approx(4 * estimate(once).seconds + 8 * START)
    no_pages_s = 2 * (OVERHEAD_WITH_PAGES_S - OVERHEAD_S)
    assert estimate(once, cold=True).seconds == pytest.approx(estimate(once).seconds - no_pages_s + START)


def test_what_is_slow_is_named_with_its_share():
    here = replace(device(), native=("fp64", "fp32"))
    asked = experiment((512,), dtypes=("fp32", "fp16"), implementations=("numpy", "torch"))

    found = estimate(asked, [here])
    assert list(found.slow) == [("fp16", "numpy")]
    assert re.fullmatch(r"about [\d.]+ s; fp16 in numpy: [\d.]+ of [\d.]+ s", found.sentence)
    assert estimate(replace(asked, dtypes=("fp32",)), [here]).slow == {}


def test_threads_beyond_the_cores_are_refused_with_their_number():
    asked = experiment()
    asked = replace(asked, options=replace(asked.options, threads=3))
    with pytest.raises(InvalidInput, match="threads '3': expected 1 to 2, the cores of this CPU"):
        check_limits(asked, [replace(device(), cores=2)])
    check_limits(asked, [replace(device(), cores=4)])


def test_dtypes_without_a_meaning_cost_nothing_and_say_why():
    asked = Experiment("vector_add", (Shape.of(n=10),), ("fp32", "tf32"), ("torch",))
    found = estimate(asked)
    assert (found.cases, found.runnable) == (2, 1)
    assert "not a matmul" in found.unsupported[0]


def test_too_large_for_a_device_names_both_figures_and_unknown_memory_refuses_nothing():
    check_limits(experiment(), [device(memory_bytes=2**30)])
    with pytest.raises(InvalidInput):
        check_limits(experiment([20_000]), [device(memory_bytes=2**30)])

    with pytest.raises(InvalidInput, match=r"needs 1.14 MiB, more than 80% of the 391 KiB of cpu"):
        check_limits(experiment(), [device(memory_bytes=400_000)])

    check_limits(experiment(), [device(), device(device_id="cuda:0", memory_bytes=1)])
    with pytest.raises(InvalidInput, match="of cpu"):
        check_limits(experiment(), [device(memory_bytes=1), device(device_id="cuda:0", memory_bytes=1)])

    asked = replace(experiment([1000]), devices=("cpu", "cuda:0"))

    check_limits(asked, [device(memory_bytes=2**30), device(device_id="cuda:0", memory_bytes=24_000_000)])
    with pytest.raises(InvalidInput, match="of cpu"):
        check_limits(asked, [device(memory_bytes=24_000_000), device(device_id="cuda:0", memory_bytes=2**30)])


def test_too_many_cases_are_counted_before_they_are_made_and_too_long_names_both_figures():
    asked = experiment(sizes=range(1, 2002))
    assert _case_count(asked) == 2001
    with pytest.raises(InvalidInput, match="2,001 cases are too many for one run"):
        check_limits(asked, [])

    with pytest.raises(InvalidInput, match="could take 2 h 1 min, more than 1 h 0 min"):
        check_limits(experiment(sizes=range(1, 201), budget_s=60), [])


def on_gpu(size, dtype, memory_bytes):
    asked = experiment([size], dtypes=(dtype,), budget_s=0.1)
    here = [device(memory_bytes=2**30), device(device_id="cuda:0", memory_bytes=memory_bytes)]
    check_limits(replace(asked, devices=("cuda:0",)), here)


def test_product_that_fits_on_a_gpu_is_not_refused_for_what_the_host_checks_it_with():
    on_gpu(47_800, "bf16", 80 * 2**30)
    on_gpu(65_536, "bf16", 80 * 2**30)
    with pytest.raises(InvalidInput, match=r"needs \d+\.\d GiB, more than 80% of the 80.0 GiB of cuda:0"):
        on_gpu(65_536, "fp32", 80 * 2**30)
