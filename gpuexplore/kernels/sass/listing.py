"""Machine code as it is printed: each instruction beside its scheduling and the registers that are live there.

A compiler writes the scheduling into bits 105 to 125 of the 128 of an instruction: from the lowest 4 bits stall count,
1 yield, 3 write barrier, 3 read barrier, 6 wait mask, 4 operand reuse; on every compute capability from 7.0 on. NVIDIA
documents none of it: Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking",
https://arxiv.org/abs/1804.06826, section 2.1; the fields are those of Maxwell,
https://github.com/NervanaSystems/maxas/wiki/Control-Codes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuexplore.kernels.sass.instruction import INSTRUCTION_BYTES, Instruction

FIRST_BIT = 105
NO_BARRIER = 7
BARRIERS = 6
HEADER = "live stall yield write read waits   instruction"
LEGEND = (
    "live: registers of a thread in use; stall: cycles until the warp's next instruction; yield: y where another warp "
    "is to be taken first; write, read: the scoreboard that is released once the result is written, or the operands "
    "are read; waits: the scoreboards it waits for"
)
UNKNOWN_LIVE = (
    "unknown, for the disassembler analyses no cubin in the layout of CUDA 12, and no kernel of tens of thousands of "
    "instructions in time"
)


@dataclass(frozen=True, slots=True)
class Control:
    """When a warp may go on, as one instruction says it.

    Attributes:
        stall: cycles until the warp's next instruction may be issued: 0 to 15.
        yields: whether the scheduler is advised to take another warp next.
        write_barrier: the scoreboard, 0 to 5, that is released once the result is written; None: its latency is fixed.
        read_barrier: the one that is released once the operands have been read; None likewise.
        waits: scoreboards that have to be released before this instruction is issued.
        reuse: places of operands, 0 to 3, whose registers stay in the reuse cache for the next instruction.
    """

    stall: int
    yields: bool
    write_barrier: int | None
    read_barrier: int | None
    waits: tuple[int, ...]
    reuse: tuple[int, ...]


def control_of(word: bytes) -> Control:
    """Return what the 16 bytes of an instruction say of its scheduling."""
    bits = int.from_bytes(word, "little") >> FIRST_BIT
    write, read = bits >> 5 & 7, bits >> 8 & 7
    return Control(
        stall=bits & 15,
        yields=not bits >> 4 & 1,  # the bit asks to stay with this warp
        write_barrier=None if write == NO_BARRIER else write,
        read_barrier=None if read == NO_BARRIER else read,
        waits=_places(bits >> 11, BARRIERS),
        reuse=_places(bits >> 17, 4),
    )


def controls_of(code: bytes) -> Mapping[int, Control]:
    """Return the scheduling of each instruction of a kernel's machine code, by its address."""
    addresses = range(0, len(code) - INSTRUCTION_BYTES + 1, INSTRUCTION_BYTES)
    return {address: control_of(code[address : address + INSTRUCTION_BYTES]) for address in addresses}


def _places(bits: int, count: int) -> tuple[int, ...]:
    return tuple(place for place in range(count) if bits >> place & 1)


@dataclass(frozen=True, slots=True)
class Line:
    """An instruction, its scheduling and how many registers of a thread are live at it; None: unknown."""

    instruction: Instruction
    control: Control | None = None
    live: int | None = None

    def __str__(self) -> str:
        live, control = "–" if self.live is None else str(self.live), self.control
        if control is None:
            return f"{live:>4} {'':>27}  {self.instruction}"
        waits = "".join(str(place) if place in control.waits else "." for place in range(BARRIERS))
        return (
            f"{live:>4} {control.stall:>5} {'y' if control.yields else '.':>5} {_named(control.write_barrier):>5} "
            f"{_named(control.read_barrier):>4} {waits}  {self.instruction}"
        )


def lines_of(code: Iterable[Instruction], controls: Mapping[int, Control], live: Mapping[int, int]) -> tuple[Line, ...]:
    """Return the lines of machine code from what is known at each address."""
    return tuple(Line(each, controls.get(each.address), live.get(each.address)) for each in code)


def as_text(lines: Iterable[Line]) -> str:
    """Return the lines below a header."""
    return "\n".join((HEADER, *map(str, lines)))


def _named(barrier: int | None) -> str:
    return "." if barrier is None else str(barrier)


def most_live(lines: Iterable[Line]) -> int | None:
    """Return the most registers of a thread that are live at once; None: unknown."""
    return max((line.live for line in lines if line.live is not None), default=None)
