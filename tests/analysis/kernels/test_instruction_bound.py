"""The bound of machine code: worked out by hand for made loops, and held against real kernels on real GPUs."""

import math
from math import prod

import pytest

from gpuexplore.analysis.kernels.instruction_bound import flop_per_byte, instruction_bound
from gpuexplore.analysis.kernels.occupancy import occupancy
from gpuexplore.devices import accelerator_named
from gpuexplore.devices.capabilities import capability_of
from gpuexplore.dtypes import DTYPES
from gpuexplore.kernels.sass import facts_of
from gpuexplore.kernels.sass.disassembler import disassembled
from gpuexplore.model import Shape
from gpuexplore.operations import OPERATIONS
from tests.kernels.test_sass import code

H100, A100 = accelerator_named("NVIDIA H100 80GB HBM3"), accelerator_named("NVIDIA A100-SXM4-80GB")
MATMUL = OPERATIONS["matmul"]


def full(gpu, registers=32):
    return occupancy(
        capability_of(gpu), threads_per_block=256, registers_per_thread=registers, shared_bytes_per_block=0
    )


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


def test_shared_memory_serves_one_request_a_cycle_for_four_schedulers():
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


def test_flops_that_are_a_convention_limit_nothing():
    assert flop_per_byte(OPERATIONS["softmax"], Shape.of(m=8, n=8), "fp32") is None
    assert flop_per_byte(OPERATIONS["copy"], Shape.of(n=8), "fp32") is None
    raised = code("LDG.E.128 R4,[R2.64]", *independent(8), "@P0 BRA 0x0", "EXIT")

    assert instruction_bound(facts_of(raised), H100, full(H100), None).flop_per_s is None


def test_nothing_follows_from_code_that_neither_computes_nor_loads():
    bound = instruction_bound(facts_of(code("MOV R1,R2", "EXIT")), H100, full(H100), math.inf)

    assert (bound.flop_per_s, bound.bytes_per_s, bound.bottleneck, bound.evidence) == (None, None, None, "")


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "dtype", "bottleneck", "share"),
    [
        ("numba-cuda-naive", "fp32", "issue", (0.02, 0.1)),
        ("numba-cuda-shared", "fp32", "shared_memory", (0.1, 0.2)),
        ("numba-cuda-vector", "fp32", "issue", (0.7, 0.9)),
        ("numba-cuda-warptile", "fp32", "issue", (0.9, 1.0)),
    ],
)
@pytest.mark.usefixtures("nvdisasm")
def test_rungs_on_an_h100(name, dtype, bottleneck, share):
    pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")
    from gpuexplore.operations.kernel_targets import compile_for, kernel_of

    implementation = MATMUL.implementation_named(name)
    made = compile_for(MATMUL, implementation, DTYPES[dtype], None, "9.0")
    there = occupancy(
        capability_of(H100),
        threads_per_block=prod(kernel_of(MATMUL, implementation).geometry.checked(None)),
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )

    bound = instruction_bound(facts_of(disassembled(made.cubin)), H100, there, math.inf)

    assert bound.bottleneck == bottleneck
    assert share[0] < bound.share_of_peak < share[1]
