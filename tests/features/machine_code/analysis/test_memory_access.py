"""Sectors and bank conflicts of accesses, against what one counts by hand."""

import numpy as np
import pytest

from gpuexplore.features.machine_code.analysis.block_steps import (
    _unpadded_wavefronts,
    collisions,
    elements_of,
    passes_of,
    request_of,
    wanted_words,
)
from gpuexplore.features.machine_code.chart import _sector_elements
from gpuexplore.kernels.ptx import Access, wavefronts
from gpuexplore.measure.check.interpreted import RunArray

LANES = np.arange(32)
START = 0x1000
MATRIX = RunArray("A", (32, 32), 4, START)


def access(offsets, size_bytes=4, *, memory="shared", lanes=None, start=0):
    offsets = np.asarray(offsets)
    return Access(
        memory, False, size_bytes, LANES[: offsets.size] if lanes is None else np.array(lanes), offsets + start
    )


@pytest.mark.parametrize(
    ("offsets", "size_bytes", "sectors", "useful", "fewest"),
    [
        (4 * LANES, 4, 4, 128, 4),  # neighbours
        (128 * LANES, 4, 32, 128, 4),  # a column of rows of 128 bytes
        (0 * LANES, 4, 1, 4, 1),  # one element for all
        (4 * LANES + 4, 4, 5, 128, 4),  # neighbours that begin within a sector
        (8 * LANES, 4, 8, 128, 4),  # every second element
        (16 * LANES, 16, 16, 512, 16),  # 128-bit loads
        (2 * LANES, 2, 2, 64, 2),  # halves
    ],
)
def test_sectors_and_useful_bytes_of_a_request(offsets, size_bytes, sectors, useful, fewest):
    found = request_of(access(offsets, size_bytes, memory="global", start=START))

    assert (found.sectors, found.useful_bytes, found.fewest_sectors) == (sectors, useful, fewest)
    assert found.useful_share == useful / (32 * sectors)


@pytest.mark.parametrize(
    ("offsets", "size_bytes", "passes", "fewest"),
    [
        (4 * LANES, 4, 1, 1),
        (8 * LANES, 4, 2, 1),  # lanes 0 and 16 meet in bank 0
        (128 * LANES, 4, 32, 1),  # all in bank 0
        (132 * LANES, 4, 1, 1),  # the same column of padded rows
        (0 * LANES, 4, 1, 1),  # one word for all
        (16 * LANES, 16, 4, 4),  # a quarter of the warp at a time
        (128 * LANES, 16, 32, 4),
        (8 * LANES, 8, 2, 2),
    ],
)
def test_wavefronts_of_an_access(offsets, size_bytes, passes, fewest):
    one = access(offsets, size_bytes)
    words = wanted_words(one)

    assert passes_of(one) == (passes, fewest)
    assert max(word.wavefront for word in words) == passes
    assert bool(collisions(words)) == (passes > fewest)


def test_colliding_lanes_are_named_with_their_bank_and_words_take_turns_in_it_only():
    assert collisions(wanted_words(access(8 * LANES)))[0] == (0, (0, 16))
    assert collisions(wanted_words(access([0, 128, 256, 4]))) == [(0, (0, 1, 2))]

    words = {word.lanes: (word.bank, word.turn, word.wavefront) for word in wanted_words(access([0, 128, 4, 4]))}

    assert words == {(0,): (0, 1, 1), (1,): (0, 2, 2), (2, 3): (1, 1, 1)}


@pytest.mark.parametrize("seed", range(20))
def test_last_wavefront_is_the_number_of_passes_whatever_the_addresses(seed):
    generator = np.random.default_rng(seed)
    size_bytes = int(generator.choice([4, 8, 16]))
    lanes = np.flatnonzero(generator.random(32) < 0.8)
    one = access(generator.integers(0, 64, lanes.size) * size_bytes, size_bytes, lanes=lanes)
    taken, _ = passes_of(one)

    assert passes_of(one) == wavefronts(one.addresses, size_bytes, one.lanes)
    assert max(word.wavefront for word in wanted_words(one)) <= taken


def test_elements_of_vectors_and_shared_ones_and_their_sectors_are_found_in_the_array():
    column = access(128 * LANES[:4] + 8, memory="global", start=START)

    assert elements_of(column, MATRIX) == {2: (0,), 34: (1,), 66: (2,), 98: (3,)}
    assert _sector_elements(column, MATRIX) == [(0, 7), (32, 39), (64, 71), (96, 103)]

    both = access([0, 0, 16], 16, memory="global", start=START)

    assert elements_of(both, MATRIX) == dict.fromkeys(range(4), (0, 1)) | dict.fromkeys(range(4, 8), (2,))
    assert elements_of(both, RunArray("B", (8,), 4, 0x9000)) == {}

    small = RunArray("A", (5,), 4, START)

    assert _sector_elements(access([16], memory="global", start=START), small) == [(0, 4)]


@pytest.mark.parametrize(
    ("pitch", "found"),
    [
        (132, (132, 128, 32)),  # a column of 32 rows, each 128 bytes and a word
        (528, (528, 512, 32)),
        (128, None),  # not padded
    ],
)
def test_padding_is_compared_with_rows_without_it(pitch, found):
    assert _unpadded_wavefronts(access(pitch * LANES)) == found


def test_eight_padded_columns_take_one_pass_and_chunks_turned_by_their_line_are_not_taken_for_padding():
    columns, rows = LANES % 8, LANES // 8
    padded = access(528 * columns + 4 * rows)

    assert passes_of(padded)[0] == 1
    assert _unpadded_wavefronts(padded) == (528, 512, 8)
    assert _unpadded_wavefronts(access(4 * LANES)) is None

    lines, chunks = LANES % 8, LANES // 8
    turned = access(512 * lines + 16 * ((chunks + 1) ^ lines) + 4 * (LANES // 8))

    assert _unpadded_wavefronts(turned) is None
