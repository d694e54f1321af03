"""Atomic updates of device and shared memory against NumPy, and what races with them."""

import numpy as np
import pytest

from gpuexplore.core.errors import Unsupported
from tests.kernels.ptx.snippets import WARP, kernel, launch, pointers

RANDOM = np.random.default_rng(14)
THREADS = 2 * WARP
WORDS = 8  # that the threads update, each several times
CASES = {
    "add.u32": (np.uint32, np.add),
    "add.s32": (np.int32, np.add),
    "add.u64": (np.uint64, np.add),
    "add.f64": (np.float64, np.add),
    "min.s32": (np.int32, np.minimum),
    "max.u32": (np.uint32, np.maximum),
    "max.s64": (np.int64, np.maximum),
    "and.b32": (np.uint32, np.bitwise_and),
    "or.b64": (np.uint64, np.bitwise_or),
    "xor.b32": (np.uint32, np.bitwise_xor),
}


def numbers(kind, count):
    if np.issubdtype(kind, np.floating):
        return RANDOM.integers(-1000, 1000, count).astype(kind)  # whole: the order of a sum does not matter
    limits = np.iinfo(kind)
    return RANDOM.integers(limits.min, limits.max, count, kind, endpoint=True)


def updating(update, size, *, before="", extra="", opcode="red", space="global"):
    """Return a kernel in which thread i updates word i % WORDS by its number."""
    register = "%r9" if size == 4 else "%d9"
    old = f"{'%r8' if size == 4 else '%d8'}, " if opcode == "atom" else ""
    after = f"st.global.b{8 * size} [%d2], {old[:-2]};" if opcode == "atom" else ""
    into = "[%d5]" if space == "global" else "[%r4]"
    return kernel(
        f"{pointers(3, (0, size, size))} and.b32 %r3, %r0, {WORDS - 1}; mul.wide.u32 %d6, %r3, {size};"
        f"add.s64 %d5, %d0, %d6; mov.u32 %r2, tile; mul.lo.u32 %r4, %r3, {size}; add.u32 %r4, %r4, %r2;"
        f"ld.global.b{8 * size} {register}, [%d1]; {before}"
        f"{opcode}.{space}.{update} {old}{into}, {register}{extra}; {after}",
        arrays=3,
    )


def run_on(text, start, values, *, blocks=1):
    return launch(text, start, values, np.zeros(values.size, values.dtype), threads=THREADS, blocks=blocks)


@pytest.mark.parametrize("update", CASES)
def test_device_memory_is_updated_by_every_thread(update):
    kind, function = CASES[update]
    start, values = numbers(kind, WORDS), numbers(kind, THREADS)

    report = run_on(updating(update, kind().nbytes), start, values)

    assert report.faults == ()
    with np.errstate(over="ignore"):
        expected = function(start, function.reduce(values.reshape(-1, WORDS), axis=0, dtype=kind))
    assert report.arrays[0].tolist() == expected.tolist()


def test_what_was_there_before_is_returned():
    values = np.ones(THREADS, np.uint32)

    report = run_on(updating("add.u32", 4, opcode="atom"), np.zeros(WORDS, np.uint32), values)

    found = report.arrays[2].reshape(-1, WORDS)
    assert report.faults == ()
    assert np.sort(found, axis=0).tolist() == [[i] * WORDS for i in range(THREADS // WORDS)]


@pytest.mark.parametrize(
    ("update", "start", "given", "expected"),
    [
        ("exch.b32", 2, 5, 5),
        ("inc.u32", 1, 2, 2),
        ("inc.u32", 2, 2, 0),
        ("dec.u32", 3, 5, 2),
        ("dec.u32", 0, 5, 5),
        ("dec.u32", 7, 5, 5),
    ],
)
def test_exchange_and_counters_that_wrap_around(update, start, given, expected):
    alone = "setp.ne.u32 %p1, %r0, 0; @%p1 ret;"
    text = updating(update, 4, opcode="atom", before=alone)

    report = run_on(text, np.full(WORDS, start, np.uint32), np.full(THREADS, given, np.uint32))

    assert (report.arrays[2][0], report.arrays[0][0]) == (start, expected)


def test_swap_succeeds_for_one_thread_of_many():
    values = np.zeros(THREADS, np.uint32)  # expected: 0; new: the number of the thread and 1
    text = updating("cas.b32", 4, opcode="atom", before="add.u32 %r7, %r0, 1;", extra=", %r7")

    report = run_on(text, np.zeros(WORDS, np.uint32), values)

    found = report.arrays[2].reshape(-1, WORDS)
    assert ((found == 0).sum(axis=0) == 1).all()
    assert (report.arrays[0] > 0).all()
    assert (report.arrays[0] == found.max(axis=0)).all()


def test_pairs_of_narrow_numbers_are_added():
    values = np.full(2 * THREADS, 0.5, np.float16).view(np.uint32)

    report = run_on(updating("add.noftz.f16x2", 4), np.zeros(WORDS, np.uint32), values)

    assert report.arrays[0].view(np.float16).tolist() == [0.5 * THREADS / WORDS] * 2 * WORDS


def test_small_sums_of_fp32_are_zeros_in_device_memory():
    tiny = np.full(THREADS, 1e-40, np.float32)

    assert not run_on(updating("add.f32", 4), np.zeros(WORDS, np.float32), tiny).arrays[0].any()


IN_TILE = "setp.lt.u32 %p1, %r0, 8; mov.u32 %r6, 0; @%p1 st.shared.u32 [%r4], %r6;"


def test_shared_memory_is_updated_and_read_after_a_barrier():
    text = updating("add.u32", 4, space="shared", before=f"{IN_TILE} bar.sync 0;").replace(
        "    ret;\n}", "bar.sync 0; ld.shared.u32 %r5, [%r4]; st.global.u32 [%d2], %r5; ret;\n}"
    )

    report = run_on(text, np.zeros(WORDS, np.uint32), np.ones(THREADS, np.uint32))

    assert report.faults == ()
    assert report.arrays[2].tolist() == [THREADS // WORDS] * THREADS


@pytest.mark.parametrize(
    ("before", "after", "about"),
    [
        (IN_TILE, "", "memory written by another thread is updated without a barrier"),
        ("", "", "memory that was never written is updated"),
        (
            f"{IN_TILE} bar.sync 0; ld.shared.u32 %r5, [tile+4];",
            "",
            "memory read by another thread is updated without a barrier",
        ),
        (
            f"{IN_TILE} bar.sync 0;",
            "ld.shared.u32 %r5, [%r4];",
            "memory written by another thread is read without a barrier",
        ),
        (
            f"{IN_TILE} bar.sync 0;",
            "st.shared.u32 [%r4], %r5;",
            "memory written by another thread is written without a barrier",
        ),
    ],
)
def test_what_races_with_an_update_of_shared_memory_is_found(before, after, about):
    text = updating("add.u32", 4, space="shared", before=before).replace("    ret;\n}", f"{after} ret;\n}}")

    report = run_on(text, np.zeros(WORDS, np.uint32), np.ones(THREADS, np.uint32))

    assert about in {fault.about for fault in report.faults}


def test_plain_write_races_with_updates_of_other_blocks():
    text = updating("add.u32", 4, before="st.global.u32 [%d5], 0;")

    assert {fault.kind for fault in run_on(text, np.zeros(WORDS, np.uint32), np.ones(THREADS, np.uint32)).faults} == {
        "race"
    }


def test_updates_of_several_blocks_do_not_race():
    values = np.ones(THREADS, np.uint32)

    report = run_on(updating("add.u32", 4), np.zeros(WORDS, np.uint32), values, blocks=3)

    assert report.faults == ()
    assert report.arrays[0].tolist() == [3 * THREADS // WORDS] * WORDS


@pytest.mark.parametrize("update", ["add.b32", "min.f32", "inc.s32", "cas.u32", "exch.b32"])
def test_update_that_the_isa_does_not_list_is_named(update):
    with pytest.raises(Unsupported, match=rf"\(red\.global\.{update}\)"):
        run_on(updating(update, 4), np.zeros(WORDS, np.uint32), np.ones(THREADS, np.uint32))
