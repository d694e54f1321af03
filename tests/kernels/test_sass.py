"""Machine code read: instructions, loops, what they compute and move, and how long a warp takes for them at least."""

import subprocess

import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.files import machine_code
from gpuexplore.kernels.files.machine_code import disassembled
from gpuexplore.kernels.sass import SassInstruction, loops, main_loop, mix_of
from gpuexplore.kernels.sass.instruction import as_tf32
from gpuexplore.kernels.sass.loops import _encloses, bytes_in_flight, cycles_of_a_pass, with_descriptors


def code(*lines):
    """Return instructions from `@P0 BRA 0x10`, 16 bytes apart."""
    made = []
    for index, line in enumerate(lines):
        words = line.split()
        predicate = words.pop(0) if words[0].startswith("@") else ""
        made.append(SassInstruction(index * 16, words[0], words[1] if len(words) > 1 else "", predicate))
    return tuple(made)


NESTED = code(
    "MOV R1,c[0x0][0x28]",
    "LDG.E.128 R8,desc[UR4][R2.64]",  # 0x10, the outer loop
    "LDS.128 R4,[R20]",  # 0x20, the inner one
    "FFMA R12,R4,R5,R12",
    "@P0 BRA 0x20",
    "STS.128 [R21],R8",
    "BRA.U UP0,0x10",
    "EXIT",
    "BRA 0x80",  # to itself: how a kernel's code ends
)


@pytest.mark.parametrize(
    ("opcode", "flops"),
    [
        ("FFMA", 64),
        ("FFMA2", 128),
        ("FADD.FTZ", 32),
        ("DFMA", 64),
        ("HFMA2.BF16_V2", 128),
        ("HMMA.16816.F32.BF16", 2 * 16 * 8 * 16),
        ("HMMA.1688.F32.TF32", 2 * 16 * 8 * 8),
        ("HGMMA.64x128x16.F32.BF16", 2 * 64 * 128 * 16 // 4),
        ("HMMA.884.F32.F32.STEP2", 2 * 8 * 8 * 4),  # a quarter of four tiles
        ("IMMA.SP.168128.S4.S4", 2 * 16 * 8 * 128),
        ("DMMA.16x8x4", 2 * 16 * 8 * 4),
        ("BMMA.88128.XOR.POPC", 2 * 8 * 8 * 128),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", 2 * 16 * 8 * 64),
        ("UTCHMMA", 2 * 128 * 256 * 16),  # the largest, for the descriptor is known at launch only
        ("IMAD.WIDE", 0),
        ("LDG.E.128", 0),
    ],
)
def test_flops_of_a_warp(opcode, flops):
    assert SassInstruction(0, opcode).flops_of_a_warp == flops


@pytest.mark.parametrize(
    ("line", "flops", "capacity"),
    [  # of a warp: what it computes, and what its unit does in the same time
        ("HFMA2.MMA R5,-RZ,RZ,0,2.384185791015625e-07", 0, 0),
        ("HFMA2 R5,-RZ.H0_H0,RZ.H0_H0,1,1", 0, 0),
        ("HFMA2 R5,R4,1,1,RZ", 0, 0),
        ("HADD2.F32 R5,-RZ,R4.H0_H0", 0, 0),  # to fp32
        ("FFMA R5,RZ,RZ,R4", 0, 0),
        ("FADD.FTZ R5,-RZ,|R4|", 0, 0),
        ("FADD R5,RZ,3", 0, 0),
        ("FMUL R5,R4,1", 0, 0),
        ("DADD R4,-RZ,-R6", 0, 0),
        ("IMAD.MOV.U32 R5,RZ,RZ,R4", 0, 0),
        ("HFMA2.BF16_V2 R2,R5,1,1,R2", 64, 128),  # an addition in other words
        ("HFMA2 R2,R5,R4,-RZ", 64, 128),  # a multiplication
        ("HADD2 R2,R5,0,1", 64, 128),  # of its two halves one adds
        ("FFMA R2,R3,1,R4", 32, 64),
        ("FADD R2,R3,1", 32, 64),
        ("FMUL.FTZ R2,R3,1.4426950216293334961", 32, 64),
        ("DADD R2,R4,R6", 32, 64),
        ("FADD2 R2,R4.F32x2.HI_LO,R6.F32x2.HI_LO", 64, 128),
        ("FFMA R2,R3.reuse,c[0x0][0x170],R4", 64, 64),
        ("FFMA R2,R3,R4,1", 64, 64),
        ("HFMA2 R2,R5,R4,1,1", 128, 128),
        ("DMMA.8x8x4 R4,R8,R10,R4", 2 * 8 * 8 * 4, 2 * 8 * 8 * 4),
    ],
)
def test_moves_are_no_flops_and_an_addition_takes_the_time_of_a_multiply_add(line, flops, capacity):
    (found,) = code(line)

    assert (found.flops_of_a_warp, found.capacity_of_a_warp) == (flops, capacity)
    assert (found.unit is None) == (flops == 0)


def test_moves_and_additions_are_no_multiply_adds():
    mix = mix_of(code("HFMA2.MMA R5,-RZ,RZ,0,1", "HFMA2 R2,R5,1,1,R2", "FADD R1,R2,R3", "FFMA R1,R2,R3,R1"))

    assert (mix.multiply_adds, mix.ordinary) == (1, {"HFMA2": 1, "FADD": 1, "FFMA": 1})


@pytest.mark.parametrize(
    ("opcode", "unit", "registers"),
    [  # what nvdisasm 13.5 prints of ptxas' code for 7.0 to 12.1; registers of each factor and of the sums
        ("HMMA.1688.F16", "fp16_tensor_fp16acc", (2, 1, 2)),
        ("HMMA.16816.F32", "fp16_tensor", (4, 2, 4)),
        ("HMMA.SP.16832.F32.BF16", "bf16_tensor:sparse", (4, 4, 4)),
        ("HMMA.1684.F32.TF32", "tf32_tensor", (2, 1, 4)),
        ("IMMA.16832.S8.S8", "int8_tensor_tops", (4, 2, 4)),
        ("IMMA.8832.S4.S4", "int4_tensor", (1, 1, 2)),
        ("BMMA.168256.AND.POPC", "binary_tensor", (4, 2, 4)),
        ("DMMA.884", "fp64_tensor", (2, 2, 4)),
        ("QMMA.16832.F32.E4M3.E5M2", "fp8_tensor", (4, 2, 4)),
        ("QMMA.16832.F16.E4M3.E4M3", "fp8_tensor_fp16acc_or_mx", (4, 2, 2)),
        ("QMMA.SF.16832.F32.E2M1.E2M1.E8", "fp8_tensor_fp16acc_or_mx", (4, 2, 4)),
        ("OMMA.SF.SP.168128.F32.E2M1.E2M1.UE4M3.4X", "fp4_tensor:sparse", (4, 4, 4)),
        ("QGMMA.64x64x32.F32.E4M3.E4M3", "fp8_tensor", (0, 0, 0)),  # nothing waits for its registers
        ("IGMMA.64x64x32.U8.U8", "int8_tensor_tops", (0, 0, 0)),
        ("UTCQMMA.2CTA", "fp8_tensor", (0, 0, 0)),
        ("UTCOMMA.4X", "fp4_tensor", (0, 0, 0)),
    ],
)
def test_products_of_tensor_cores_name_their_unit_and_registers(opcode, unit, registers):
    found = SassInstruction(0, opcode).product

    assert (found.unit, found.registers) == (unit, registers)


@pytest.mark.parametrize("opcode", ["HFMA2.MMA", "UTCBAR", "UTCATOMSWS", "WARPGROUP", "IMAD", "LDTM.x32"])
def test_what_is_named_like_them_is_no_product_of_tensor_cores(opcode):
    assert SassInstruction(0, opcode).product is None


@pytest.mark.parametrize(
    ("opcode", "descriptor", "unit", "flops"),
    [  # M / 16 from bit 24, N / 8 from bit 17, format of a factor from bit 7, sparsity in bit 2
        ("UTCHMMA", 8 << 24 | 16 << 17 | 1 << 7, "bf16_tensor", 2 * 128 * 128 * 16),
        ("UTCHMMA", 4 << 24 | 32 << 17 | 2 << 7, "tf32_tensor", 2 * 64 * 256 * 8),
        ("UTCHMMA.2CTA", 16 << 24 | 32 << 17, "fp16_tensor", 2 * 128 * 256 * 16),
        ("UTCQMMA", 8 << 24 | 16 << 17 | 4, "fp8_tensor:sparse", 2 * 128 * 128 * 64),
        ("UTCIMMA", 8 << 24 | 16 << 17, "int8_tensor_tops", 2 * 128 * 128 * 32),
        ("UTCOMMA.4X", 8 << 24 | 16 << 17, "fp4_tensor", 2 * 128 * 128 * 64),
        ("UTCOMMA.4X", 8 << 24 | 16 << 17 | 1 << 31, "fp4_tensor", 2 * 128 * 128 * 96),
    ],
)
def test_a_descriptor_tells_the_tile_and_format_of_a_product_of_tensor_memory(opcode, descriptor, unit, flops):
    found = SassInstruction(0, opcode, descriptor=descriptor).product

    assert (found.unit, found.flops, found.is_open) == (unit, flops, False)


def test_ptx_says_tf32_where_the_machine_code_does_not():
    unknown = SassInstruction(0, "UTCHMMA", descriptor=as_tf32(None)).product
    known = SassInstruction(0, "UTCHMMA", descriptor=as_tf32(8 << 24 | 16 << 17 | 1 << 7)).product

    assert (unknown.unit, unknown.is_open) == ("tf32_tensor", True)
    assert (known.unit, known.is_open, known.flops) == ("tf32_tensor", False, 2 * 128 * 128 * 8)


PRODUCT = "UTCHMMA gdesc[UR4],gdesc[UR6],tmem[UR9],tmem[UR10],idesc[UR11],UP2"


@pytest.mark.parametrize(
    ("lines", "descriptor"),
    [
        (["UMOV UR11,0x8080490", PRODUCT, "BRA 0x10"], 0x8080490),
        (["ULDC UR11,c[0x0][0x28]", PRODUCT], None),
        (["@UP0 UMOV UR11,0x8080490", PRODUCT], None),
        (["UMOV UR11,0x8080490", "ULDC.64 UR10,c[0x0][0x28]", PRODUCT], None),
        (["UMOV UR11,0x8080490", PRODUCT, "UMOV UR11,0x10", "BRA 0x10"], None),  # another in the next pass
    ],
)
def test_a_descriptor_is_known_where_its_register_holds_one_constant(lines, descriptor):
    (found,) = [each for each in with_descriptors(code(*lines)) if each.product]

    assert found.descriptor == descriptor


def test_repeating_an_instruction_for_other_threads_of_a_warp_is_no_loop():
    waterfall = code("@P0 ELECT P1,URZ,PT", PRODUCT, "@P0 BRA.U.ANY 0x0", "@P1 BRA 0x0", "EXIT")

    assert [loop[-1].address for loop in loops(waterfall)] == [0x30]


@pytest.mark.parametrize(
    ("opcode", "bits"),
    [
        ("LDG.E", 32),
        ("LDG.E.128.CONSTANT", 128),
        ("LDG.E.U16", 16),
        ("STS.64", 64),
        ("LDSM.16.M88.4", 128),
        ("LDSM.16.MT88.4", 128),
        ("LDSM.16.M88.2", 64),
        ("LDGSTS.E.BYPASS.128", 128),
        ("FFMA", None),
    ],
)
def test_bits_that_a_thread_moves(opcode, bits):
    assert SassInstruction(0, opcode).bits == bits


def test_loops_go_from_a_branch_back_to_its_target():
    inner, outer = loops(NESTED)

    assert (inner[0].address, inner[-1].address, outer[0].address, outer[-1].address) == (0x20, 0x40, 0x10, 0x60)
    assert _encloses(outer, inner)
    assert not _encloses(inner, outer)
    assert main_loop(NESTED) == inner


def test_two_branches_to_one_address_are_one_loop():
    (found,) = loops(code("NOP", "@P0 BRA 0x0", "FFMA R1,R2,R3,R1", "@P1 BRA 0x0"))

    assert (found[0].address, found[-1].address) == (0, 0x30)


def test_main_loop_is_the_one_that_computes_most():
    two = code("FFMA R1,R2,R3,R1", "@P0 BRA 0x0", "FFMA R1,R2,R3,R1", "FFMA R4,R2,R3,R4", "@P0 BRA 0x20", "EXIT")

    assert main_loop(two)[0].address == 0x20
    assert main_loop(code("FFMA R1,R2,R3,R1", "EXIT")) is None


def test_inner_loop_counts_as_four_passes_of_the_outer_one():
    few = code(*["FADD R1,R2,R3"] * 7, "FFMA R1,R2,R3,R1", "BRA 0x70", "BRA 0x0", "EXIT")
    many = code(*["FADD R1,R2,R3"] * 9, "FFMA R1,R2,R3,R1", "BRA 0x90", "BRA 0x0", "EXIT")

    assert main_loop(few)[0].address == 0x70
    assert main_loop(many)[0].address == 0x0


def test_loops_inside_the_main_loop_are_left_out_of_it():
    copying = code(
        "HMMA.16816.F32.BF16 R8,R4,R2,R8",
        "LDG.E R40,[R2.64]",  # 0x10, a loop inside that copies edges
        "@P1 BRA 0x10",
        "@P0 BRA 0x0",
        "EXIT",
    )

    assert [each.name for each in main_loop(copying)] == ["HMMA", "BRA"]


def test_of_two_loops_that_do_as_much_the_shorter_counts():
    with_bounds = code(
        "FFMA R1,R2,R3,R1", "ISETP.GE.AND P1,PT,R9,R8,PT", "@P0 BRA 0x0", "FFMA R1,R2,R3,R1", "@P0 BRA 0x30"
    )

    assert main_loop(with_bounds)[0].address == 0x30


def test_mix_counts_by_name_and_width():
    mix = mix_of(NESTED)

    assert (mix.instructions, mix.multiply_adds, mix.tensor) == (9, 1, 0)
    assert (mix.loads, mix.stores) == ({"LDG.128": 1, "LDS.128": 1}, {"STS.128": 1})
    assert mix.by_name["BRA"] == 3
    assert mix.slots_per_multiply_add == 9
    assert mix_of(()).multiply_add_share == 0


def test_a_chain_of_multiply_adds_waits_for_each():
    chain = code("FFMA R1,R2,R3,R1", "FFMA R1,R2,R3,R1")
    apart = code("FFMA R1,R2,R3,R1", "FFMA R4,R2,R3,R4")

    assert cycles_of_a_pass(chain) == 8
    assert cycles_of_a_pass(apart) == 4  # each waits for itself, while the other one starts
    assert cycles_of_a_pass(code(*(f"FFMA R{n},R90,R91,R{n}" for n in range(8)))) == 8  # issue alone


def test_a_load_is_waited_for_where_it_is_used():
    assert cycles_of_a_pass(code("LDS R4,[R20]", "FFMA R1,R4,R3,R1")) == 21
    assert cycles_of_a_pass(code("LDS.128 R4,[R20]", "FFMA R1,R7,R3,R1")) == 21  # the last of four registers
    assert cycles_of_a_pass(code("LDS R4,[R20]", "FFMA R1,R5,R3,R1")) == 4


def test_tensor_cores_wait_for_all_registers_of_their_sums():
    assert cycles_of_a_pass(code("HMMA.16816.F32.BF16 R8,R4,R2,R8")) == 16
    assert cycles_of_a_pass(code("HMMA.16816.F32.BF16 R8,R4,R2,R8", "FADD R20,R11,R11")) == 17


def test_loads_in_flight_end_where_one_is_used():
    one = code("LDG.E.128 R4,[R2.64]", "STG.E.128 [R10.64],R4", "LDG.E.128 R4,[R2.64]", "STG.E.128 [R10.64],R4")
    four = code(*(f"LDG.E.128 R{n},[R2.64]" for n in (4, 8, 12, 16)), "STG.E.128 [R20.64],R4")

    assert bytes_in_flight(one) == 16
    assert bytes_in_flight(four) == 64
    assert bytes_in_flight(code("FFMA R1,R2,R3,R1")) == 0


def test_no_disassembler_is_answered_with_how_to_install_it(monkeypatch):
    monkeypatch.setattr(machine_code, "_packaged", lambda: None)
    monkeypatch.setattr(machine_code.shutil, "which", lambda _: None)

    with pytest.raises(Unsupported, match=r"needs NVIDIA's disassembler, nvdisasm: pip install \"gpuexplore\[sass\]\""):
        disassembled(b"")


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(8, "Exec format error"), "nvdisasm cannot be run: Exec format error"),
        (subprocess.TimeoutExpired("nvdisasm", 60), "nvdisasm took longer than 60 s"),
    ],
)
def test_a_disassembler_that_fails_is_a_sentence(monkeypatch, failure, said):
    def fail(*_, **__):
        raise failure

    monkeypatch.setattr(machine_code, "_program", lambda: "nvdisasm")
    monkeypatch.setattr(machine_code.subprocess, "run", fail)

    with pytest.raises(Unsupported, match=said):
        disassembled(b"\x7fELF")


@pytest.mark.usefixtures("nvdisasm")
def test_what_is_no_machine_code_is_a_sentence():
    with pytest.raises(Unsupported, match="nvdisasm failed: "):
        disassembled(b"not a cubin")
