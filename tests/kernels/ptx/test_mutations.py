"""Kernels that are wrong on purpose: what the interpreter would miss, a wrong kernel could hide behind."""

import re

import pytest

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from tests.kernels.ptx.launches import is_right, launched, ptx_of

BARRIER = r"bar\.sync\s+0;"
BOUND = r"setp\.ge\.s64"
PRODUCT = r"(mma\.sync\S+ \{[^}]*\}, \{)([^,]*), ([^,]*),"
CASES = {  # many tiles deep, so that every copy matters; the rows of all fragments are inside
    "matmul/numba-cuda-shared/fp32": (33, 17, 65),
    "matmul/numba-cuda-register/fp32": (33, 17, 65),
    "matmul/numba-cuda-vector/fp32": (33, 17, 65),
    "matmul/numba-cuda-tensorcore/bf16": (64, 264, 72),
    "matmul/numba-cuda-tensorcore/fp16": (64, 264, 72),
    "matmul/numba-cuda-tensorcore/tf32": (64, 136, 68),
    "matmul/numba-cuda-wgmma/bf16": (65, 328, 136),
    "softmax/numba-cuda/fp32": (3, 257),
    "layer_norm/numba-cuda/fp32": (3, 257),
    "matmul/numba-cuda-naive/fp32": (33, 17, 65),
    "matvec/numba-cuda/fp32": (33, 65),
    "vector_add/numba-cuda-naive/fp32": (257,),
    "conv2d/numba-cuda/fp32": (2, 3, 5, 7, 17, 3),
}
TENSOR_CORES = [key for key in CASES if "tensorcore" in key]
WITH_BARRIERS = list(CASES)[:9]
WGMMA = "matmul/numba-cuda-wgmma/bf16"

pytestmark = pytest.mark.long


def capability_of(key):
    return "9.0" if key == WGMMA else "8.0"


def survivors(key, pattern, instead, *, step=1):
    """Return those of the places where a pattern occurs at which replacing it goes unnoticed."""
    text = ptx_of(key, capability_of(key))
    places = list(re.finditer(pattern, text))
    assert places, f"{key} has no {pattern}"
    return [i for i in range(0, len(places), step) if is_unnoticed(key, text, places[i], instead)]


def is_unnoticed(key, text, place, instead):
    changed = text[: place.start()] + place.expand(instead) + text[place.end() :]
    return is_right(*launched(key, CASES[key], capability_of(key), change=lambda _: changed))


@pytest.mark.parametrize("key", CASES)
def test_unchanged_kernel_is_right(key):
    assert is_right(*launched(key, CASES[key], capability_of(key)))


@pytest.mark.parametrize("key", WITH_BARRIERS)
def test_every_missing_barrier_is_noticed(key):
    assert survivors(key, BARRIER, "") == []


@pytest.mark.parametrize("key", TENSOR_CORES)
def test_waiting_for_one_group_too_few_is_noticed(key):
    assert survivors(key, r"wait_group 2", "wait_group 3") == []


@pytest.mark.parametrize("key", TENSOR_CORES)
def test_registers_of_a_fragment_swapped_are_noticed(key):
    assert survivors(key, PRODUCT, r"\1\3, \2,", step=37) == []


@pytest.mark.parametrize("key", TENSOR_CORES[:2])
def test_fragments_that_are_not_transposed_are_noticed(key):
    assert survivors(key, r"\.trans", "", step=5) == []


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        (r"cp\.async\.wait_group 1", "cp.async.wait_group 2"),
        (r"fence\.proxy\.async\S*;", ""),
        (r"wgmma\.wait_group\S* 0", "wgmma.wait_group.sync.aligned 1"),
        (r"(wgmma\.mma_async\S+ .*), 1, 1, 1, 0, 1;", r"\1, 1, 1, 1, 0, 0;"),
        (r"(wgmma\.mma_async\S+ \{)(\S+), (\S+),", r"\1\3, \2,"),
    ],
)
def test_warpgroups_that_do_not_wait_or_fence_or_take_the_wrong_elements_are_noticed(pattern, instead):
    assert survivors(WGMMA, pattern, instead, step=3 if "mma_async" in pattern else 1) == []


def test_products_of_warpgroups_without_a_fence_are_noticed():
    """Only the first of several on the same sums needs one, so that single ones are not missed."""
    without = launched(WGMMA, CASES[WGMMA], "9.0", change=lambda text: re.sub(r"wgmma\.fence\S*;", "", text))

    assert any("fence" in fault.about for fault in without[0].faults)


@pytest.mark.parametrize(
    "key",
    [
        "matmul/numba-cuda-naive/fp32",
        "matmul/numba-cuda-shared/fp32",
        "matvec/numba-cuda/fp32",
        "vector_add/numba-cuda-naive/fp32",
        "conv2d/numba-cuda/fp32",
    ],
)
def test_every_bound_off_by_one_is_noticed(key):
    assert survivors(key, BOUND, "setp.gt.s64") == []
