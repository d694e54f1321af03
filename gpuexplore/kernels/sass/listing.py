"""Machine code as it is printed: each instruction beside its scheduling and the registers that are live there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from gpuexplore.kernels.sass.control import BARRIERS, Control
from gpuexplore.kernels.sass.instruction import Instruction

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
