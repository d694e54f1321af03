"""What a stretch of machine code consists of, and the facts of a kernel's main loop that decide the rate it allows."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpuexplore.kernels.sass.dataflow import bytes_in_flight, cycles_of_a_pass
from gpuexplore.kernels.sass.instruction import LOADS, STORES, Instruction
from gpuexplore.kernels.sass.loops import main_loop


@dataclass(frozen=True, slots=True)
class Mix:
    """Counts of instructions, one pass each.

    Attributes:
        instructions: all, which is the issue slots a warp takes.
        multiply_adds: on the ordinary units: FFMA, DFMA, HFMA2, without those that move a value or add alone.
        ordinary: all that compute on the ordinary units, by opcode without modifiers.
        tensor: on tensor cores.
        loads: by opcode and width, e.g. `LDS.128`.
        stores: the same.
        flops_of_a_warp: a multiply-add counted as 2.
        by_name: all, by opcode without modifiers, the most frequent first.
    """

    instructions: int
    multiply_adds: int
    ordinary: Mapping[str, int] = field(hash=False)
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
    ordinary = [each for each in every if each.unit and not each.product]
    return Mix(
        instructions=len(every),
        multiply_adds=sum(each.flops_of_a_warp == each.capacity_of_a_warp for each in ordinary),
        ordinary=dict(Counter(each.name for each in ordinary).most_common()),
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
        multiply_adds: those of them that are multiply-adds on the ordinary units.
        tensor: those on tensor cores.
        users: instructions by the unit that computes them, a column of the accelerators' rates, as of `Product`.
        flops: of a warp by unit, a multiply-add counted as 2.
        capacity: FLOPs that each unit does at its peak in that time: more where some add or multiply alone.
        requests: cycles that loads, stores and shuffles take on a multiprocessor's path to shared memory and the first
            cache.
        cycles: that a warp with a scheduler to itself takes at least.
        bytes_in_flight: most bytes of device memory that a thread has asked for and not waited for.
        special: instructions on the special-function units.
        calls: those that call a subroutine, whose instructions are not among these.
        open_tiles: products whose tile is known at launch only, so that the largest is counted.
    """

    is_loop: bool
    instructions: int
    multiply_adds: int
    tensor: int
    users: Mapping[str, int] = field(hash=False)
    flops: Mapping[str, int] = field(hash=False)
    capacity: Mapping[str, int] = field(hash=False)
    requests: int
    cycles: float
    bytes_in_flight: int
    special: int = 0
    calls: int = 0
    open_tiles: int = 0

    @property
    def multiply_add_share(self) -> float:
        """Multiply-adds and tensor-core instructions over all."""
        return (self.multiply_adds + self.tensor) / self.instructions


def facts_of(code: Sequence[Instruction]) -> LoopFacts:
    """Return the facts of a kernel's machine code."""
    loop = main_loop(code)
    body = loop.instructions if loop else tuple(code)
    mix = mix_of(body)
    computing = [(each.unit, each) for each in body if each.unit]
    return LoopFacts(
        is_loop=loop is not None,
        instructions=mix.instructions,
        multiply_adds=mix.multiply_adds,
        tensor=mix.tensor,
        users=_summed((unit, 1) for unit, _ in computing),
        flops=_summed((unit, each.flops_of_a_warp) for unit, each in computing),
        capacity=_summed((unit, each.capacity_of_a_warp) for unit, each in computing),
        special=mix.by_name.get("MUFU", 0),
        calls=mix.by_name.get("CALL", 0),
        requests=_requests(body),
        cycles=cycles_of_a_pass(body),
        bytes_in_flight=bytes_in_flight(body),
        open_tiles=sum(each.product is not None and each.product.is_open for each in body),
    )


def _summed(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for name, count in pairs:
        sums[name] += count
    return dict(sums)


def _requests(body: Sequence[Instruction]) -> int:
    """Count one for each, and one for each of the matrices of an `ldmatrix`: however many banks they hit.

    Shuffles take the same path: https://docs.nvidia.com/nsight-compute/ProfilingGuide/#metrics-decoder, LSU.
    """
    moving = [each for each in body if each.name in (*LOADS, *STORES, "SHFL")]
    return sum((each.bits or 32) // 32 if each.name in ("LDSM", "STSM") else 1 for each in moving)
