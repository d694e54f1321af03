"""Kernels in files of users, their machine code, and kernels run by the interpreter; nothing is timed.

PTX is assembled in a process of its own, a cubin read as it is. The interpreter runs PTX, with arguments that the
user names.
"""

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from gpuexplore.analysis.occupancy import Occupancy, occupancy
from gpuexplore.backends import host
from gpuexplore.core import GpuExploreError, InvalidInput, TooSlow, Unsupported, decode, format_seconds, read_whole
from gpuexplore.features.machine_code.analysis import InstructionBound, instruction_bound
from gpuexplore.features.machine_code.compiling import (
    PROCESS,
    exclusive_cpu,
    failure_of,
    fingerprint,
    run_preemptible,
)
from gpuexplore.hardware import Accelerator, ComputeCapability, cache_directory
from gpuexplore.jobs.locks import HostLock
from gpuexplore.kernels.files import Cubin, KernelFile, PtxKernel, PtxText, kernel_chosen, read_cubin
from gpuexplore.kernels.files.machine_code import (
    Assembled,
    MachineCode,
    check_fits,
    check_target,
    lines_of_kernel,
    reallocated,
)
from gpuexplore.kernels.files.ptx_text import KernelArgument, bits_of
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.ptx import Grid, LaunchOptions, LaunchReport, parse, run
from gpuexplore.kernels.sass import Line, LoopFacts, facts_of
from gpuexplore.kernels.sass.instruction import as_tf32
from gpuexplore.measure.check.interpreted import BlockRun, KernelLaunch

MOST_WORK = 100_000_000  # thread instructions: about a minute
LIMIT_S = 60.0


def machine_code_of(file: KernelFile, wanted: str | None, compute_capability: str) -> MachineCode:
    """Return the machine code of one kernel in a file.

    Args:
        file: as `read_kernel_file` returns it.
        wanted: the kernel's name, or a part of it; None: the only one.
        compute_capability: of the GPU that is to execute it, e.g. `9.0`.

    Raises:
        InvalidInput: there is no such kernel, the PTX is wrong, or the file is for other GPUs.
        Unsupported: the compiler or the disassembler is not installed, is busy, or cannot do it.
    """
    name = kernel_chosen([kernel.name for kernel in file.kernels], wanted)
    if isinstance(file, PtxText):
        made = _assembled(file, compute_capability)
        written = next(kernel for kernel in file.kernels if kernel.name == name)
        found = _machine_code(read_cubin(made.cubin), name)
        return replace(
            found,
            target=made.target,
            toolkit=made.toolkit,
            spill_bytes=made.spill_bytes.get(name),
            block=found.block or written.block,
            has_open_array=written.has_open_array,
            lines=_in_tf32(found.lines) if written.is_tf32 else found.lines,
            **_reallocation(found, written),
        )
    check_fits(file, compute_capability)
    return _machine_code(file, name)


def _assembled(module: PtxText, compute_capability: str) -> Assembled:
    """Return a PTX module assembled for a compute capability.

    Raises:
        InvalidInput: the PTX is wrong, or for other GPUs.
        Unsupported: the assembler is not installed, is busy, failed, or does not know the compute capability.
    """
    if not host.is_installed("numba", "numba_cuda"):
        raise Unsupported("the compiler is not installed: pip install 'gpuexplore[cuda13]'")
    check_target(module, compute_capability)
    with exclusive_cpu() as cpu:
        answer = _answer({"ptx": module.text, "compute_capability": compute_capability}, cpu)
    if "invalid" in answer:
        raise InvalidInput(answer["invalid"])
    if "reason" in answer:
        raise Unsupported(answer["reason"])
    return decode(Assembled, answer["assembled"])


def _in_tf32(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return lines whose products of tensor memory are in tf32."""
    found = []
    for line in lines:
        read = line.instruction
        if read.name == "UTCHMMA":
            read = replace(read, descriptor=as_tf32(read.descriptor))
        found.append(replace(line, instruction=read))
    return tuple(found)


def _reallocation(found: MachineCode, written: PtxKernel) -> dict[str, Any]:
    """Return what `setmaxnreg` does where ptxas or the driver assembles the kernel: nvJitLink leaves it out."""
    if found.reallocated or not written.reallocated:
        return {}
    if written.launch_registers is None:
        why = "which compilers ignore without .maxnreg, or .minnctapersm with the threads per block"
        return {"reallocated": written.reallocated, "ignored": why}
    why = (
        f"which nvJitLink ignores, so the code shown has {found.registers_per_thread}; ptxas and the driver respect it"
    )
    return {"reallocated": written.reallocated, "registers_per_thread": written.launch_registers, "ignored": why}


def _machine_code(cubin: Cubin, name: str) -> MachineCode:
    kernel = next(kernel for kernel in cubin.kernels if kernel.name == name)
    lines = lines_of_kernel(cubin, kernel)
    return MachineCode(
        kernel=name,
        target=cubin.target,
        registers_per_thread=kernel.registers_per_thread,
        local_bytes=kernel.local_bytes,
        shared_bytes=kernel.shared_bytes,
        block=kernel.block,
        lines=lines,
        reallocated=reallocated(lines),
    )


def _answer(request: dict[str, str], cpu: HostLock) -> dict[str, Any]:
    command = [sys.executable, "-m", PROCESS, "assemble"]
    try:
        done = run_preemptible(command, input=json.dumps(request).encode(), timeout=LIMIT_S, cpu=cpu)
    except subprocess.TimeoutExpired:
        return {"reason": f"the compiler took longer than {format_seconds(LIMIT_S)} for this PTX"}
    reason = failure_of(done, "the compiler", "this PTX")
    return {"reason": reason} if reason else json.loads(done.stdout)


def run_kernel(module: PtxText, kernel: PtxKernel, grid: Grid, given: Sequence[KernelArgument]) -> LaunchReport:
    """Return the report on a run of a kernel of a PTX module with these arguments.

    Raises:
        InvalidInput: the kernel takes other arguments.
        TooLarge, TooSlow: arrays or work are more than the interpreter is given.
        Unsupported: the interpreter does not know an instruction, or others keep the CPU.
    """
    kinds = kernel.parameters
    if len(given) != len(kinds):
        took = ", ".join(f".{kind}" for kind in kinds) or "none"
        raise InvalidInput(f"{len(given)} arguments: {kernel.name[:60]} takes {len(kinds)}, in this order: {took}")
    numbers = [None if each.array is not None else bits_of(each, kind) for each, kind in zip(given, kinds, strict=True)]
    arrays = [each.array for each in given if each.array is not None]
    try:
        with exclusive_cpu():
            options = LaunchOptions(most_work=MOST_WORK, arguments=lambda addresses, _: _in_order(numbers, addresses))
            return run(parse(module.alone(kernel.name)), grid, arrays, options)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        # it was written for the PTX of our own kernels, and meets here what was never tried
        raise Unsupported(f"the interpreter does not support this PTX: {error!r}"[:200]) from error


def _in_order(numbers: Sequence[int | None], addresses: Sequence[int]) -> list[int]:
    """Return the parameters: a number, or the address of the next array."""
    left = iter(addresses)
    return [next(left) if number is None else number for number in numbers]


def interpret(request: KernelLaunch) -> BlockRun:
    """Return the run of a kernel in the interpreter, stored or new.

    Raises:
        InvalidInput, TooLarge, TooSlow, Unsupported: as of `gpuexplore.measure.check.interpreted`; also where the
            interpreter fails, takes too long, or others keep the CPU.
    """
    with exclusive_cpu() as cpu:
        found = kept_block(request)
        answer = found or _run(request, cpu)
    if isinstance(answer, GpuExploreError):
        raise answer
    if found is None:
        path = _path(request)
        with suppress(OSError):  # a full disk: then it is run again
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(answer))
            for old in sorted(path.parent.iterdir(), key=lambda each: each.stat().st_mtime)[:-200]:  # up to 1 MB each
                old.unlink(missing_ok=True)
    return answer


def kept_block(request: KernelLaunch) -> BlockRun | None:
    """Return the stored run of a kernel; None where there is none."""
    try:
        found: BlockRun = pickle.loads(_path(request).read_bytes())
    except (OSError, EOFError, pickle.UnpicklingError):  # never run, or cut off while it was written
        return None
    return found


def _path(request: KernelLaunch) -> Path:
    key = repr((request, fingerprint(("operations", "kernels", "measure")))).encode()
    return cache_directory() / "interpreted" / f"{sha256(key).hexdigest()[:24]}.pickle"


def _run(request: KernelLaunch, cpu: HostLock) -> BlockRun | GpuExploreError:
    command = [sys.executable, "-m", PROCESS, "interpret"]
    try:
        done = run_preemptible(command, input=pickle.dumps(request), timeout=LIMIT_S, cpu=cpu)
    except subprocess.TimeoutExpired as error:
        raise TooSlow(f"the interpreter took longer than {format_seconds(LIMIT_S)}: choose a smaller shape") from error
    if reason := failure_of(done, "the interpreter", "this kernel"):
        raise Unsupported(reason)
    return pickle.loads(done.stdout)


USUAL_BLOCK: Block = (256,)
BlockOrigin = Literal["asked", "file", "default"]
ORIGINS: dict[BlockOrigin, str] = {
    "asked": "as requested",
    "file": "stated in the file, or the most it allows",
    "default": "the default, as the file states none",
}


@dataclass(frozen=True, slots=True)
class FileKernel:
    """A kernel of a file on one GPU.

    Attributes:
        block: threads of a block along x, y and z.
        block_origin: where it comes from.
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
    if block and code.block and math.prod(block) > math.prod(code.block):
        most = " x ".join(map(str, code.block))
        raise InvalidInput.of(
            "block", " x ".join(map(str, block)), f"up to {math.prod(code.block)} threads: {most} in the file"
        )
    facts = facts_of(code.code)
    full = None
    chosen = block or code.block or USUAL_BLOCK
    if code.registers_per_thread is not None:
        full = occupancy(
            capability,
            threads_per_block=math.prod(chosen),
            registers_per_thread=code.registers_per_thread,
            shared_bytes_per_block=code.shared_bytes + dynamic_shared_bytes,
        )
    bound = _code_bound(facts, gpu, full) if gpu and full else InstructionBound()
    origin: BlockOrigin = "asked" if block else "file" if code.block else "default"
    return FileKernel(chosen, origin, dynamic_shared_bytes, facts, full, bound)


def _code_bound(facts: LoopFacts, gpu: Accelerator, full: Occupancy) -> InstructionBound:
    """Return what machine code alone allows on `gpu`: of a kernel whose operation is unknown, so no roofline follows.

    Args: as of `instruction_bound`.
    """
    bound = instruction_bound(facts, gpu, full, math.inf)
    known = bound.flop_per_s is not None and math.isfinite(bound.flop_per_s)
    return replace(bound, roofline_flop_per_s=None, flop_per_s=bound.flop_per_s if known else None)


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
    """Return whether a launch would have to add shared memory that is not named, so that occupancy is too high."""
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
