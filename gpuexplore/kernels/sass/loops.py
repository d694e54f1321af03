"""Loops of machine code: from the target of a branch backwards to the branch."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.kernels.sass.dataflow import bytes_in_flight
from gpuexplore.kernels.sass.instruction import Instruction

INNER_PASSES = 4  # that an inner loop is taken to run in one pass of the outer one


@dataclass(frozen=True, slots=True)
class Loop:
    """The instructions from the first of a loop to the branch back to it."""

    instructions: tuple[Instruction, ...]

    @property
    def first(self) -> int:
        """The address of its first instruction."""
        return self.instructions[0].address

    @property
    def last(self) -> int:
        """The address of its branch."""
        return self.instructions[-1].address

    def holds(self, other: "Loop") -> bool:
        """Return whether another loop lies inside this one."""
        return self != other and self.first <= other.first and other.last <= self.last


def loops(instructions: Sequence[Instruction]) -> tuple[Loop, ...]:
    """Return all loops in the order of their branches; the branch to itself that ends a kernel's code is none."""
    places = {instruction.address: place for place, instruction in enumerate(instructions)}
    found: dict[int, Loop] = {}  # by the first instruction: several branches may continue one loop
    for place, instruction in enumerate(instructions):
        target = instruction.target
        if target is not None and target < instruction.address and target in places:
            found[target] = Loop(tuple(instructions[places[target] : place + 1]))
    return tuple(sorted(found.values(), key=lambda loop: loop.last))


def main_loop(instructions: Sequence[Instruction]) -> Loop | None:
    """Return the loop that computes most, or else loads most, in one pass by itself; None without a loop.

    Loops inside it are left out: they are loops of their own, or copy edges that most passes do not have. Of two that
    do as much it is the one with more loads in flight, then the shorter: a kernel may have one with bounds for edges.
    A loop inside another is taken to run at least four times in a pass of it.
    """
    every = loops(instructions)
    found = max(every, key=lambda loop: _work(_by_itself(loop, every), _depth(loop, every)), default=None)
    return None if found is None else _by_itself(found, every)


def _by_itself(loop: Loop, every: Sequence[Loop]) -> Loop:
    inner = {each.address for other in every if loop.holds(other) for each in other.instructions}
    return Loop(tuple(each for each in loop.instructions if each.address not in inner))


def _depth(loop: Loop, every: Sequence[Loop]) -> int:
    return sum(other.holds(loop) for other in every)


def _work(loop: Loop, depth: int) -> tuple[int, int, int, int]:
    passes = INNER_PASSES**depth
    flops = passes * sum(instruction.flops_of_a_warp for instruction in loop.instructions)
    moved = 0 if flops else passes * sum(instruction.bits or 0 for instruction in loop.instructions)
    return flops, moved, 0 if flops else bytes_in_flight(loop.instructions), -len(loop.instructions)
