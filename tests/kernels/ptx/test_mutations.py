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
    "matmul/numba-cuda-warptile/fp32": (256, 24, 132),
    "matmul/numba-cuda-tensorcore/bf16": (64, 136, 72),
    "matmul/numba-cuda-tensorcore/fp16": (64, 136, 72),
    "matmul/numba-cuda-tensorcore/tf32": (64, 72, 68),
    "softmax/numba-cuda/fp32": (3, 257),
    "layer_norm/numba-cuda/fp32": (3, 257),
    "matmul/numba-cuda-naive/fp32": (33, 17, 65),
    "matvec/numba-cuda/fp32": (33, 65),
    "vector_add/numba-cuda-naive/fp32": (257,),
    "conv2d/numba-cuda/fp32": (2, 3, 5, 7, 17, 3),
}
TENSOR_CORES = [key for key in CASES if "tensorcore" in key]
WITH_BARRIERS = list(CASES)[:9]

pytestmark = pytest.mark.long


def survivors(key, pattern, instead, *, step=1):
    """Return those of the places where a pattern occurs at which replacing it goes unnoticed."""
    text = ptx_of(key, "8.0")
    places = list(re.finditer(pattern, text))
    assert places, f"{key} has no {pattern}"
    return [i for i in range(0, len(places), step) if is_unnoticed(key, text, places[i], instead)]


def is_unnoticed(key, text, place, instead):
    changed = text[: place.start()] + place.expand(instead) + text[place.end() :]
    return is_right(*launched(key, CASES[key], change=lambda _: changed))


@pytest.mark.parametrize("key", CASES)
def test_unchanged_kernel_is_right(key):
    assert is_right(*launched(key, CASES[key]))


@pytest.mark.parametrize("key", WITH_BARRIERS)
def test_every_missing_barrier_is_noticed(key):
    assert survivors(key, BARRIER, "") == []


@pytest.mark.parametrize("key", TENSOR_CORES)
def test_waiting_for_one_group_too_few_is_noticed(key):
    assert survivors(key, r"wait_group 1", "wait_group 2") == []


@pytest.mark.parametrize("key", TENSOR_CORES)
def test_registers_of_a_fragment_swapped_are_noticed(key):
    assert survivors(key, PRODUCT, r"\1\3, \2,", step=5) == []


@pytest.mark.parametrize("key", TENSOR_CORES[:2])
def test_fragments_that_are_not_transposed_are_noticed(key):
    assert survivors(key, r"\.trans", "") == []


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
