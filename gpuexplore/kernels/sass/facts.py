"""What decides the rate that machine code allows, as numbers: kept beside registers and spills."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.kernels.sass.dataflow import bytes_in_flight, cycles_of_a_pass
from gpuexplore.kernels.sass.instruction import LOADS, STORES, Instruction
from gpuexplore.kernels.sass.loops import main_loop
from gpuexplore.kernels.sass.mix import mix_of

_UNITS = {"FFMA": "fp32", "FFMA2": "fp32", "FADD": "fp32", "FMUL": "fp32", "HFMA2": "fp16_vector"}
_TENSOR_UNITS = (("TF32", "tf32_tensor"), ("BF16", "bf16_tensor"), ("F64", "fp64_tensor"))


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """One pass of a kernel's main loop, or of the whole kernel where it has no loop.

    Attributes:
        is_loop: whether it is a loop.
        instructions: issue slots that a warp takes.
        multiply_adds: those of them that are multiply-adds on the ordinary pipes.
        tensor: those on tensor cores.
        flops_of_a_warp: a multiply-add counted as 2.
        unit: column of the accelerators' rates that most of these FLOPs belong to; None without FLOPs.
        requests: cycles that loads and stores take on a multiprocessor's path to shared memory and the first cache.
        cycles: that a warp with a scheduler to itself takes at least.
        bytes_in_flight: most bytes of device memory that a thread has asked for and not waited for.
    """

    is_loop: bool
    instructions: int
    multiply_adds: int
    tensor: int
    flops_of_a_warp: int
    unit: str | None
    requests: int
    cycles: float
    bytes_in_flight: int

    @property
    def multiply_add_share(self) -> float:
        """Multiply-adds and tensor-core instructions over all."""
        return (self.multiply_adds + self.tensor) / self.instructions


def facts_of(code: Sequence[Instruction]) -> LoopFacts:
    """Return the facts of a kernel's machine code."""
    loop = main_loop(code)
    body = loop.instructions if loop else tuple(code)
    mix = mix_of(body)
    return LoopFacts(
        is_loop=loop is not None,
        instructions=mix.instructions,
        multiply_adds=mix.multiply_adds,
        tensor=mix.tensor,
        flops_of_a_warp=mix.flops_of_a_warp,
        unit=_unit(body),
        requests=_requests(body),
        cycles=cycles_of_a_pass(body),
        bytes_in_flight=bytes_in_flight(body),
    )


def _unit(body: Sequence[Instruction]) -> str | None:
    work: dict[str, int] = {}
    for instruction in body:
        if flops := instruction.flops_of_a_warp:
            work[_column(instruction)] = work.get(_column(instruction), 0) + flops
    return max(work, key=lambda column: work[column], default=None)


def _column(instruction: Instruction) -> str:
    if instruction.is_tensor:
        return next((column for kind, column in _TENSOR_UNITS if kind in instruction.opcode), "fp16_tensor")
    return _UNITS.get(instruction.name, "fp64")


def _requests(body: Sequence[Instruction]) -> int:
    """Count one for each, and one for each of the matrices of an `ldmatrix`: however many banks they hit."""
    moving = [each for each in body if each.name in LOADS + STORES]
    return sum((each.bits or 32) // 32 if each.name in ("LDSM", "STSM") else 1 for each in moving)
