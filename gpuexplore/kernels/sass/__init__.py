"""The machine code (SASS) of a kernel, from its cubin, by NVIDIA's disassembler; no GPU is needed."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gpuexplore.kernels.sass.instruction import INSTRUCTION_BYTES, LOADS, STORES, SassInstruction
from gpuexplore.kernels.sass.loops import Loop, bytes_in_flight, cycles_of_a_pass, loops, main_loop

# What a stretch of machine code consists of, and the facts of a kernel's main loop that decide the rate it allows.


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


def mix_of(instructions: Iterable[SassInstruction]) -> Mix:
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


def _by_width(instructions: Iterable[SassInstruction], names: tuple[str, ...]) -> dict[str, int]:
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
        users: instructions by the unit that computes them, a column of the accelerators' rates, as of `TensorProduct`.
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


def facts_of(code: Sequence[SassInstruction]) -> LoopFacts:
    """Return the facts of a kernel's machine code."""
    loop = main_loop(code)
    body = loop if loop else tuple(code)
    mix = mix_of(body)
    computing = [(each.unit, each) for each in body if each.unit]
    moving = [each for each in body if each.name in (*LOADS, *STORES, "SHFL")]
    requests = sum((each.bits or 32) // 32 if each.name in ("LDSM", "STSM") else 1 for each in moving)
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
        requests=requests,
        cycles=cycles_of_a_pass(body),
        bytes_in_flight=bytes_in_flight(body),
        open_tiles=sum(each.product is not None and each.product.is_open for each in body),
    )


def _summed(pairs: Iterable[tuple[str, int]]) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for name, count in pairs:
        sums[name] += count
    return dict(sums)


# Machine code as it is printed: each instruction with its scheduling and the registers that are live there.
#
# A compiler writes the scheduling into bits 105 to 125 of the 128 of an instruction: from the lowest 4 bits stall
# count, 1 yield, 3 write barrier, 3 read barrier, 6 wait mask, 4 operand reuse; on every compute capability from 7.0
# on. NVIDIA documents none of it: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
# Microbenchmarking", https://arxiv.org/abs/1804.06826, section 2.1; the fields are those of Maxwell,
# https://github.com/NervanaSystems/maxas/wiki/Control-Codes.


_BARRIERS = 6
HEADER = "live stall yield write read waits   instruction"
LEGEND = (
    "live: registers of a thread in use; stall: cycles until the warp's next instruction; yield: y where the "
    "scheduler should switch to another warp; write, read: the scoreboard released once the result is written, or the "
    "operands are read; waits: the scoreboards it waits for"
)
UNKNOWN_LIVE = (
    "unknown, as the disassembler cannot analyse cubins in the layout of CUDA 12, or kernels with tens of thousands of "
    "instructions"
)


@dataclass(frozen=True, slots=True)
class Control:
    """The scheduling control bits of one instruction.

    Attributes:
        stall: cycles until the warp's next instruction may be issued: 0 to 15.
        yields: whether the scheduler is advised to take another warp next.
        write_barrier: the scoreboard, 0 to 5, that is released once the result is written; None: its latency is fixed.
        read_barrier: the one that is released once the operands have been read; None likewise.
        waits: scoreboards that have to be released before this instruction is issued.
        reuse: positions of operands, 0 to 3, whose registers stay in the reuse cache for the next instruction.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]


def control_of(word: bytes) -> Control:
    """Return what the 16 bytes of an instruction say of its scheduling."""
    bits = int.from_bytes(word, "little") >> 105
    write = bits >> 5 & 7
    read = bits >> 8 & 7
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,  # the bit asks to stay with this warp
        write_barrier=None if write == 7 else write,
        read_barrier=None if read == 7 else read,
        waits=_set_bits(bits >> 11, _BARRIERS),
        reuse=_set_bits(bits >> 17, 4),
    )


def controls_of(code: bytes) -> Mapping[int, Control]:
    """Return the scheduling of each instruction of a kernel's machine code, by its address."""
    addresses = range(0, len(code) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES)
    return {address: control_of(code[address : address + INSTRUCTION_BYTES]) for address in addresses}


def _set_bits(bits: int, count: int) -> tuple[int, ...]:
    return tuple(bit for bit in range(count) if bits >> bit & 1)


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction, its scheduling and how many registers of a thread are live at it; None: unknown."""

    instruction: SassInstruction
    control: Control | None = None
    live: int | None = None

    def __str__(self) -> str:
        live = "–" if self.live is None else str(self.live)
        control = self.control
        if control is None:
            return f"{live:>4} {'':>27}  {self.instruction}"
        write, read = ("." if each is None else each for each in (control.write_barrier, control.read_barrier))
        waits = "".join(str(bit) if bit in control.waits else "." for bit in range(_BARRIERS))
        yields = "y" if control.yields else "."
        return f"{live:>4} {control.stall:>5} {yields:>5} {write:>5} {read:>4} {waits}  {self.instruction}"


def as_text(lines: Iterable[Line]) -> str:
    """Return the lines below a header."""
    return "\n".join((HEADER, *map(str, lines)))


def most_live(lines: Iterable[Line]) -> int | None:
    """Return the most registers of a thread that are live at once; None: unknown."""
    return max((line.live for line in lines if line.live is not None), default=None)


__all__ = [
    "HEADER",
    "LEGEND",
    "UNKNOWN_LIVE",
    "Control",
    "Line",
    "Loop",
    "LoopFacts",
    "Mix",
    "SassInstruction",
    "as_text",
    "control_of",
    "controls_of",
    "facts_of",
    "loops",
    "main_loop",
    "mix_of",
    "most_live",
]
