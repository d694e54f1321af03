"""What a stretch of machine code consists of, and the facts of a kernel's main loop that decide the rate it allows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpuexplore.kernels.sass.dataflow import bytes_in_flight, cycles_of_a_pass
from gpuexplore.kernels.sass.instruction import LOADS, STORES, Instruction
from gpuexplore.kernels.sass.loops import main_loop

MULTIPLY_ADDS = ("FFMA", "FFMA2", "DFMA", "HFMA2")
_UNITS = {"FFMA": "fp32", "FFMA2": "fp32", "FADD": "fp32", "FMUL": "fp32", "HFMA2": "fp16_vector"}


@dataclass(frozen=True, slots=True)
class Mix:
    """Counts of instructions, one pass each.

    Attributes:
        instructions: all, which is the issue slots a warp takes.
        multiply_adds: on the ordinary pipes: FFMA, DFMA, HFMA2.
        tensor: on tensor cores.
        loads: by opcode and width, e.g. `LDS.128`.
        stores: the same.
        flops_of_a_warp: a multiply-add counted as 2.
        by_name: all, by opcode without modifiers, the most frequent first.
    """

    instructions: int
    multiply_adds: int
    tensor: int
    loads: Mapping[str, int] = field(hash=False)
    stores: Mapping[str, int] = field(hash=False)
    flops_of_a_warp: int
    by_name: Mapping[str, int] = field(hash=False)

    @property
    def multiply_add_share(self) -> float:
        """Multiply-adds and tensor instructions over all."""
        return (self.multiply_adds + self.tensor) / self.instructions if self.instructions else 0.0

    @property
    def slots_per_multiply_add(self) -> float | None:
        """Issue slots for each multiply-add or tensor instruction; None without any."""
        work = self.multiply_adds + self.tensor
        return self.instructions / work if work else None


def mix_of(instructions: Iterable[Instruction]) -> Mix:
    """Return what these instructions are."""
    every = tuple(instructions)
    return Mix(
        instructions=len(every),
        multiply_adds=sum(instruction.name in MULTIPLY_ADDS for instruction in every),
        tensor=sum(instruction.product is not None for instruction in every),
        loads=_by_width(every, LOADS),
        stores=_by_width(every, STORES),
        flops_of_a_warp=sum(instruction.flops_of_a_warp for instruction in every),
        by_name=dict(Counter(instruction.name for instruction in every).most_common()),
    )


def _by_width(instructions: Iterable[Instruction], names: tuple[str, ...]) -> dict[str, int]:
    found = Counter(f"{each.name}.{each.bits}" for each in instructions if each.name in names)
    return dict(found.most_common())


@dataclass(frozen=True, slots=True)
class LoopFacts:
    """One pass of a kernel's main loop, or of the whole kernel where it has no loop.

    Attributes:
        is_loop: whether it is a loop.
        instructions: issue slots that a warp takes.
        multiply_adds: those of them that are multiply-adds on the ordinary pipes.
        tensor: those on tensor cores.
        flops_of_a_warp: a multiply-add counted as 2.
        unit: column of the accelerators' rates that most of these FLOPs belong to, as of `Product`; None without FLOPs.
        requests: cycles that loads and stores take on a multiprocessor's path to shared memory and the first cache.
        cycles: that a warp with a scheduler to itself takes at least.
        bytes_in_flight: most bytes of device memory that a thread has asked for and not waited for.
        mixed: FLOPs by unit where tensor cores compute and several units do; empty: `unit` does them all.
        open_tiles: products whose tile is known at launch only, so that the largest is counted.
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
    mixed: Mapping[str, int] = field(default_factory=dict, hash=False)
    open_tiles: int = 0

    @property
    def flops(self) -> Mapping[str, int]:
        """FLOPs of a warp by unit; of ordinary units alone all are counted for the one that does most."""
        return self.mixed or ({self.unit: self.flops_of_a_warp} if self.unit else {})

    @property
    def multiply_add_share(self) -> float:
        """Multiply-adds and tensor-core instructions over all."""
        return (self.multiply_adds + self.tensor) / self.instructions


def facts_of(code: Sequence[Instruction]) -> LoopFacts:
    """Return the facts of a kernel's machine code."""
    loop = main_loop(code)
    body = loop.instructions if loop else tuple(code)
    mix = mix_of(body)
    work = _work(body)
    return LoopFacts(
        is_loop=loop is not None,
        instructions=mix.instructions,
        multiply_adds=mix.multiply_adds,
        tensor=mix.tensor,
        flops_of_a_warp=mix.flops_of_a_warp,
        unit=max(work, key=lambda unit: work[unit], default=None),
        requests=_requests(body),
        cycles=cycles_of_a_pass(body),
        bytes_in_flight=bytes_in_flight(body),
        mixed=work if mix.tensor and len(work) > 1 else {},
        open_tiles=sum(each.product is not None and each.product.is_open for each in body),
    )


def _work(body: Sequence[Instruction]) -> dict[str, int]:
    """Return the FLOPs of a warp by the unit that does them."""
    work: Counter[str] = Counter()
    for each in body:
        if flops := each.flops_of_a_warp:
            work[each.product.unit if each.product else _UNITS.get(each.name, "fp64")] += flops
    return dict(work)


def _requests(body: Sequence[Instruction]) -> int:
    """Count one for each, and one for each of the matrices of an `ldmatrix`: however many banks they hit."""
    moving = [each for each in body if each.name in LOADS + STORES]
    return sum((each.bits or 32) // 32 if each.name in ("LDSM", "STSM") else 1 for each in moving)
