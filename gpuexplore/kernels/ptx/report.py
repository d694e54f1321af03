"""The report of a run of a kernel: faults, executed instructions, bank conflicts and the final contents of arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.program import Instruction

FaultKind = Literal["out of bounds", "misaligned", "uninitialised read", "race", "barrier"]
SHOWN_THREADS = 8


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a kernel must not do, the first time that an instruction did it.

    Attributes:
        kind: which rule was broken.
        line: of the PTX; 0 where no instruction is to blame.
        text: of the instruction.
        block: index of the block along x, y, z.
        threads: the first few threads of the block that did it.
        about: what happened, a sentence.
    """

    kind: FaultKind
    line: int
    text: str
    block: tuple[int, int, int]
    threads: tuple[int, ...]
    about: str

    def __str__(self) -> str:
        who = ", ".join(map(str, self.threads))
        return f"{self.kind}: {self.about} (line {self.line}: {self.text[:80]}; block {self.block}, threads {who})"


@dataclass(frozen=True, slots=True)
class BankUse:
    """How the accesses of one instruction to shared memory met the 32 banks.

    Attributes:
        accesses: times that a warp executed it.
        wavefronts: passes through the banks that took.
        fewest: passes without any conflict.
    """

    accesses: int
    wavefronts: int
    fewest: int


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """The outcome of a run of a kernel.

    Attributes:
        faults: the first of each kind that each instruction committed, in the order found.
        executed: by opcode with modifiers, how often a warp executed it.
        banks: by line of the PTX, of instructions that access shared memory.
        arrays: contents afterwards, in the order of the arguments.
        unwritten: for each array, how many of its bytes have never been written.
    """

    faults: tuple[Fault, ...]
    executed: Mapping[str, int]
    banks: Mapping[int, BankUse]
    arrays: tuple[npt.NDArray[Any], ...]
    unwritten: tuple[int, ...]

    @property
    def warp_instructions(self) -> int:
        """Instructions that warps executed."""
        return sum(self.executed.values())


@dataclass
class Ledger:
    """What is collected for the report while the kernel runs."""

    code: Sequence[Instruction]
    counts: list[int] = field(init=False)
    faults: dict[tuple[FaultKind, int, str], Fault] = field(default_factory=dict)
    banks: dict[int, list[int]] = field(default_factory=dict)
    block: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.code)

    def blame(self, kind: FaultKind, pc: int, about: str, threads: Sequence[int] | npt.NDArray[Any] = ()) -> None:
        """Note a fault of the instruction at index `pc` of the code, unless it is known already."""
        if (kind, pc, about) in self.faults:
            return
        instruction = self.code[pc]
        first = tuple(int(thread) for thread in np.unique(np.asarray(threads, np.int64))[:SHOWN_THREADS])
        fault = Fault(kind, instruction.line, instruction.text, self.block, first, about)
        self.faults[kind, pc, about] = fault

    def note_banks(self, pc: int, wavefronts: int, fewest: int) -> None:
        """Add one access to shared memory."""
        seen = self.banks.setdefault(pc, [0, 0, 0])
        seen[0] += 1
        seen[1] += wavefronts
        seen[2] += fewest

    def executed(self) -> dict[str, int]:
        """Return executed warp instructions by name, the most frequent first."""
        total: dict[str, int] = {}
        for instruction, count in zip(self.code, self.counts, strict=True):
            if count:
                total[instruction.name] = total.get(instruction.name, 0) + count
        return dict(sorted(total.items(), key=lambda pair: -pair[1]))

    def bank_use(self) -> dict[int, BankUse]:
        """Return the use of the banks by line of the PTX."""
        return {self.code[pc].line: BankUse(*seen) for pc, seen in sorted(self.banks.items())}
