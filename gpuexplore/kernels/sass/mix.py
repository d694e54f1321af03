"""What a stretch of machine code consists of."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpuexplore.kernels.sass.instruction import LOADS, STORES, Instruction

MULTIPLY_ADDS = ("FFMA", "FFMA2", "DFMA", "HFMA2")


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
        tensor=sum(instruction.is_tensor for instruction in every),
        loads=_by_width(every, LOADS),
        stores=_by_width(every, STORES),
        flops_of_a_warp=sum(instruction.flops_of_a_warp for instruction in every),
        by_name=dict(Counter(instruction.name for instruction in every).most_common()),
    )


def _by_width(instructions: Iterable[Instruction], names: tuple[str, ...]) -> dict[str, int]:
    found = Counter(f"{each.name}.{each.bits}" for each in instructions if each.name in names)
    return dict(found.most_common())
