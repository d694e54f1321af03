"""The scheduling that a compiler writes into each instruction of machine code: bits 105 to 125 of its 128.

From the lowest: 4 bits stall count, 1 yield, 3 write barrier, 3 read barrier, 6 wait mask, 4 operand reuse; on every
compute capability from 7.0 on. NVIDIA documents none of it: Z. Jia et al., "Dissecting the NVIDIA Volta GPU
Architecture via Microbenchmarking", https://arxiv.org/abs/1804.06826, section 2.1; the fields are those of Maxwell,
https://github.com/NervanaSystems/maxas/wiki/Control-Codes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
FIRST_BIT = 105
NO_BARRIER = 7
BARRIERS = 6


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
