"""Loads and stores of every width, the banks they hit, and copies that arrive late."""

import numpy as np
import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.kernels.ptx import parse
from tests.kernels.ptx.snippets import WARP, computed, kernel, launch, pointers

NUMBERS = np.arange(256, dtype=np.uint32)
TILE = "mov.u32 %r2, tile;"


@pytest.mark.parametrize(
    ("kind", "size", "values"),
    [("u8", 1, [1, 254]), ("s8", 1, [1, -2]), ("u16", 2, [1, 65534]), ("s16", 2, [1, -2]), ("b32", 4, [1, 7])],
)
def test_narrow_loads_are_extended_as_their_type_says(kind, size, values):
    raw = np.resize(np.array(values), WARP).astype(f"i{size}" if kind[0] == "s" else f"u{size}")
    text = kernel(f"{pointers(2, (size, 4))} ld.global.{kind} %r4, [%d0]; st.global.b32 [%d1], %r4;", arrays=2)

    report = launch(text, raw, np.zeros(WARP, np.int32))

    assert report.faults == ()
    assert report.arrays[1].tolist() == raw.tolist()


def test_narrow_stores_write_the_low_bits():
    text = kernel(f"{pointers(1, (1,))} add.u32 %r1, %r0, 0x1F0; st.global.u8 [%d0], %r1;")

    report = launch(text, np.zeros(WARP, np.uint8))

    assert report.arrays[0].tolist() == [(0x1F0 + i) % 256 for i in range(WARP)]


@pytest.mark.parametrize(("count", "bits", "register"), [(2, 32, "%r"), (4, 32, "%r"), (2, 64, "%d")])
def test_vectors_are_loaded_and_stored_in_their_order(count, bits, register):
    names = [f"{register}{10 + i}" for i in range(count)]
    size = count * bits // 8
    text = kernel(
        f"{pointers(2, (size, size))} ld.global.v{count}.b{bits} {{{', '.join(names)}}}, [%d0];"
        f"st.global.v{count}.b{bits} [%d1], {{{', '.join(names[::-1])}}};",
        arrays=2,
    )
    given = np.arange(WARP * count, dtype=f"u{bits // 8}")

    report = launch(text, given, np.zeros_like(given))

    assert report.faults == ()
    assert (report.arrays[1].reshape(WARP, count) == given.reshape(WARP, count)[:, ::-1]).all()


def test_generic_addresses_reach_shared_and_device_memory():
    text = kernel(
        f"{pointers(2, (4, 4))} mov.u64 %d4, tile; cvta.shared.u64 %d5, %d4; mul.wide.u32 %d6, %r0, 4;"
        "add.s64 %d7, %d5, %d6; ld.u32 %r4, [%d0]; st.u32 [%d7], %r4; ld.u32 %r5, [%d7]; st.u32 [%d1], %r5;",
        arrays=2,
    )

    report = launch(text, NUMBERS[:WARP], np.zeros(WARP, np.uint32))

    assert report.faults == ()
    assert (report.arrays[1] == NUMBERS[:WARP]).all()


def test_stack_of_a_thread_is_its_own():
    text = kernel(
        f"{pointers(1, (4,))} .local .align 4 .b8 stack[8]; mov.u32 %r3, stack; st.local.u32 [%r3+4], %r0;"
        "ld.local.u32 %r5, [%r3+4]; st.global.u32 [%d0], %r5;"
    )

    assert launch(text, np.zeros(WARP, np.uint32)).arrays[0].tolist() == list(range(WARP))


@pytest.mark.parametrize(
    ("stride", "kind", "registers", "wavefronts", "fewest"),
    [
        (4, "u32", "%r5", 1, 1),
        (8, "u32", "%r5", 2, 1),
        (128, "u32", "%r5", 32, 1),
        (132, "u32", "%r5", 1, 1),
        (0, "u32", "%r5", 1, 1),
        (8, "u64", "%d5", 2, 2),
        (16, "v4.u32", "{%r5, %r6, %r7, %r8}", 4, 4),
        (32, "v4.u32", "{%r5, %r6, %r7, %r8}", 8, 4),
        (0, "v4.u32", "{%r5, %r6, %r7, %r8}", 4, 4),
    ],
)
def test_wavefronts_of_shared_loads_are_counted(stride, kind, registers, wavefronts, fewest):
    text = kernel(
        f"mov.u32 %r0, %tid.x; {TILE} mul.lo.u32 %r3, %r0, {stride}; add.u32 %r4, %r3, %r2;"
        f"ld.shared.{kind} {registers}, [%r4];",
        shared=8192,
    )

    (use,) = launch(text, NUMBERS).banks.values()

    assert (use.accesses, use.wavefronts, use.fewest) == (1, wavefronts, fewest)


def with_open_array():
    """Return a kernel that stores its thread numbers by way of an array of open length, and adds that length."""
    before, after = kernel(
        f"{pointers(1, (4,))} mov.u32 %r2, open; shl.b32 %r3, %r0, 2; add.u32 %r4, %r2, %r3; st.shared.u32 [%r4], %r0;"
        "bar.sync 0; ld.shared.u32 %r5, [%r4]; mov.u32 %r6, %dynamic_smem_size; add.u32 %r7, %r5, %r6;"
        "st.global.u32 [%d0], %r7;",
        shared=1000,
    ).split(".visible")
    arrays = ".extern .shared .align 16 .b8 open[]; .extern .shared .align 4 .b8 other[];"
    return f"{before}{arrays}\n.visible{after}"


def test_array_of_open_length_is_as_long_as_the_launch_says():
    def faults(dynamic):
        return {(fault.kind, fault.threads) for fault in launch(with_open_array(), NUMBERS, dynamic=dynamic).faults}

    report = launch(with_open_array(), NUMBERS, dynamic=128)

    assert report.faults == ()
    assert report.arrays[0][:WARP].tolist() == [128 + i for i in range(WARP)]
    assert faults(124) == {("out of bounds", (31,))}
    assert faults(0) == {("out of bounds", tuple(range(8)))}


def test_arrays_of_open_length_begin_at_one_place_behind_the_others():
    layout = parse(with_open_array()).shared

    assert layout.offsets == {"tile": 0, "open": 1008, "other": 1008}
    assert (layout.bytes_with(0), layout.bytes_with(64)) == (1000, 1072)


def test_more_shared_memory_than_any_gpu_gives_a_block_is_refused():
    with pytest.raises(InvalidInput, match=r"shared memory of 232,496 bytes: a block has at most 232,448"):
        launch(with_open_array(), NUMBERS, dynamic=231_488)


def copying(wait="cp.async.wait_group 0;", *, barrier="bar.sync 0;", length=""):
    """Return a kernel that copies 16 bytes a thread in two groups, and stores what its neighbour copied first."""
    return kernel(
        f"{pointers(2, (16, 4))} {TILE} shl.b32 %r3, %r0, 4; add.u32 %r4, %r2, %r3;"
        f"cp.async.cg.shared.global [%r4], [%d0], 16{length}; cp.async.commit_group;"
        f"cp.async.ca.shared.global [%r4+1024], [%d0], 16; cp.async.commit_group; {wait} {barrier}"
        "xor.b32 %r5, %r3, 16; add.u32 %r6, %r5, %r2; ld.shared.u32 %r7, [%r6]; st.global.u32 [%d1], %r7;",
        arrays=2,
        shared=2048,
    )


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("wait", ["cp.async.wait_group 0;", "cp.async.wait_group 1;", "cp.async.wait_all;"])
def test_copies_that_were_waited_for_are_there_after_a_barrier(wait, copies):
    report = launch(copying(wait), NUMBERS, np.zeros(WARP, np.uint32), copies=copies)

    assert report.faults == ()
    assert report.arrays[1].tolist() == [(i ^ 1) * 4 for i in range(WARP)]


@pytest.mark.parametrize("copies", ["late", "early"])
@pytest.mark.parametrize("wait", ["cp.async.wait_group 2;", ""])
def test_copy_that_was_not_waited_for_is_a_race(wait, copies):
    report = launch(copying(wait), NUMBERS, np.zeros(WARP, np.uint32), copies=copies)

    assert "memory that an asynchronous copy is still writing is read" in {fault.about for fault in report.faults}
    assert (report.arrays[1].tolist() == [(i ^ 1) * 4 for i in range(WARP)]) == (copies == "early")


def test_copy_without_a_barrier_is_a_race_and_one_from_outside_is_out_of_bounds():
    report = launch(copying(barrier=""), NUMBERS, np.zeros(WARP, np.uint32))
    outside = launch(copying(), NUMBERS[:127], np.zeros(WARP, np.uint32))

    assert [fault.about for fault in report.faults] == ["memory written by another thread is read without a barrier"]
    assert [(fault.kind, fault.threads) for fault in outside.faults] == [("out of bounds", (31,))] * 2


@pytest.mark.parametrize("length", [0, 4, 8, 12, 16])
def test_copy_brings_as_many_bytes_as_it_says_and_zeros_after_them(length):
    text = copying(length=f", {length}").replace("ld.shared.u32 %r7, [%r6]", "ld.shared.u32 %r7, [%r6+12]")

    report = launch(text, NUMBERS, np.ones(WARP, np.uint32))

    assert report.faults == ()
    assert report.arrays[1].tolist() == [(i ^ 1) * 4 + 3 if length == 16 else 0 for i in range(WARP)]


def test_lanes_exchange_registers():
    a = np.arange(WARP, dtype=np.uint32) * 3
    lanes = np.arange(WARP)

    swapped = computed("shfl.sync.bfly.b32 {out}, {0}, 5, 31, -1;", a, kind=np.uint32)
    down = computed("shfl.sync.down.b32 {out}|%p1, {0}, 4, 31, -1; @!%p1 mov.u32 {out}, 99;", a, kind=np.uint32)
    up = computed("shfl.sync.up.b32 {out}, {0}, 4, 0, -1;", a, kind=np.uint32)
    first = computed("shfl.sync.idx.b32 {out}, {0}, 7, 31, -1;", a, kind=np.uint32)
    halves = computed("shfl.sync.down.b32 {out}, {0}, 8, 0x101f, -1;", a, kind=np.uint32)

    assert (swapped == a[lanes ^ 5]).all()
    assert down.tolist() == [*a[4:], 99, 99, 99, 99]
    assert up.tolist() == [*a[:4], *a[:-4]]
    assert set(first.tolist()) == {21}
    assert halves.tolist() == [a[i + 8] if i % 16 < 8 else a[i] for i in range(WARP)]


def test_lane_that_takes_no_part_cannot_be_read():
    text = kernel("mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 16; @%p1 shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xFFFF;")

    (fault,) = launch(text, NUMBERS).faults
    assert (fault.kind, fault.about) == ("barrier", "a lane that takes no part is read")


def test_lanes_vote():
    a = np.arange(WARP, dtype=np.uint32)
    compared = "setp.lt.u32 %p1, {0}, 3; "

    ballot = computed(compared + "vote.sync.ballot.b32 {out}, %p1, -1;", a, kind=np.uint32)
    some = computed(compared + "vote.sync.any.pred %p2, %p1, -1; selp.u32 {out}, 1, 0, %p2;", a, kind=np.uint32)
    every = computed(compared + "vote.sync.all.pred %p2, %p1, -1; selp.u32 {out}, 1, 0, %p2;", a, kind=np.uint32)
    active = computed(compared + "mov.u32 {out}, 0; @%p1 activemask.b32 {out};", a, kind=np.uint32)

    assert (set(ballot), set(some), set(every), set(active)) == ({7}, {1}, {0}, {0, 7})


def test_lanes_that_went_apart_meet_again():
    code = (
        "mov.u32 {out}, 0; LOOP: setp.ge.u32 %p1, {out}, {0}; @%p1 bra DONE; add.u32 {out}, {out}, 1; bra.uni LOOP;"
        "DONE: activemask.b32 %r30; setp.eq.b32 %p2, %r30, -1; @!%p2 mov.u32 {out}, 999;"
    )
    a = np.arange(WARP, dtype=np.uint32)[::-1].copy()

    assert (computed(code, a, kind=np.uint32) == a).all()
