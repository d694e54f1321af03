"""What follows on a GPU from the machine code of a kernel in anybody's file: occupancy, and the rate it allows."""

from dataclasses import dataclass
from math import prod
from typing import Literal

from gpuexplore.analysis.occupancy import Occupancy, occupancy
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import read_whole
from gpuexplore.features.machine_code.analysis import InstructionBound, code_bound
from gpuexplore.hardware import Accelerator
from gpuexplore.hardware.capabilities import ComputeCapability
from gpuexplore.kernels.files.machine_code import MachineCode
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.sass import LoopFacts, facts_of

USUAL_BLOCK: Block = (256,)
BlockOrigin = Literal["asked", "file", "default"]
ORIGINS: dict[BlockOrigin, str] = {
    "asked": "as asked for",
    "file": "what the file says, or the most it allows",
    "default": "the default, for the file says nothing",
}


@dataclass(frozen=True, slots=True)
class FileKernel:
    """A kernel of a file on one GPU.

    Attributes:
        block: threads of a block along x, y and z.
        block_origin: who says so.
        dynamic_shared_bytes: shared memory that a launch adds to the kernel's own.
        facts: of its main loop.
        occupancy: how full it can make a multiprocessor; None: its registers are unknown.
        bound: the rate that its machine code allows at most; of a GPU that is in no table nothing follows.
    """

    block: Block
    block_origin: BlockOrigin
    dynamic_shared_bytes: int
    facts: LoopFacts
    occupancy: Occupancy | None
    bound: InstructionBound


def file_kernel(
    code: MachineCode,
    capability: ComputeCapability,
    gpu: Accelerator | None,
    *,
    block: Block | None = None,
    dynamic_shared_bytes: int = 0,
) -> FileKernel:
    """Return what follows for a kernel on a GPU; `gpu` None: it is in no table.

    Raises:
        InvalidInput: a block of more threads than the kernel is compiled for, or more of anything than the GPU has.
    """
    if block and code.block and prod(block) > prod(code.block):
        most = " x ".join(map(str, code.block))
        raise InvalidInput.of(
            "block", " x ".join(map(str, block)), f"up to {prod(code.block)} threads: {most} in the file"
        )
    facts, full = facts_of(code.code), None
    chosen = block or code.block or USUAL_BLOCK
    if code.registers_per_thread is not None:
        full = occupancy(
            capability,
            threads_per_block=prod(chosen),
            registers_per_thread=code.registers_per_thread,
            shared_bytes_per_block=code.shared_bytes + dynamic_shared_bytes,
        )
    bound = code_bound(facts, gpu, full) if gpu and full else InstructionBound()
    origin: BlockOrigin = "asked" if block else "file" if code.block else "default"
    return FileKernel(chosen, origin, dynamic_shared_bytes, facts, full, bound)


def registers_in_words(code: MachineCode) -> str:
    """Return the registers of a thread at launch, and those its warps have once they gave some back or took more."""
    if code.registers_per_thread is None:
        return "registers unknown"
    at_launch = f"{code.registers_per_thread} registers per thread"
    if not code.reallocated:
        return at_launch
    asked = " and ".join(map(str, code.reallocated))
    ignored = f" ({code.ignored})" if code.ignored else ""
    return f"{at_launch} at launch, {asked} after setmaxnreg{ignored}"


def asks_for_shared(code: MachineCode, dynamic_shared_bytes: int) -> bool:
    """Return whether a launch would have to add shared memory that nobody has named, so that occupancy is too high."""
    return bool(code.has_open_array) and not dynamic_shared_bytes


def read_dynamic_shared(text: str | None, capability: ComputeCapability) -> int:
    """Return the bytes of shared memory that were typed for a launch; None: none are added.

    Raises:
        InvalidInput: they are no number, or more than a block has.
    """
    most = capability.max_shared_bytes_per_block_opt_in
    size_bytes = 0 if text is None else read_whole(text)
    if size_bytes is None or size_bytes > most:
        raise InvalidInput.of("dynamic shared memory", text, f"whole numbers of bytes from 0 to {most}")
    return size_bytes
