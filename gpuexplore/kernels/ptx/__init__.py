"""An interpreter of PTX: runs our kernels on a machine without a GPU, and detects faults.

The lanes of a warp are NumPy vectors. Faults are races, and accesses that are out of bounds, misaligned or of
uninitialised memory; times are not modelled.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpuexplore.kernels.ptx.access import lane_bytes, space_named
from gpuexplore.kernels.ptx.decode import OPCODES, Event, Observer
from gpuexplore.kernels.ptx.decoder import items
from gpuexplore.kernels.ptx.machine import LaunchOptions, numba_arguments, run
from gpuexplore.kernels.ptx.memories import (
    BANK_BYTES,
    BANKS,
    BankUse,
    Fault,
    FaultKind,
    LaunchReport,
    wavefronts,
    words_of,
)
from gpuexplore.kernels.ptx.memory import WINDOWS, Grid, addresses_of, element_at, space_of
from gpuexplore.kernels.ptx.numbers import LANES, Values
from gpuexplore.kernels.ptx.program import Instruction, Program, parse
from gpuexplore.kernels.ptx.tensor_cores import ROWS

_Memory = Literal["global", "shared"]


@dataclass(frozen=True, slots=True)
class Access:
    """An access of a warp's lanes to one memory.

    Attributes:
        memory: device memory or shared memory.
        writes: whether they write it.
        size_bytes: of the access of each lane.
        lanes: (lanes,) which of the 32 take part.
        addresses: (lanes,) in bytes, of device memory as a kernel sees them, of shared memory from its start.
    """

    memory: _Memory
    writes: bool
    size_bytes: int
    lanes: Values
    addresses: Values


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A load, a store, an asynchronous copy or a barrier that a warp has executed.

    Attributes:
        number: its position among the steps of the block, from 1.
        warp: index of the warp within the block.
        line: of the PTX.
        text: of the instruction.
        accesses: what it touches; nothing at a barrier, two memories of an asynchronous copy that reads something.
        others: instructions that the warp executed since its step before, none of them a step.
    """

    number: int
    warp: int
    line: int
    text: str
    accesses: tuple[Access, ...]
    others: int

    @property
    def is_barrier(self) -> bool:
        """True if the warp arrives at a barrier."""
        return not self.accesses


@dataclass
class BlockTrace:
    """Keeps the steps of one block; the `observer` of the interpreter's options.

    Attributes:
        block: index of the block along x, y and z.
        most_steps: how many are kept.
        steps: those that are.
        count: how many there were.
    """

    block: tuple[int, int, int]
    most_steps: int
    steps: list[TraceStep] = field(default_factory=list)
    count: int = 0
    _others: Counter[int] = field(default_factory=Counter)

    def __call__(self, event: Event) -> None:
        """Keep what a warp has done, if it is a step of the block."""
        if event.block != self.block:
            return
        accesses = _accesses(event)
        if not accesses and not _is_barrier(event.instruction):
            self._others[event.warp] += 1
            return
        self.count += 1
        others = self._others.pop(event.warp, 0)
        if len(self.steps) < self.most_steps:
            instruction = event.instruction
            step = TraceStep(self.count, event.warp, instruction.line, instruction.text, accesses, others)
            self.steps.append(step)


def _is_barrier(instruction: Instruction) -> bool:
    return instruction.opcode in ("bar", "barrier") and "warp" not in instruction.modifiers


def _accesses(event: Event) -> tuple[Access, ...]:
    """Return the accesses of an event to device memory and shared memory, the source of a copy first."""
    size_bytes = lane_bytes(event.instruction)
    opcode = event.instruction.opcode
    if size_bytes is None or event.addresses is None:
        return ()
    lanes = np.flatnonzero(event.lanes)
    if opcode == "ldmatrix":  # the first lanes point to the rows, however many take part
        lanes = lanes[lanes < ROWS * len(items(event.instruction.operands[0]))]
    addresses = event.addresses[lanes]
    if opcode == "cp":
        if event.sources is None:
            return ()
        sources, lengths = (values[lanes] for values in event.sources)
        reads = [
            Access("global", False, int(length), lanes[lengths == length], sources[lengths == length])
            for length in np.unique(lengths[lengths > 0])
        ]
        return *reads, Access("shared", True, size_bytes, lanes, addresses)
    memory = "shared" if opcode == "ldmatrix" else space_named(event.instruction)
    if memory == "generic":
        memory = space_of(int(addresses[0]))
        addresses = addresses - WINDOWS[memory]
    if memory not in ("global", "shared"):
        return ()
    stores = opcode not in ("ld", "ldmatrix")
    return (Access("global" if memory == "global" else "shared", stores, size_bytes, lanes, addresses),)


__all__ = [
    "BANKS",
    "BANK_BYTES",
    "LANES",
    "OPCODES",
    "Access",
    "BankUse",
    "BlockTrace",
    "Event",
    "Fault",
    "FaultKind",
    "Grid",
    "Instruction",
    "LaunchOptions",
    "LaunchReport",
    "Observer",
    "Program",
    "TraceStep",
    "addresses_of",
    "element_at",
    "numba_arguments",
    "parse",
    "run",
    "wavefronts",
    "words_of",
]
