"""`gpuexplore sass FILE`: the machine code of a kernel compiled elsewhere, or written as PTX."""

import argparse
from pathlib import Path
from typing import Any

from gpuexplore.analysis.kernels.file_kernel import (
    ORIGINS,
    FileKernel,
    asks_for_shared,
    file_kernel,
    read_dynamic_shared,
    registers_in_words,
)
from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.output import print_json
from gpuexplore.cli.sass_output import (
    OF_A_RUN,
    bound_json,
    lines_json,
    loop_json,
    print_bound,
    print_code,
    print_mix,
    print_run,
)
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import format_bytes
from gpuexplore.devices import Accelerator, readings
from gpuexplore.devices.capabilities import ComputeCapability
from gpuexplore.jobs.kernel_files import machine_code_of
from gpuexplore.kernels.files import MOST_BYTES, SUFFIXES, KernelFile, read_kernel_file
from gpuexplore.kernels.files.machine_code import MachineCode
from gpuexplore.kernels.geometry import read_block
from gpuexplore.kernels.sass import Loop, Mix, main_loop, mix_of, most_live


def is_file_named(text: str) -> bool:
    """Return whether an argument names a file and not a kernel of ours."""
    return Path(text).suffix.lower() in SUFFIXES or Path(text).is_file()


def print_file_kernel(arguments: argparse.Namespace, gpu: Accelerator, capability: ComputeCapability) -> int:
    """Print what `sass` prints of our kernels, but for the roofline: what the kernel computes is unknown.

    Raises:
        InvalidInput, TooLarge, Unsupported: the file, its kernel or an option cannot be used; the text says why.
    """
    file = _read(Path(arguments.kernel))
    if arguments.run:
        return print_run(arguments, file, capability)
    if any(getattr(arguments, name) is not None for name in OF_A_RUN):
        raise InvalidInput("--grid and --arg say how a kernel is run: add --run")
    block = None if arguments.block is None else read_block(arguments.block, capability)
    dynamic = read_dynamic_shared(arguments.dynamic_shared, capability)
    code = machine_code_of(file, arguments.kernel_name, capability.compute_capability)
    found = file_kernel(code, capability, gpu, block=block, dynamic_shared_bytes=dynamic)
    loop = main_loop(code.code)
    mix = mix_of(loop if loop else code.code)
    if arguments.json:
        further = {
            "instructions": lines_json(code.lines, None if arguments.all else loop),
            "readings": list(readings([arguments.gpu])),
        }
        about = {"kernel": code.kernel, "file": arguments.kernel, "gpu": gpu.name}
        print_json({**about, "main_loop": loop_json(mix) if loop else None, **_facts(code, found), **further})
        return EXIT_OK
    _print_head(code, found, Path(arguments.kernel).name, gpu)
    print_code(code.lines, None if arguments.all else loop)
    _print_end(code, found, loop, mix)
    return EXIT_OK


def _read(path: Path) -> KernelFile:
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path}: this is no file")
    try:
        with path.open("rb") as file:
            return read_kernel_file(file.read(MOST_BYTES + 1))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error


def _facts(code: MachineCode, found: FileKernel) -> dict[str, Any]:
    return {
        "target": code.target,
        "toolkit": code.toolkit,
        "block": found.block,
        "block_origin": found.block_origin,
        "registers_per_thread": code.registers_per_thread,
        "registers_after_setmaxnreg": code.reallocated,
        "setmaxnreg_remark": code.ignored or None,
        "most_live_registers": most_live(code.lines),
        "spill_bytes": code.spill_bytes,
        "local_bytes": code.local_bytes,
        "shared_bytes": code.shared_bytes,
        "dynamic_shared_bytes": found.dynamic_shared_bytes,
        "occupancy": found.occupancy.occupancy if found.occupancy else None,
        "limiters": found.occupancy.limiters if found.occupancy else None,
        **bound_json(found.bound),
    }


def _print_head(code: MachineCode, found: FileKernel, file: str, gpu: Accelerator) -> None:
    made = f"assembled by CUDA {code.toolkit} for {code.target}" if code.toolkit else f"machine code for {code.target}"
    print(f"{code.kernel} of {file} on {gpu.name}, {made}")
    print(f"blocks of {' x '.join(map(str, found.block))} threads: {ORIGINS[found.block_origin]}")
    print(", ".join(_in_words(code, found.dynamic_shared_bytes)))


def _print_end(code: MachineCode, found: FileKernel, loop: Loop | None, mix: Mix) -> None:
    print_mix(mix, loop)
    if found.occupancy is None:
        print("occupancy unknown: the file does not say how many registers a thread has")
    elif found.occupancy.reason:
        print(f"occupancy 0: {found.occupancy.reason}")
    else:
        print_bound(found.bound, found.occupancy)
        if code.reallocated:
            print("Occupancy is that of the registers at launch: setmaxnreg moves them between the warps of a block.")
        if found.bound.flop_per_s is not None:
            print("Memory is not part of this bound: what the kernel has to move is unknown.")


def _in_words(code: MachineCode, dynamic_shared_bytes: int) -> list[str]:
    """Return what the compiler made of a kernel, a few words each; what is unknown is said to be."""
    live = most_live(code.lines)
    of_them = "live at once" if code.reallocated else "of them live"
    spills = (
        "spills unknown, as a cubin does not tell" if code.spill_bytes is None else f"{code.spill_bytes} B of spills"
    )
    stack = [f"{format_bytes(code.local_bytes)} of stack"] if code.local_bytes else []
    added = format_bytes(dynamic_shared_bytes) if dynamic_shared_bytes else "none"
    unsaid = (
        " (the file declares some: say how much by --dynamic-shared)"
        if asks_for_shared(code, dynamic_shared_bytes)
        else ""
    )
    return [
        f"{len(code.lines)} instructions",
        registers_in_words(code),
        *([] if live is None else [f"at most {live} {of_them}"]),
        spills,
        *stack,
        f"{format_bytes(code.shared_bytes)} of static and {added} of dynamic shared memory{unsaid}",
    ]
