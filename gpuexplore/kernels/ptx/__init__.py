"""An interpreter of PTX: runs our kernels on a machine without a GPU, and detects faults.

Blocks run one after the other, and so do the warps of a block, from barrier to barrier. The lanes of a warp are NumPy
vectors. Faults are races, and accesses that are out of bounds, misaligned or of uninitialised memory; times are not
modelled.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from gpuexplore.core.errors import InvalidInput, TooLarge, TooSlow
from gpuexplore.kernels.ptx.access import lane_bytes, smallest_access, space_named
from gpuexplore.kernels.ptx.decode import CONVERGENT, OPCODES, Event, Observer, decoded
from gpuexplore.kernels.ptx.decoder import Decoder, items
from gpuexplore.kernels.ptx.memories import (
    BANK_BYTES,
    BANKS,
    BankUse,
    Fault,
    FaultKind,
    LaunchReport,
    Ledger,
    Memories,
    wavefronts,
    words_of,
)
from gpuexplore.kernels.ptx.memory import (
    WINDOWS,
    Block,
    DeviceMemory,
    Grid,
    SharedMemory,
    addresses_of,
    element_at,
    space_of,
)
from gpuexplore.kernels.ptx.numbers import LANES, Values
from gpuexplore.kernels.ptx.program import Instruction, Program, parse
from gpuexplore.kernels.ptx.tensor_cores import ROWS, expect_same_products
from gpuexplore.kernels.ptx.warp import Warp

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


Arrays = Sequence[np.typing.NDArray[Any]]
MOST_WORK = 1_000_000_000  # thread instructions: a few minutes


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """The options of a kernel's run.

    Attributes:
        unwritten: indices of the arrays without contents yet: reading them before they are written is a fault.
        copies: when asynchronous copies and products arrive: as late as the kernel's waits allow, or at once.
        seed: of the order in which the warps of a block run; None: always the first one first.
        most_work: thread instructions, after which it is given up.
        observer: called with each instruction that a warp has executed.
        arguments: makes the kernel's parameters of the arrays' addresses and the arrays; None: `numba_arguments`.
    """

    unwritten: tuple[int, ...] = ()
    copies: Literal["late", "early"] = "late"
    seed: int | None = None
    most_work: int = MOST_WORK
    observer: Observer | None = None
    arguments: Callable[[Sequence[int], Arrays], list[int]] | None = None


def _numba_arguments(addresses: Sequence[int], arrays: Arrays) -> list[int]:
    """Return arrays in C order as numba-cuda passes them to a kernel.

    For each: two pointers that a kernel never follows, how many elements, the bytes of one, the address of the first,
    then the lengths and the strides of the axes, the latter in bytes.
    """
    return [
        number
        for address, array in zip(addresses, arrays, strict=True)
        for number in (0, 0, array.size, array.itemsize, address, *array.shape, *array.strides)
    ]


def run(program: Program, grid: Grid, arrays: Arrays, options: LaunchOptions | None = None) -> LaunchReport:
    """Run a kernel and return its report; the given arrays stay unchanged.

    Args:
        program: as `parse` returns it.
        grid: blocks, threads of a block, and the shared memory that the launch adds.
        arrays: the arguments, in C order.
        options: how it is run; None: as `LaunchOptions()`.

    Raises:
        InvalidInput: the kernel takes other arguments, or the launch more shared memory than a block has.
        TooLarge: the arrays take more memory than is watched here.
        TooSlow: it would execute, or has executed, more than the options allow.
        Unsupported: an instruction is not known here; the text names it and its line.
    """
    chosen = options or LaunchOptions()
    given = [np.ascontiguousarray(array) for array in arrays]
    with np.errstate(all="ignore"):  # overflows as on the GPU
        machine = _Machine.made(program, grid, given, chosen)
        machine.run()
        return machine.report(given)


@dataclass
class _Machine:
    """A launch on its way."""

    grid: Grid
    options: LaunchOptions
    decoder: Decoder
    part: int
    work: int = 0
    chooser: random.Random | None = field(init=False)

    def __post_init__(self) -> None:
        self.shared_bytes = self.decoder.program.shared.bytes_with(self.grid.dynamic_shared_bytes)
        most_bytes = 232_448  # on compute capability 9.0 and 10.0
        if self.shared_bytes > most_bytes:
            raise InvalidInput(f"shared memory of {self.shared_bytes:,} bytes: a block has at most {most_bytes:,}")
        self.memories = self.decoder.memories
        self.chooser = None if self.options.seed is None else random.Random(self.options.seed)
        self.with_products = any(instruction.opcode == "wgmma" for instruction in self.decoder.program.code)
        self.together = [instruction.opcode in CONVERGENT for instruction in self.decoder.program.code]
        self.steps = decoded(self.decoder, self.options.observer)

    @classmethod
    def made(cls, program: Program, grid: Grid, arrays: Arrays, options: LaunchOptions) -> "_Machine":
        size = sum(array.nbytes for array in arrays)
        most_bytes = 2**26  # the writer of each byte is recorded, which takes 18 times as much
        if size > most_bytes:
            raise TooLarge(f"arrays of {size:,} bytes exceed the interpreter's limit of {most_bytes:,}")
        device = DeviceMemory(arrays, options.unwritten)
        values = (options.arguments or _numba_arguments)(
            [device.address(index) for index in range(len(arrays))], arrays
        )
        if len(values) != len(program.parameters):
            raise InvalidInput(
                f"{len(arrays)} arrays make {len(values)} parameters: the kernel takes {len(program.parameters)}"
            )
        parameters = dict(zip(program.parameters, values, strict=True))
        memories = Memories(device, Ledger(program.code), program.local.size_bytes)
        decoder = Decoder(program, parameters, memories, early=options.copies == "early")
        return cls(grid, options, decoder, smallest_access(program))

    def run(self) -> None:
        """Run every block; the work of all blocks is estimated from the first."""
        x, y, z = self.grid.blocks
        blocks = x * y * z
        for index in range(blocks):
            self._run_block(index)
            if index == 0:
                self._expect_little(self.work * blocks, f"{blocks} blocks like the first")

    def report(self, arrays: Arrays) -> LaunchReport:
        """Return the report of the run."""
        device = self.memories.device
        ledger = self.memories.ledger
        return LaunchReport(
            faults=tuple(ledger.faults.values()),
            executed=ledger.executed(),
            banks=ledger.bank_use(),
            arrays=tuple(device.array(index, array) for index, array in enumerate(arrays)),
            unwritten=tuple(device.unwritten_bytes(index) for index in range(len(arrays))),
        )

    def _run_block(self, index: int) -> None:
        shared = SharedMemory(self.shared_bytes, self.part, with_proxy=self.with_products)
        block = Block(self.grid, index, shared)
        self.memories.ledger.block = block.at
        warps = [Warp(block, number, self.decoder.registers) for number in range(block.warps)]
        while any(not warp.ended for warp in warps):
            order = list(warps)
            if self.chooser is not None:
                self.chooser.shuffle(order)
            for warp in order:
                self._run_warp(warp)
            self._meet(block, warps)
        if self.with_products:
            expect_same_products(self.memories.ledger, warps)

    def _run_warp(self, warp: Warp) -> None:
        """Let a warp go on to its next barrier, or to its end."""
        steps = self.steps
        counts = self.memories.ledger.counts
        together = self.together
        left = before = (self.options.most_work - self.work) // LANES  # warp instructions that may still be executed
        while not (warp.waiting or warp.ended):
            pc = warp.pc
            if together[pc]:
                if not warp.gather():
                    continue
                pc = warp.pc  # where lanes wait at several instructions, the first
            counts[pc] += 1
            warp.pc = pc + 1
            steps[pc](warp, warp.mask)
            if warp.pc >= warp.rejoin:
                warp.meet()
            left -= 1
            if left < 0:
                break
        self.work += (before - left) * LANES
        if left < 0:
            self._expect_little(self.work, "so far")

    def _meet(self, block: Block, warps: Sequence[Warp]) -> None:
        """Let the warps that have arrived at a barrier go on."""
        waiting = [warp for warp in warps if warp.waiting]
        ended = [warp for warp in warps if not warp.alive.all() and (warp.ended or warp.waiting)]
        if waiting and ended:
            gone = np.concatenate([warp.threads[~warp.alive] for warp in ended])
            gone = gone[gone < block.threads]
            if gone.size:
                pc = waiting[0].pc - 1
                self.memories.ledger.blame("barrier", pc, "threads of the block have ended before it", gone)
        block.shared.meet()
        block.phase += 1
        for warp in waiting:
            warp.waiting = False

    def _expect_little(self, work: int, which: str) -> None:
        if work > self.options.most_work:
            most = self.options.most_work
            raise TooSlow(f"{work:,} thread instructions ({which}) exceed the interpreter's limit of {most:,}")
