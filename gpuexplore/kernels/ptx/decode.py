"""Instructions as functions of a warp and its lanes, each decoded once before a kernel runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.ptx.access import ACCESS, access_bytes
from gpuexplore.kernels.ptx.arithmetic import ARITHMETIC
from gpuexplore.kernels.ptx.atomics import ATOMICS
from gpuexplore.kernels.ptx.bits import BITS
from gpuexplore.kernels.ptx.choices import CHOICES
from gpuexplore.kernels.ptx.conversions import CONVERSIONS
from gpuexplore.kernels.ptx.decoder import Decoder, Getter, Step
from gpuexplore.kernels.ptx.lanes import TOGETHER
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.modifiers import expect_known_modifiers
from gpuexplore.kernels.ptx.program import Instruction, Program
from gpuexplore.kernels.ptx.scalars import Values, scalar
from gpuexplore.kernels.ptx.tensor_cores import TENSOR_CORES
from gpuexplore.kernels.ptx.warp import Mask, Warp, masked
from gpuexplore.kernels.ptx.warpgroups import WARPGROUPS, product_registers, watching_registers

_ALONE: Mapping[str, Callable[[Decoder, Instruction], Step]] = ARITHMETIC | BITS | CHOICES | CONVERSIONS | TOGETHER
_WITH_MEMORY: Mapping[str, Callable[[Decoder, Memories, Instruction], Step]] = (
    ACCESS | ATOMICS | TENSOR_CORES | WARPGROUPS
)
OPCODES = (*_ALONE, *_WITH_MEMORY)


@dataclass(frozen=True, slots=True)
class Event:
    """An instruction that a warp has executed.

    Attributes:
        instruction: as it stands in the program.
        block: index of the block along x, y and z.
        warp: index of the warp within the block.
        lanes: those of the 32 that acted.
        addresses: of each lane, in bytes, where the instruction accesses memory; shared ones count from its start.
        sources: of each lane, where an asynchronous copy reads device memory, and how many bytes: zeros fill the rest.
    """

    instruction: Instruction
    block: tuple[int, int, int]
    warp: int
    lanes: npt.NDArray[np.bool_]
    addresses: Values | None
    sources: tuple[Values, Values] | None


Observer = Callable[[Event], None]


def smallest_access(program: Program) -> int:
    """Return the bytes of the smallest access to shared memory in a kernel; 4 where there is none."""
    found = (access_bytes(instruction) for instruction in program.code)
    return min((size for size in found if size), default=4)


def decoded(decoder: Decoder, memories: Memories, observer: Observer | None = None) -> list[Step]:
    """Return a step for each instruction.

    Raises:
        Unsupported: an instruction is not known here; the text names it and its line.
    """
    steps, fragments = [], product_registers(decoder.program)
    for place, instruction in enumerate(decoder.program.code):
        decoder.place = place
        step = _decoded(decoder, memories, instruction, observer)
        used = fragments & instruction.register_names if instruction.opcode != "wgmma" else frozenset[str]()
        steps.append(watching_registers(step, used, memories.ledger, place) if used else step)
    return steps


def _decoded(decoder: Decoder, memories: Memories, instruction: Instruction, observer: Observer | None) -> Step:
    try:
        step = _step(decoder, memories, instruction)
        if observer is not None:
            step = _observed(step, instruction, observer)
        return _guarded(step, decoder.read(instruction.guard, scalar("pred"))) if instruction.guard else step
    except (Unsupported, KeyError, ValueError) as error:
        raise Unsupported(
            f"line {instruction.line} of the PTX cannot be run here: {instruction.text[:80]} ({error})"
        ) from error


def _step(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    expect_known_modifiers(instruction)
    if instruction.opcode in _ALONE:
        return _ALONE[instruction.opcode](decoder, instruction)
    if instruction.opcode in _WITH_MEMORY:
        return _WITH_MEMORY[instruction.opcode](decoder, memories, instruction)
    raise Unsupported(f"the instruction {instruction.opcode} is not known")


def _guarded(step: Step, predicate: Getter) -> Step:
    def under(warp: Warp, mask: Mask) -> None:
        taken = masked(mask, predicate(warp))
        if taken is None or taken.any():
            step(warp, taken)

    return under


def _observed(step: Step, instruction: Instruction, observer: Observer) -> Step:
    def watched(warp: Warp, mask: Mask) -> None:
        warp.touched, warp.fetched = None, None
        lanes = (warp.active() if mask is None else mask).copy()
        step(warp, mask)
        observer(Event(instruction, warp.block.at, warp.index, lanes, warp.touched, warp.fetched))

    return watched
