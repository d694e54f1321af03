"""The bound of machine code: worked out by hand for made loops, and held against real kernels on real GPUs."""

import math
from math import prod

import pytest

from gpuexplore.analysis.occupancy import occupancy
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Shape
from gpuexplore.features.machine_code.analysis import flop_per_byte, instruction_bound
from gpuexplore.features.machine_code.kernel_files import _code_bound
from gpuexplore.hardware import accelerator_named
from gpuexplore.hardware.capabilities import capability_of
from gpuexplore.kernels.files.machine_code import disassembled
from gpuexplore.kernels.sass import facts_of
from gpuexplore.operations import OPERATIONS
from tests.kernels.test_sass import code
from tests.unchanged import heavy_with

H100, A100 = accelerator_named("NVIDIA H100 80GB HBM3"), accelerator_named("NVIDIA A100-SXM4-80GB")
MATMUL = OPERATIONS["matmul"]


def full(gpu, registers=32):
    launch = {"threads_per_block": 256, "shared_bytes_per_block": 0}
    return occupancy(capability_of(gpu), registers_per_thread=registers, **launch)


def independent(count, first=0):
    return [f"FFMA R{n},R250,R251,R{n}" for n in range(first, first + count)]


def test_issue_limits_what_computes_in_one_of_four_instructions():
    loop = code(*independent(8), *(["IADD3 R100,R101,R102,RZ"] * 23), "@P0 BRA 0x0", "EXIT")

    bound = instruction_bound(facts_of(loop), H100, full(H100), math.inf)

    assert bound.bottleneck == "issue"
    assert bound.cycles["issue"] == 32
    assert bound.cycles["multiply_adds"] == 8
    assert bound.share_of_peak == pytest.approx(0.25)
    assert bound.flop_per_s == pytest.approx(0.25 * H100.rates["fp32"])
    said = "32 instructions take as many cycles, 8 of them multiply-adds; the multiply-adds alone take 8"
    assert bound.evidence == f"Instruction issue: {said}"


def test_a_multiprocessor_of_64_lanes_takes_two_cycles_for_each():
    loop = code(*independent(16), "@P0 BRA 0x0", "EXIT")

    assert instruction_bound(facts_of(loop), A100, full(A100), math.inf).cycles["multiply_adds"] == 32
    assert instruction_bound(facts_of(loop), A100, full(A100), math.inf).share_of_peak == 1
    assert instruction_bound(facts_of(loop), H100, full(H100), math.inf).cycles["multiply_adds"] == 16


@pytest.mark.parametrize(
    ("opcode", "gpu", "rate", "bottleneck"),
    [  # 64 in 65 instructions: two cycles each on 16 lanes of a scheduler, one on 32
        ("FADD", A100, 19.5 / 2, "multiply_adds"),
        ("FMUL", A100, 19.5 / 2, "multiply_adds"),
        ("FADD", H100, 66.9 / 2 * 64 / 65, "issue"),
        ("DADD", A100, 9.7 / 2, "multiply_adds"),
        ("DMUL", H100, 33.5 / 2, "multiply_adds"),
        ("HADD2", A100, 78 / 2 * 64 / 65, "issue"),
        ("HADD2.BF16_V2", A100, 39 / 2, "multiply_adds"),
        ("HADD2.BF16_V2", H100, 133.8 / 2 * 64 / 65, "issue"),
    ],
)
def test_additions_alone_reach_half_of_the_peak(opcode, gpu, rate, bottleneck):
    adding = code(*(f"{opcode} R{n},R250,R{n}" for n in range(0, 128, 2)), "@P0 BRA 0x0", "EXIT")

    bound = _code_bound(facts_of(adding), gpu, full(gpu))

    assert bound.bottleneck == bottleneck
    assert bound.flop_per_s == pytest.approx(rate * 1e12, rel=2e-3)
    half = "64 of 65 instructions use them, all to add or to multiply alone, which is half the FLOPs of a multiply-add"
    assert (half in bound.evidence) == (bottleneck == "multiply_adds")


def test_units_that_work_side_by_side_are_bound_by_the_busiest():
    both = code(*independent(16), "DADD R100,R102,R100", "DFMA R104,R106,R108,R104", "@P0 BRA 0x0", "EXIT")
    geforce = accelerator_named("rtx-4090")

    bound = _code_bound(facts_of(both), geforce, full(geforce))

    assert bound.cycles["multiply_adds"] == 128  # two of fp64 at 4 FLOP a clock of a multiprocessor: 2 x 64 / (4 / 4)
    assert bound.evidence.startswith("The fp64 units are the limit: 2 of 19 instructions use them, some to add")


def test_special_functions_take_a_scheduler_eight_cycles_each():
    mixed = code(*(f"MUFU.EX2 R{n},R{n}" for n in range(100, 108)), *independent(8), "@P0 BRA 0x0", "EXIT")
    twice = accelerator_named("b300-sxm-288gb")

    bound = _code_bound(facts_of(mixed), A100, full(A100))

    assert (bound.bottleneck, bound.cycles["special_functions"]) == ("special_functions", 64)
    assert bound.flop_per_s == pytest.approx(19.5e12 * 16 / 64)
    assert "take 64 cycles for 8 multiply-adds; the multiply-adds alone take 16" in bound.evidence
    assert _code_bound(facts_of(mixed), twice, full(twice)).cycles["special_functions"] == 32


def test_a_constant_that_is_loaded_by_a_multiply_add_changes_no_unit():
    streaming = code(
        "HFMA2.MMA R5,-RZ,RZ,0,2.384185791015625e-07",
        "LDG.E R2,[R2.64]",
        "LDG.E R7,[R4.64]",
        "FFMA R7,R2,c[0x0][0x170],R7",
        "STG.E [R4.64],R7",
        "@P0 BRA 0x0",
        "EXIT",
    )

    bound = _code_bound(facts_of(streaming), A100, full(A100))

    assert (bound.units, bound.cycles["multiply_adds"], bound.cycles["shared_memory"]) == ("fp32 units", 2, 12)
    assert bound.flop_per_s == pytest.approx(19.5e12 * 2 / 12, rel=1e-3)


def test_a_loop_that_calls_a_subroutine_says_that_it_is_not_counted():
    calling = ["HFMA2 R5,-RZ,RZ,0,1", "CALL.REL.NOINC 0x100"]

    none = _code_bound(facts_of(code(*calling, "@P0 BRA 0x0", "EXIT")), A100, full(A100))
    some = _code_bound(facts_of(code(*calling, *independent(8), "@P0 BRA 0x0", "EXIT")), A100, full(A100))

    assert none.flop_per_s is None
    assert none.no_rate.endswith(", but calls a subroutine, whose instructions are not counted")
    assert some.evidence.endswith(". It calls a subroutine, whose instructions are not counted")


def test_a_shuffle_and_a_load_of_shared_memory_take_its_path_a_request_a_cycle_for_four_schedulers():
    reducing = code(*(["SHFL.DOWN PT,R100,R101,0x1,0x1f"] * 8), *independent(8), "@P0 BRA 0x0", "EXIT")

    assert _code_bound(facts_of(reducing), H100, full(H100)).cycles["shared_memory"] == 32

    loop = code(*(["LDS R100,[R200]"] * 8), *independent(16), "@P0 BRA 0x0", "EXIT")

    bound = instruction_bound(facts_of(loop), H100, full(H100), math.inf)

    assert (bound.bottleneck, bound.cycles["shared_memory"]) == ("shared_memory", 32)
    assert "8 requests of each of the schedulers take 32 cycles for 16 multiply-adds" in bound.evidence


def test_few_warps_wait_for_a_chain():
    loop = code(*(["FFMA R1,R2,R3,R1"] * 8), "@P0 BRA 0x0", "EXIT")

    bound = instruction_bound(facts_of(loop), H100, full(H100, registers=255), math.inf)

    assert bound.bottleneck == "latency"
    assert "8 multiply-adds take a warp at least 32 cycles, and 2 warps take turns on a scheduler" in bound.evidence


def test_a_copy_is_limited_by_its_loads_in_flight():
    one = code("LDG.E R4,[R2.64]", "STG.E [R10.64],R4", "@P0 BRA 0x0", "EXIT")

    bound = instruction_bound(facts_of(one), H100, full(H100, registers=128), None)

    assert (bound.flop_per_s, bound.bottleneck) == (None, "global_memory")
    warps = full(H100, registers=128).active_warps
    assert bound.bytes_per_s == pytest.approx(min(H100.bandwidth_bytes_per_s, 4 * 32 * warps * 132 / 200e-9))
    assert bound.evidence.startswith("Loads in flight: 4 B per thread, ")


def test_what_has_to_move_limits_an_operation_of_few_flops_for_each_byte():
    added = code("LDG.E.128 R4,[R2.64]", *independent(8), "STG.E.128 [R10.64],R4", "@P0 BRA 0x0", "EXIT")
    intensity = flop_per_byte(OPERATIONS["vector_add"], Shape.of(n=1000), "fp32")

    bound = instruction_bound(facts_of(added), H100, full(H100), intensity)

    assert intensity == 1 / 12
    assert bound.bottleneck == "global_memory"
    assert bound.flop_per_s == bound.roofline_flop_per_s == pytest.approx(H100.bandwidth_bytes_per_s / 12)
    assert bound.evidence.startswith(
        "Global memory: 0.0833 FLOP/byte at 3.35 TB/s allow 279 GFLOP/s, the instructions "
    )


def test_nothing_follows_from_flops_that_are_a_convention_nor_from_code_that_neither_computes_nor_loads():
    assert flop_per_byte(OPERATIONS["softmax"], Shape.of(m=8, n=8), "fp32") is None
    assert flop_per_byte(OPERATIONS["copy"], Shape.of(n=8), "fp32") is None
    raised = code("LDG.E.128 R4,[R2.64]", *independent(8), "@P0 BRA 0x0", "EXIT")
    moved = instruction_bound(facts_of(code("MOV R1,R2", "EXIT")), H100, full(H100), math.inf)

    assert instruction_bound(facts_of(raised), H100, full(H100), None).flop_per_s is None
    assert (moved.flop_per_s, moved.bytes_per_s, moved.bottleneck, moved.evidence) == (None, None, None, "")
    assert moved.no_rate == "it does no floating-point arithmetic and no products on tensor cores"


def bound_of(opcode, gpu, *others):
    row = accelerator_named(gpu)
    products = [f"{opcode} R{n},R200,R210,R{n}" for n in range(0, 64, 4)]
    return _code_bound(facts_of(code(*products, *others, "@P0 BRA 0x0", "EXIT")), row, full(row))


@pytest.mark.parametrize(
    ("opcode", "gpu", "rate", "units"),
    [
        ("QGMMA.64x256x32.F32.E4M3.E4M3", "h100-sxm5-80gb", 1978.9, "fp8 tensor cores"),
        ("IGMMA.64x64x32.S8.S8", "h100-sxm5-80gb", 1978.9, "int8 tensor cores"),
        ("HGMMA.64x64x8.F32.TF32", "h100-sxm5-80gb", 494.7, "tf32 tensor cores"),
        ("DMMA.8x8x4", "h100-sxm5-80gb", 66.9, "fp64 tensor cores"),
        ("DMMA.884", "rtx-3090", 0.556, "fp64 units (it has no fp64 tensor cores)"),
        ("HMMA.16816.F32", "rtx-4090", 165.2, "fp16 tensor cores"),
        ("HMMA.16816.F16", "rtx-4090", 330.3, "fp16 tensor cores with sums in fp16"),
        ("HMMA.16816.F16", "l4", 121.0, "fp16 tensor cores"),  # as fast with either
        ("IMMA.8816.S8.S8", "t4", 130.0, "int8 tensor cores"),
        ("QMMA.16832.F32.E4M3.E4M3", "l40s", 733.0, "fp8 tensor cores"),
        ("QMMA.SF.16832.F32.E4M3.E4M3.E8", "rtx-5090", 838.0, "fp8 tensor cores with block scales or sums in fp16"),
        ("OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X", "rtx-5090", 1676.0, "fp4 tensor cores"),
        ("UTCQMMA", "b200-sxm-180gb", 4500.0, "fp8 tensor cores"),
        ("UTCIMMA", "b300-sxm-288gb", 150.0, "int8 tensor cores"),
        ("UTCOMMA.4X", "b200-sxm-180gb", 9000.0, "fp4 tensor cores"),
    ],
)
def test_products_are_bound_by_the_unit_that_runs_them(opcode, gpu, rate, units):
    bound = bound_of(opcode, gpu)

    assert (bound.bottleneck, bound.units, bound.share_of_peak) == ("tensor_cores", units, 1)
    assert bound.flop_per_s == pytest.approx(rate * 1e12)
    assert bound.rate_unit == ("OP/s" if "int" in units else "FLOP/s")
    assert f"The {units} are the limit: 16 of 17 instructions use them" in bound.evidence


def test_zeros_of_sparse_products_count_twice_and_unscaled_fp8_of_a_geforce_half():
    assert bound_of("HMMA.SP.16832.F32", "a100-sxm4-80gb").flop_per_s == pytest.approx(624e12)
    assert "2:4 sparsity" in bound_of("HMMA.SP.16832.F32", "a100-sxm4-80gb").evidence
    assert bound_of("QMMA.16832.F32.E4M3.E4M3", "rtx-5090").flop_per_s == pytest.approx(419e12)


@pytest.mark.parametrize(
    ("opcode", "gpu", "units"),
    [
        ("IMMA.16864.S4.S4", "a100-sxm4-80gb", "int4 tensor cores for A100 SXM4 80GB"),
        ("BGMMA.64x64x256.AND.POPC", "h100-sxm5-80gb", "tensor cores for single bits for H100 SXM5 80GB"),
        ("HMMA.1688.F32", "gtx-1660-ti", "fp16 tensor cores for GeForce GTX 1660 Ti"),
        ("UTCIMMA", "jetson-agx-thor-t5000", "int8 tensor cores for Jetson AGX Thor T5000"),
    ],
)
def test_without_a_peak_of_the_unit_the_reason_names_it(opcode, gpu, units):
    bound = bound_of(opcode, gpu)

    assert (bound.flop_per_s, bound.bottleneck) == (None, None)
    assert bound.no_rate == f"the table has no peak of {units}"


def test_multiply_adds_beside_products_are_counted_apart():
    bound = bound_of("HMMA.16816.F32.BF16", "a100-sxm4-80gb", *independent(24, first=64))

    said = "16 of 41 instructions use them; the 24 multiply-adds do not"
    assert bound.evidence == f"The bf16 tensor cores are the limit: {said}"
    assert bound.cycles["tensor_cores"] == 16 * 4096 / (2048 / 4)
    assert bound.cycles["multiply_adds"] == 24 * 64 / (128 / 4)


def test_two_kinds_of_products_share_the_tensor_cores():
    bound = bound_of("IMMA.16832.S8.S8", "a100-sxm4-80gb", *(["HMMA.16816.F32 R100,R200,R210,R104"] * 16))

    assert bound.cycles["tensor_cores"] == 2 * 128
    work, seconds = 16 * (8192 + 4096), 16 * (8192 / 624e12 + 4096 / 312e12)
    assert bound.flop_per_s == pytest.approx(work / seconds)
    assert bound.rate_unit == "FLOP/s"


def test_tensor_cores_without_a_loop_are_no_faster_than_their_peak():
    once = code("HMMA.16816.F32 R0,R4,R8,R0", "EXIT")

    bound = _code_bound(facts_of(once), A100, full(A100))

    assert (bound.flop_per_s, bound.bottleneck) == (A100.rates["fp16_tensor"], "tensor_cores")
    assert bound.evidence.endswith("no faster than their peak; the time of code without a loop is unknown")


def test_a_tile_known_at_launch_only_counts_as_the_largest():
    said = ". The tile of 16 is known at launch only: the largest counts"

    assert bound_of("UTCQMMA", "b200-sxm-180gb").evidence.endswith(said)
    assert bound_of("UTCHMMA", "b200-sxm-180gb").evidence.endswith(f"{said}, and fp16, twice as fast as tf32")


RUNGS = {
    "numba-cuda-naive": ("issue", (0.02, 0.1)),
    "numba-cuda-shared": ("shared_memory", (0.1, 0.2)),
    "numba-cuda-vector": ("issue", (0.7, 0.9)),
    "numba-cuda-warptile": ("issue", (0.9, 1.0)),
}


@pytest.mark.long
@heavy_with(MATMUL, *map(MATMUL.implementation_named, RUNGS))
@pytest.mark.parametrize("name", RUNGS)
@pytest.mark.usefixtures("nvdisasm")
def test_rungs_on_an_h100(name):
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    from gpuexplore.operations.kernel_targets import compile_for, kernel_of

    implementation = MATMUL.implementation_named(name)
    made = compile_for(MATMUL, implementation, DTYPES["fp32"], None, "9.0")
    there = occupancy(
        capability_of(H100),
        threads_per_block=prod(kernel_of(MATMUL, implementation).geometry.checked(None)),
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )

    bound = instruction_bound(facts_of(disassembled(made.cubin)), H100, there, math.inf)

    bottleneck, share = RUNGS[name]
    assert bound.bottleneck == bottleneck
    assert share[0] < bound.share_of_peak < share[1]
