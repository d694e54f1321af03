"""The scheduling in machine code decoded, and the live registers, by hand and on kernels compiled here."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.kernels.files import machine_code, read_cubin
from gpuexplore.kernels.files.machine_code import lines_of_ours
from gpuexplore.kernels.sass import Control, Line, as_text, control_of, controls_of, main_loop, most_live
from gpuexplore.operations import OPERATIONS
from tests.kernels.files.kept import CUBIN, SAXPY_CUBIN
from tests.kernels.test_sass import code
from tests.unchanged import heavy_with

KERNELS = ("vector_add/numba-cuda", "matmul/numba-cuda-shared", "softmax/numba-cuda")
NO_BARRIERS = 7 << 5 | 7 << 8


def heavy_kernel(name):
    operation, _, implementation = name.partition("/")
    return heavy_with(OPERATIONS[operation], OPERATIONS[operation].implementation_named(implementation))


def word(bits):
    return (bits << 105).to_bytes(16, "little")


@pytest.mark.parametrize(
    ("low", "high", "control"),
    [  # of a matmul by ptxas 13.5 for sm_90: S2R, the IMAD.WIDE that waits for another, ISETP with R16.reuse
        (0x00000000000C7919, 0x000E220000002200, Control(1, False, 0, None, (), ())),
        (0x00000005050C7C25, 0x004FC8000F8E020C, Control(4, True, None, None, (2,), ())),
        (0x000000011000780C, 0x041FE40003F26070, Control(2, False, None, None, (0,), (0,))),
    ],
)
def test_instructions_by_hand(low, high, control):
    assert control_of((high << 64 | low).to_bytes(16, "little")) == control


@given(
    st.integers(0, 15),
    st.booleans(),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sets(st.integers(0, 5)),
    st.sets(st.integers(0, 3)),
)
def test_each_field_has_bits_of_its_own(stall, yields, write, read, waits, reuse):
    mask, kept = sum(1 << barrier for barrier in waits), sum(1 << barrier for barrier in reuse)
    bits = stall | (not yields) << 4 | write << 5 | read << 8 | mask << 11 | kept << 17

    assert control_of(word(bits)) == Control(stall, yields, write, read, tuple(sorted(waits)), tuple(sorted(reuse)))


def test_no_barrier_is_none_and_what_is_cut_off_is_left_out():
    assert control_of(word(NO_BARRIERS)) == Control(0, True, None, None, (), ())
    assert list(controls_of(word(NO_BARRIERS) * 2 + b"\0")) == [0, 16]


def test_a_line_is_printed_below_its_header():
    (first, second) = code("LDG.E R0,[R2.64]", "@P0 FADD R1,R0,R0")
    text = as_text(
        [Line(first, Control(4, True, 0, 1, (), ()), 3), Line(second, Control(5, False, None, None, (0, 5), ()))]
    )

    assert text.splitlines() == [
        "live stall yield write read waits   instruction",
        "   3     4     y     0    1 ......  /*0000*/       LDG.E R0, [R2.64]",
        "   –     5     .     .    . 0....5  /*0010*/   @P0 FADD R1, R0, R0",
    ]


def test_counts_of_another_function_are_left_out():
    text = """
.text.other:                     // |     |
        /*0000*/   NOP ;         // |  9  |   |
.text.k:                         // |     |
        /*0000*/   LDC R1, c[0x0][0x28] ;  // |  1  |     |
.L_x_0:                          // |  1  |     |
        /*0010*/   @P0 EXIT ;    // |     |  1  |
        /*0020*/   NOP ;
"""
    assert dict(machine_code._counts(text, "k")) == {0: 1, 16: 0}


def test_a_kernel_too_long_for_the_analysis_has_no_live_registers(monkeypatch):
    def never(*_, **__):
        raise subprocess.TimeoutExpired("nvdisasm", 20)

    monkeypatch.setattr(machine_code, "_program", lambda: "nvdisasm")
    monkeypatch.setattr(machine_code.subprocess, "run", never)

    assert machine_code.live_registers(b"", "k") == {}


def test_most_live_is_unknown_where_no_line_knows():
    (one,) = code("NOP")

    assert most_live([Line(one)]) is None
    assert most_live([Line(one, live=3), Line(one)]) == 3


@pytest.mark.long
@pytest.mark.usefixtures("nvdisasm")
@pytest.mark.parametrize(
    ("name", "capability"),
    [
        pytest.param(name, capability, marks=[] if (name, capability) == (KERNELS[0], "8.0") else heavy_kernel(name))
        for name in KERNELS
        for capability in ("7.5", "8.0", "9.0", "12.0")
    ],
)
def test_scheduling_and_live_registers_of_our_kernels_hold_together(name, capability):
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    from gpuexplore.operations.kernel_targets import compile_for

    operation = OPERATIONS[name.split("/", maxsplit=1)[0]]
    implementation = operation.implementation_named(name.split("/")[1])
    made = compile_for(operation, implementation, DTYPES["fp32"], None, capability)
    lines = lines_of_ours(made.cubin)
    controls = [line.control for line in lines]

    assert made.registers_per_thread / 2 < most_live(lines) <= made.registers_per_thread
    assert read_cubin(made.cubin).kernels[0].registers_per_thread == made.registers_per_thread
    assert all(0 <= control.stall <= 15 for control in controls)
    assert [len(control.reuse) for control in controls] == [line.instruction.operands.count(".reuse") for line in lines]
    released = {barrier for each in controls for barrier in (each.write_barrier, each.read_barrier)}
    assert {barrier for each in controls for barrier in each.waits} <= released


@pytest.mark.usefixtures("nvdisasm")
def test_of_a_cubin_in_an_older_layout_scheduling_is_known_and_live_registers_are_not():
    lines = lines_of_ours(CUBIN.read_bytes())

    assert len(lines) == len(read_cubin(CUBIN.read_bytes()).kernels[0].code) // 16
    assert [len(line.control.reuse) for line in lines] == [line.instruction.operands.count(".reuse") for line in lines]
    assert most_live(lines) is None


@pytest.mark.usefixtures("nvdisasm")
def test_live_registers_of_a_loop_counted_by_hand():
    """R1, the stack, and R0 with the addresses in R6 to R9 live through the loop, the rest from write to use."""
    lines = lines_of_ours(SAXPY_CUBIN.read_bytes())
    through, loop = 6, main_loop([line.instruction for line in lines])
    counted = {
        "IMAD.WIDE R2, R0, 0x4, R6": through + 2,  # R2 and R3
        "IMAD.WIDE R4, R0.reuse, 0x4, R8": through + 4,  # and R4 and R5
        "LDG.E.CONSTANT R2, desc[UR6][R2.64]": through + 4,  # R3 is read here for the last time
        "LDG.E R11, desc[UR6][R4.64]": through + 4,  # R2, R4, R5, R11
        "IADD3 R0, R0, UR4, RZ": through + 4,
        "ISETP.GE.AND P0, PT, R0, UR8, PT": through + 4,
        "FFMA R11, R2, UR5, R11": through + 4,
        "STG.E desc[UR6][R4.64], R11": through + 3,  # without R2
        "@!P0 BRA 0xe0": through,
    }
    inside = [line for line in lines if loop[0].address <= line.instruction.address <= loop[-1].address]

    assert {str(line.instruction).split("*/")[1].strip(): line.live for line in inside} == counted
