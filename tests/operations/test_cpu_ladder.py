"""The CPU ladder of matmul: every step is right at every edge of its tiles, with any number of threads."""

from dataclasses import replace
from itertools import product

import numba
import numpy as np
import pytest

from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.kernels.cpu_micro_kernel import packed_dtype, tile_for
from gpuexplore.measure.check.correctness import check, tolerance
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import OPERATIONS, load_build
from gpuexplore.operations.matmul import numba_cpu_vector as vector
from tests.unchanged import heavy_with

MATMUL = OPERATIONS["matmul"]
BACKEND = load_backend("numba_cpu")
RUNGS = [implementation for implementation in MATMUL.implementations if implementation.name.startswith("numba-cpu-")]
BEST = MATMUL.implementation_named("numba-cpu")
NAMES = ("fp64", "fp32", "bf16", "fp16")
AVX512 = frozenset({"sse2", "avx", "avx2", "fma", "avx512f", "avx512bf16"})
AVX2 = frozenset({"sse2", "avx", "avx2", "fma"})
NEON = frozenset({"neon", "bf16"})

EACH_DTYPE = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(DTYPES[name], id=name, marks=[] if name == "fp32" else heavy_with(MATMUL, *RUNGS, BEST))
        for name in NAMES
    ],
)
EACH_RUNG = pytest.mark.parametrize("rung", RUNGS, ids=[rung.name for rung in RUNGS])


def built(implementation, dtype, shape):
    """Return inputs, output and run of one product of random numbers."""
    inputs = make_inputs(MATMUL, shape, dtype, "normal")
    out = BACKEND.empty(MATMUL.output(shape), dtype, "cpu")
    BACKEND.poison(out)
    arrays = tuple(BACKEND.to_device(array, dtype, "cpu") for array in inputs)
    return inputs, out, load_build(MATMUL, implementation)(arrays, out, dtype)


def is_right(implementation, dtype, **lengths):
    """Return whether one run of it writes the product, as far as rounding allows."""
    shape = Shape.of(**lengths)
    inputs, out, run = built(implementation, dtype, shape)
    run()
    right = Reference(MATMUL, dtype, inputs).parts
    return check(dtype.widen(BACKEND.stored(out, dtype)), right, tolerance(MATMUL, shape, dtype)).within


@pytest.fixture
def threads():
    """Return the function that sets Numba's threads; afterwards they are as before."""
    before = numba.get_num_threads()
    yield numba.set_num_threads
    numba.set_num_threads(before)


@pytest.fixture
def small_blocks(monkeypatch):
    """Make the blocks so small that a small product has many of them along every axis."""
    for name, size in {"ROWS": 24, "DEPTH": 16, "COLUMNS": 96, "FEWEST_TERMS_PER_THREAD": 1}.items():
        monkeypatch.setattr(vector, name, size)


def test_the_ladder_has_its_four_steps_and_the_best_of_them_is_the_default():
    assert [rung.name for rung in RUNGS] == [
        f"numba-cpu-{step}" for step in ("naive", "reordered", "blocked", "vector")
    ]
    assert all(rung.rung for rung in RUNGS)
    assert replace(RUNGS[-1], name=BEST.name, about=BEST.about, rung=False, best_rung=True) == BEST


@EACH_RUNG
@EACH_DTYPE
def test_step_overwrites_its_output_in_place_and_repeats_it_bit_by_bit(rung, dtype):
    _, out, run = built(rung, dtype, Shape.of(m=31, k=45, n=67))
    run()
    first = out.copy()
    BACKEND.poison(out)
    run()

    assert np.array_equal(first, out)


@EACH_DTYPE
def test_tiles_are_right_at_every_ragged_edge(dtype):
    tile = tile_for(packed_dtype(BACKEND.empty((1, 1), dtype, "cpu").dtype))
    around_rows = (tile.rows - 1, tile.rows, tile.rows + 1)
    around_vectors = [tile.lanes * count + more for count in range(1, tile.vectors + 1) for more in (-1, 0, 1)]
    around = list(product(around_rows, around_vectors))

    assert [(m, n) for m, n in around if not is_right(BEST, dtype, m=m, k=5, n=n)] == []


@EACH_DTYPE
@pytest.mark.parametrize("k", [16, 31, 32, 33, 64, 65, 97])
def test_sums_go_on_over_many_blocks(dtype, k, small_blocks):
    assert is_right(BEST, dtype, m=50, k=k, n=200)
    assert is_right(BEST, dtype, m=48, k=k, n=192)


@EACH_RUNG
@EACH_DTYPE
def test_one_thread_and_two_give_the_right_answer(rung, dtype, threads, small_blocks):
    for count in {1, min(2, numba.config.NUMBA_NUM_THREADS)}:
        threads(count)

        assert is_right(rung, dtype, m=70, k=40, n=130), count


def test_threads_that_change_after_the_build_change_nothing(threads, small_blocks):
    shape = Shape.of(m=70, k=40, n=130)
    threads(numba.config.NUMBA_NUM_THREADS)
    _, expected, run = built(BEST, DTYPES["fp32"], shape)
    run()
    _, out, run = built(BEST, DTYPES["fp32"], shape)
    threads(1)
    run()

    assert np.array_equal(out, expected)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (8, 1000), (1000, 16), (257, 255), (4096, 4096)])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 64])
def test_rectangles_cover_the_output_once_and_are_no_more_than_the_threads(m, n, count, monkeypatch):
    monkeypatch.setattr(numba, "get_num_threads", lambda: count)
    edges = vector._edges(m, 10**6, n, 8, 16)

    assert len(edges) <= count
    assert sum((bottom - top) * (right - left) for top, bottom, left, right in edges) == m * n
    assert len({(top, left) for top, _, left, _ in edges}) == len(edges)


def test_a_small_product_wakes_no_thread():
    assert len(vector._edges(64, 64, 64, 8, 16)) == 1


@pytest.mark.parametrize(("having", "registers"), [(AVX512, 32), (AVX2, 16), (NEON, 32), (frozenset({"sse2"}), 16)])
@pytest.mark.parametrize("packed", ["float64", "float32"])
def test_tile_fits_the_registers_and_leaves_room_for_its_factors(having, registers, packed):
    tile = tile_for(np.dtype(packed), having)

    assert tile.rows * tile.vectors + tile.vectors < registers
    assert tile.rows * tile.vectors >= 8
    assert f".v{tile.lanes}f" in tile.instruction


@pytest.mark.parametrize(
    ("stored", "having", "packed"),
    [
        ("float32", AVX2, "float32"),
        ("float64", AVX2, "float64"),
        ("int16", AVX512, "float32"),
        ("uint16", AVX512, "uint32"),
        ("uint16", AVX512 | {"avx512fp16"}, "float32"),  # Intel's dot products are half as fast as its multiply-adds
        ("uint16", AVX512 | {"avx512fp16", "sse4a"}, "uint32"),
        ("uint16", AVX2, "float32"),
        ("uint16", NEON, "uint32"),
    ],
)
def test_bf16_is_packed_in_pairs_only_where_it_is_multiplied_so(stored, having, packed):
    assert packed_dtype(np.dtype(stored), having) == packed
