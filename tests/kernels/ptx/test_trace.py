import numpy as np

from gpuexplore.kernels.ptx import BlockTrace
from tests.kernels.ptx.snippets import WARP, kernel, launch, pointers

NUMBERS = np.arange(4 * WARP, dtype=np.uint32)


def traced(body, *, threads=WARP, **options):
    trace = BlockTrace((0, 0, 0), 100)
    report = launch(kernel(body), NUMBERS, threads=threads, observer=trace, **options)
    return trace, report


def test_only_lanes_that_act_are_told():
    trace, _ = traced(f"{pointers(1, (4,))} setp.lt.u32 %p0, %r0, 3; @%p0 ld.global.u32 %r4, [%d0];")
    (step,) = trace.steps
    (access,) = step.accesses

    assert access.lanes.tolist() == [0, 1, 2]
    assert np.diff(access.addresses).tolist() == [4, 4]
    assert (access.memory, access.writes, access.size_bytes) == ("global", False, 4)


def test_vectors_count_with_all_their_bytes_and_generic_addresses_with_their_memory():
    trace, _ = traced(
        "mov.u32 %r0, %tid.x; mov.u64 %d4, tile; cvta.shared.u64 %d5, %d4; mul.wide.u32 %d6, %r0, 16;"
        "add.s64 %d7, %d5, %d6; st.v4.u32 [%d7], {%r0, %r0, %r0, %r0};"
    )
    (access,) = trace.steps[0].accesses

    assert (access.memory, access.writes, access.size_bytes) == ("shared", True, 16)
    assert access.addresses.tolist() == [16 * lane for lane in range(WARP)]


def test_asynchronous_copy_reads_only_as_much_as_it_asks_for():
    trace, _ = traced(
        f"{pointers(1, (16,))} mul.lo.u32 %r1, %r0, 16; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;"
        "and.b32 %r3, %r0, 1; mul.lo.u32 %r3, %r3, 16; cp.async.cg.shared.global [%r1], [%d0], 16, %r3;"
        "cp.async.wait_all;"
    )
    (step,) = trace.steps
    read, written = step.accesses

    assert (read.memory, read.writes, read.size_bytes, read.lanes.tolist()) == ("global", False, 16, [*range(1, 32, 2)])
    assert (written.memory, written.writes, written.lanes.size) == ("shared", True, WARP)


def test_rows_of_a_small_matrix_are_pointed_to_by_the_first_lanes():
    trace, _ = traced(
        "mov.u32 %r0, %tid.x; mul.lo.u32 %r1, %r0, 16; mov.u32 %r2, tile; add.u32 %r1, %r1, %r2;"
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r4, %r5}, [%r1];"
    )
    (access,) = trace.steps[0].accesses

    assert access.lanes.tolist() == list(range(16))


def test_barriers_are_steps_and_those_of_a_warp_are_not():
    trace, _ = traced("bar.sync 0; bar.warp.sync 0xffffffff; bar.sync 0;", threads=2 * WARP)

    assert [(step.warp, step.is_barrier, step.others) for step in trace.steps] == [
        (0, True, 0),
        (1, True, 0),
        (0, True, 1),
        (1, True, 1),
    ]


def test_steps_beyond_the_limit_are_counted_and_not_kept():
    trace = BlockTrace((0, 0, 0), 1)
    launch(kernel("bar.sync 0; bar.sync 0;"), NUMBERS, observer=trace)

    assert (len(trace.steps), trace.count) == (1, 2)


def test_other_blocks_are_left_out():
    trace = BlockTrace((1, 0, 0), 10)
    launch(kernel("bar.sync 0;"), NUMBERS, blocks=3, observer=trace)

    assert trace.count == 1
