"""The terms of a call on a GPU: each follows from what it should, and in the direction it should."""

from dataclasses import replace

import numpy as np
import pytest

from gpuexplore.analysis.prediction.calls import CALLS, Conditions, arithmetic
from gpuexplore.analysis.prediction.gpu.facts import Batch, facts_of, family_of, is_of_library
from gpuexplore.analysis.prediction.gpu.terms import GROUPS, SINGLE, expected, names_for, terms
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Case, Options, Shape
from gpuexplore.hardware import ACCELERATORS, accelerator_named, as_device
from gpuexplore.operations import OPERATIONS, operation_named

KNOWN = {}


def asked(operation="matmul", key="h100-sxm5-80gb", dtype="fp32", conditions=None, cache=None, **axes):
    case = Case(operation, Shape.of(**axes), dtype, operation_named(operation).vendor_library.name, key, Options(cache))
    device = as_device(accelerator_named(key))
    return facts_of(case, device, arithmetic(case, device), conditions or Conditions())


def square(length):
    return {"m": length, "k": length, "n": length}


def took(*rows):
    return terms(Batch(rows), KNOWN)


def test_a_launch_is_added_and_is_no_floor():
    one = took(asked(**square(512)))
    work = (one.compute**1.7 + one.memory**1.7) ** (1 / 1.7)
    assert one.total == pytest.approx(one.launch + work)


@pytest.mark.parametrize("calls", CALLS)
def test_each_kind_of_calls_has_its_own_launch(calls):
    found = took(*(asked(conditions=Conditions(each), **square(64)) for each in ("graph", calls)))
    assert (found.launch[1] > found.launch[0]) == (calls != "graph")
    assert (found.compute[1] > found.compute[0]) == (calls == "cold")  # an idle GPU runs at a lower clock


def test_a_step_of_several_kernels_launches_each():
    shape = Shape.of(batch=64, inputs=64, hidden=64, outputs=10, layers=2)
    one = asked("mlp_step", **dict(shape.axes))
    found = took(one, replace(one, kernels=2 * one.kernels))
    assert one.kernels > 5
    assert found.total[1] - found.total[0] == pytest.approx(found.launch[0])


def test_power_and_shared_lanes_limit_the_rate():
    poor, rich = asked("matmul", "t4", "fp16", **square(8192)), asked("matmul", "rtx-3090", "fp16", **square(8192))
    shares = [
        2 * 8192**3 / seconds / row.peak for row, seconds in zip((poor, rich), took(poor, rich).compute, strict=True)
    ]
    assert shares[0] < 0.75 * shares[1]
    unknown = replace(poor, watts_per_teraflop=np.nan)
    assert took(unknown).compute < took(poor).compute

    row = replace(asked("matmul", "rtx-3090", "fp32", **square(8192)), watts_per_teraflop=50.0)
    own = replace(row, shared_lanes=False)
    assert took(row).compute > 1.2 * took(own).compute


def test_a_last_wave_of_few_tiles_costs_more_than_its_share():
    multiprocessors = int(asked(**square(64)).multiprocessors)
    rows = [asked(m=128 * tiles, k=8192, n=64) for tiles in (multiprocessors, multiprocessors + 1)]
    full, spilled = took(*rows).compute
    assert spilled > full * (multiprocessors + 1) / multiprocessors


def test_odd_lengths_are_misaligned_and_a_matrix_vector_product_has_no_tiles():
    even, odd = asked(m=2048, k=2048, n=2048), asked(m=2048, k=2048, n=2047)
    assert (even.misaligned, odd.misaligned) == (False, True)
    assert took(odd).compute > took(even).compute

    found = asked("matvec", m=8192, n=8192)
    assert found.products == ()
    assert took(found).compute == 0


@pytest.mark.parametrize("operation", ["layer_norm", "softmax"])
def test_long_rows_are_read_again_where_the_cache_does_not_hold_those_in_flight(operation):
    short, long = asked(operation, "t4", m=65536, n=256), asked(operation, "t4", m=512, n=32768)
    assert short.bytes == pytest.approx(long.bytes, rel=0.01)
    short_s, long_s = took(short, long).memory
    assert long_s > 1.2 * short_s


def test_a_few_rows_leave_multiprocessors_idle():
    few, many = asked("softmax", m=8, n=8192), asked("softmax", m=1024, n=64)
    assert took(few).memory > 2 * took(many).memory


def test_data_that_stay_in_the_cache_are_read_from_it_unless_it_is_flushed():
    warm, cold = (asked("vector_add", "l40s", cache=cache, n=10**6) for cache in (None, "cold"))
    assert took(warm).memory < 0.7 * took(cold).memory
    large = [asked("vector_add", cache=cache, n=10**9) for cache in (None, "cold")]
    assert took(*large).memory[0] == pytest.approx(took(*large).memory[1], rel=0.01)


def test_weights_of_a_layer_take_turns_and_those_of_a_product_do_not():
    layer, product = asked("linear", b=16, d=2048, k=2048), asked(m=16, k=2048, n=2048)
    assert layer.reused_bytes == pytest.approx(6 * product.reused_bytes, rel=0.1)
    alone = asked("linear", conditions=Conditions(weight_sets=1), b=16, d=2048, k=2048)
    assert alone.reused_bytes == product.reused_bytes


def test_a_layer_in_fp8_quantises_its_activations_first_unless_it_is_said_not_to():
    usual, bare = (
        asked("linear", dtype="fp8", conditions=Conditions(quantises=each), b=4096, d=8192, k=64)
        for each in (None, False)
    )
    assert usual.quantised_bytes == 3 * 4096 * 8192
    assert took(usual).total > took(bare).total + took(usual).launch


def test_winograd_is_for_fp32_of_3_by_3_and_needs_fewer_flops():
    image = {"b": 32, "c": 256, "h": 28, "w": 28, "o": 256}
    small, large = asked("conv2d", r=3, **image), asked("conv2d", r=5, **image)
    assert (small.winograd is None, large.winograd is None) == (False, True)
    assert asked("conv2d", dtype="fp16", r=3, **image).winograd is None
    assert took(small).compute < took(replace(small, winograd=None)).compute


def test_a_head_size_between_those_of_the_kernels_is_padded():
    sizes = (64, 72, 96)
    seconds = took(*(asked("attention", dtype="bf16", b=8, h=16, s=4096, d=size) for size in sizes)).compute
    assert seconds[0] < seconds[1] == seconds[2]


def test_every_coefficient_has_an_expectation():
    batch = Batch([asked(**square(64)), asked("attention", dtype="bf16", b=1, h=1, s=64, d=64)])
    names = names_for(batch)
    assert set(SINGLE) <= set(names)
    assert {name.partition(":")[0] for name in names} == {*SINGLE, *GROUPS}
    assert all(expected(name).stdev > 0 for name in names)


def test_many_calls_are_as_each_alone():
    rows = [
        *(asked(**square(size)) for size in (1, 100, 5000)),
        asked("attention", dtype="fp16", b=2, h=4, s=1000, d=80),
        asked("conv2d", b=1, c=3, h=224, w=224, o=64, r=3),
        asked("softmax", m=1000, n=1000),
        asked("vector_add", n=10**7),
    ]
    together = took(*rows).total
    assert together == pytest.approx([float(took(row).total[0]) for row in rows])


def test_every_call_of_a_library_on_every_gpu_has_a_time():
    rows = []
    for operation in OPERATIONS.values():
        for row in ACCELERATORS:
            device, shape = as_device(row), operation.shape_of_size(operation.default_sizes[-1])
            for dtype in FORMATS:
                case = Case(operation.name, shape, dtype, operation.vendor_library.name, row.key)
                units = arithmetic(case, device)
                if is_of_library(case, device, units):
                    rows.append(facts_of(case, device, units))
    found = took(*rows).total
    assert len(found) > 5000
    assert np.isfinite(found).all()
    assert (found > 1e-7).all()


def test_a_single_product_is_the_same_to_a_library_by_whatever_name():
    families = {
        name: family_of(Case(name, operation_named(name).shape_of_size(64), "fp32", "torch", "t4"))
        for name in ("matmul", "linear", "batched_matmul", "matvec", "attention", "conv2d", "softmax", "vector_add")
    }
    assert families == {
        "matmul": "product",
        "linear": "product",
        "batched_matmul": "batched_product",
        "matvec": "element_wise",
        "attention": "attention",
        "conv2d": "convolution",
        "softmax": "softmax",
        "vector_add": "element_wise",
    }
