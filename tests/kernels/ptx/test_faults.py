"""What a kernel must not do is found; a right kernel has no fault."""

import numpy as np
import pytest

from gpuexplore.core.errors import InvalidInput, TooLarge, TooSlow, Unsupported
from gpuexplore.kernels.ptx import element_at, parse
from tests.kernels.ptx.snippets import WARP, kernel, launch, pointers

NUMBERS = np.arange(64, dtype=np.uint32)
INTO_TILE = "shl.b32 %r1, %r0, 2; mov.u32 %r2, tile; add.u32 %r3, %r2, %r1;"
REVERSED = f"""
    {pointers(2, (4, 4))}
    {INTO_TILE}
    ld.global.u32 %r4, [%d0];
    st.shared.u32 [%r3], %r4;
    bar.sync 0;
    mov.u32 %r5, 252;
    sub.u32 %r6, %r5, %r1;
    add.u32 %r7, %r6, %r2;
    ld.shared.u32 %r8, [%r7];
    st.global.u32 [%d1], %r8;
"""


def kinds(report):
    return {fault.kind for fault in report.faults}


def reverse(text, **options):
    return launch(kernel(text, arrays=2), NUMBERS, np.zeros_like(NUMBERS), threads=64, **options)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_right_kernel_has_no_fault(seed):
    report = reverse(REVERSED, seed=seed)

    assert report.faults == ()
    assert (report.arrays[1] == NUMBERS[::-1]).all()
    assert report.executed["bar.sync"] == 2
    assert report.warp_instructions == sum(report.executed.values())


def test_missing_barrier_is_a_race_that_names_line_and_threads():
    report = reverse(REVERSED.replace("bar.sync 0;", ""))

    assert kinds(report) == {"race", "uninitialised read"}
    races = {fault.text: fault for fault in report.faults if fault.kind == "race"}
    assert set(races) == {"st.shared.u32 [%r3], %r4", "ld.shared.u32 %r8, [%r7]"}
    assert "memory written by another thread is read without a barrier" in str(races["ld.shared.u32 %r8, [%r7]"])
    assert races["st.shared.u32 [%r3], %r4"].threads == tuple(range(32, 40))


@pytest.mark.parametrize("address", ["shared.u32 [tile]", "global.u32 [%d0]"])
@pytest.mark.parametrize(("value", "races"), [("7", 0), ("%r0", 31), ("%r1", 16)])
def test_threads_of_a_warp_may_write_one_value_to_one_address(address, value, races):
    text = kernel(f"{pointers(1)} and.b32 %r1, %r0, 1; mov.u32 %r2, {value}; st.{address}, %r2;")

    found = launch(text, NUMBERS).faults

    assert [len(fault.threads) for fault in found] == ([min(races, 8)] if races else [])
    assert all(fault.about == "threads of a warp write different values to one address at once" for fault in found)


def test_writing_over_what_others_read_is_a_race():
    report = reverse(REVERSED + "st.shared.u32 [%r3], %r8;")

    assert "memory read by another thread is written without a barrier" in [fault.about for fault in report.faults]


def test_threads_of_two_blocks_that_write_one_address_race():
    text = kernel(f"{pointers(1, (4,))} st.global.u32 [%d0], %r0;")

    assert launch(text, NUMBERS).faults == ()
    assert kinds(launch(text, NUMBERS, blocks=2)) == {"race"}


NEIGHBOUR = """
    ld.param.u64 %d1, [p4];
    xor.b32 %r0, %r0, 32;
    mul.wide.u32 %d20, %r0, 4;
    add.s64 %d1, %d1, %d20;
"""


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        ("st.global.u32 [%d0], %r0;", "ld.global.u32 %r5, [%d1];", "memory written by another thread is read without"),
        ("ld.global.u32 %r5, [%d0];", "st.global.u32 [%d1], %r0;", "memory read by another thread is written without"),
    ],
)
def test_device_memory_that_two_warps_share_needs_a_barrier(first, then, said):
    text = kernel(f"{pointers(1, (4,))} {NEIGHBOUR} {first} bar.sync 0; {then}")

    assert launch(text, NUMBERS, threads=64).faults == ()
    assert any(said in fault.about for fault in launch(text.replace("bar.sync 0;", ""), NUMBERS, threads=64).faults)


@pytest.mark.parametrize("barrier", ["", "bar.sync 0;"])
def test_no_barrier_orders_two_blocks(barrier):
    text = kernel(f"{pointers(1)} ld.global.u32 %r5, [%d0]; {barrier} st.global.u32 [%d0+4], %r0; @%p0 ret;")
    only_first = text.replace("st.global", "setp.eq.u32 %p0, %r0, 0; @%p0 st.global")

    assert launch(only_first, NUMBERS).faults == ()
    both = launch(only_first.replace("[%d0];", "[%d0+4];", 1), NUMBERS, blocks=2)
    assert {"memory written by another thread is read without a barrier"} <= {fault.about for fault in both.faults}


def test_what_was_never_written_is_an_uninitialised_read():
    assert kinds(reverse(REVERSED.replace("st.shared.u32 [%r3], %r4;", ""))) == {"uninitialised read"}
    text = kernel(f"{pointers(2, (4, 4))} ld.global.u32 %r4, [%d0]; st.global.u32 [%d1], %r4;", arrays=2)

    assert launch(text, NUMBERS, NUMBERS, unwritten=(1,)).faults == ()
    assert kinds(launch(text, NUMBERS, NUMBERS, unwritten=(0,))) == {"uninitialised read"}
    assert launch(text, NUMBERS, NUMBERS, unwritten=(1,)).unwritten == (0, 4 * 32)


@pytest.mark.parametrize(
    ("access", "threads"),
    [
        ("ld.global.u32 %r4, [%d0+8];", (31,)),
        ("st.global.u32 [%d0+-4], %r0;", (0,)),
        ("ld.shared.u32 %r4, [%r3+960];", tuple(range(16, 24))),
    ],
)
def test_access_out_of_bounds_names_its_threads(access, threads):
    report = launch(kernel(f"{pointers(1, (4,))} {INTO_TILE} {access}"), NUMBERS[:33])

    found = [fault for fault in report.faults if fault.kind == "out of bounds"]
    assert [fault.threads for fault in found] == [threads]


def test_misaligned_access_is_found():
    text = kernel(f"{pointers(1, (4,))} ld.global.v2.u32 {{%r4, %r5}}, [%d0];")

    (fault,) = launch(text, NUMBERS).faults
    assert fault.kind == "misaligned"
    assert fault.threads == (1, 3, 5, 7, 9, 11, 13, 15)
    assert "line" in str(fault)


def test_barrier_that_some_lanes_do_not_reach_is_found():
    divergent = "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 8; @%p1 bra OVER; bar.sync 0; OVER: add.u32 %r1, %r0, 1;"
    ended = "mov.u32 %r0, %tid.x; setp.lt.u32 %p1, %r0, 32; @%p1 ret; bar.sync 0;"

    assert kinds(launch(kernel(divergent), NUMBERS)) == {"barrier"}
    assert kinds(launch(kernel(ended), NUMBERS, threads=64)) == {"barrier"}


@pytest.mark.parametrize(
    ("instruction", "about"),
    [
        ("mbarrier.init.b64 [%r1], 1", r"line 13 of the PTX cannot be run here: mbarrier\.init\.b64"),
        ("bar.sync 1, 64", "a barrier of another number"),
        ("ld.global.v4.b64 {%d4, %d5, %d6, %d7}, [%d0]", r"ld\.global\.v4\.b64: 32 bytes at a time"),
        ("add.f8 %r1, %r2, %r3", r"the modifier \.f8 of add is not known here"),
        ("add.cc.u32 %r1, %r2, %r3", r"the modifier \.cc of add is not known here"),
        ("fma.rn.relu.f16 %h1, %h2, %h3, %h4", r"the modifier \.relu of fma is not known here"),
        ("min.xorsign.abs.f32 %f1, %f2, %f3", r"the modifier \.xorsign of min is not known here"),
        ("ld.global.v8.f32 %f1, [%d0]", r"the modifier \.v8 of ld is not known here"),
        ("cvt.rn.satfinite.f16.f32 %h1, %f1", r"the modifier \.satfinite of cvt is not known here"),
        ("cvt.rn.relu.bf16x2.f32 %r1, %f1, %f2", r"the modifier \.relu of a conversion of two numbers"),
        ("cvt.rna.relu.tf32.f32 %r1, %f2", r"the modifier \.relu of a conversion to tf32"),
        ("mad.hi.sat.s32 %r1, %r2, %r3, %r4", "saturation of a product of whole numbers"),
        ("sub.sat.s32 %r1, %r2, %r3", "saturation of a difference of whole numbers"),
        ("add.ftz.bf16 %h1, %h2, %h3", "zeros for subnormal numbers of bf16"),
        ("rcp.approx.ftz.f64 %x1, %x2", "which keeps 20 bits of the fraction"),
        ("bar.red.popc.u32 %r1, 0, %p1", r"the modifier \.red of bar is not known here"),
        ("bar.arrive 1, 64", r"the modifier \.arrive of bar is not known here"),
        ("fence.proxy.tensormap::generic.release.gpu", r"the modifier \.tensormap::generic of fence is not known"),
        ("cp.async.bulk.shared::cluster.global [%r1], [%d0], 16", r"the modifier \.bulk of cp is not known here"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %r1, %r2, %r3, %r4", r"\(mma\.sync\.aligned\.m8n8k4"),
    ],
)
def test_instruction_or_modifier_that_is_not_known_is_named(instruction, about):
    with pytest.raises(Unsupported, match=about):
        launch(kernel(f"{instruction};"), NUMBERS)


def test_text_without_a_kernel_and_other_arguments_are_refused():
    with pytest.raises(InvalidInput, match="PTX without a kernel"):
        parse(".version 8.0")
    with pytest.raises(InvalidInput, match=r"line 13 of the PTX is not understood: \.branchtargets A, B"):
        parse(kernel(".branchtargets A, B;"))
    with pytest.raises(InvalidInput, match="2 arrays make 14 parameters: the kernel takes 7"):
        launch(kernel(""), NUMBERS, NUMBERS)


def test_launches_that_take_too_long_or_too_much_are_refused_with_both_figures():
    with pytest.raises(
        TooSlow, match=r"10,016 thread instructions \(so far\) exceed the interpreter\'s limit of 10,000"
    ):
        launch(kernel("AGAIN: bra AGAIN;"), NUMBERS, most_work=10_000)
    with pytest.raises(TooSlow, match=r"64,000 thread instructions \(1000 blocks like the first\)"):
        launch(kernel("mov.u32 %r0, %tid.x;"), NUMBERS, blocks=1000, most_work=10_000)
    with pytest.raises(TooLarge, match=r"arrays of 67,108,865 bytes exceed the interpreter's limit of 67,108,864"):
        launch(kernel(""), np.zeros(2**26 + 1, np.uint8))


def test_lines_of_the_source_are_no_part_of_the_instructions_after_them():
    text = kernel('mov.u32 %r0, 1;\n.loc 1 14 3\nadd.u32 %r1, %r0, 1;\n.pragma "nounroll";')

    assert [instruction.name for instruction in parse(text).code] == ["mov.u32", "add.u32", "ret", "ret"]


def test_arrays_that_are_passed_stay_as_they_are():
    given = NUMBERS.copy()
    report = launch(kernel(f"{pointers(1, (4,))} st.global.u32 [%d0], 7;"), given)

    assert (given == NUMBERS).all()
    assert report.arrays[0][:WARP].tolist() == [7] * WARP


def test_observer_sees_each_instruction_with_its_lanes_and_addresses():
    seen = []
    text = kernel(f"{pointers(1, (4,))} setp.lt.u32 %p1, %r0, 4; @%p1 st.global.u32 [%d0], 7;")
    launch(text, NUMBERS, observer=seen.append)

    (store,) = [event for event in seen if event.instruction.opcode == "st"]
    assert np.flatnonzero(store.lanes).tolist() == [0, 1, 2, 3]
    assert [element_at(int(address), [NUMBERS]) for address in store.addresses] == [(0, i) for i in range(WARP)]
    assert element_at(int(store.addresses[0]) - 4, [NUMBERS]) is None
    assert (store.block, store.warp) == ((0, 0, 0), 0)
