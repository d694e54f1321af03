"""`gpuexplore sass`: the machine code of a CUDA kernel, what its main loop consists of, and the rate it allows."""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from gpuexplore.analysis.occupancy import Occupancy, occupancy
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, declare, print_json, say_readings
from gpuexplore.core import (
    InvalidInput,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    format_percent,
    read_whole,
)
from gpuexplore.features.machine_code.analysis import (
    InstructionBound,
    flop_per_byte,
    format_rate,
    instruction_bound,
)
from gpuexplore.features.machine_code.compiling import Target, compiled_kernel
from gpuexplore.features.machine_code.kernel_files import (
    ORIGINS,
    USUAL_BLOCK,
    FileKernel,
    asks_for_shared,
    file_kernel,
    machine_code_of,
    read_dynamic_shared,
    registers_in_words,
    run_kernel,
)
from gpuexplore.features.machine_code.occupancy_command import DEFAULT_DTYPE, dtype_of, kernel_named
from gpuexplore.hardware import Accelerator, ComputeCapability, capability_of, gpu_named, readings
from gpuexplore.kernels.files import MOST_BYTES, SUFFIXES, KernelFile, PtxText, kernel_chosen, read_kernel_file
from gpuexplore.kernels.files.machine_code import MachineCode, lines_of_ours
from gpuexplore.kernels.files.ptx_text import read_argument
from gpuexplore.kernels.geometry import AXES, Block, read_block
from gpuexplore.kernels.ptx import Grid
from gpuexplore.kernels.sass import (
    HEADER,
    LEGEND,
    UNKNOWN_LIVE,
    Line,
    Loop,
    Mix,
    facts_of,
    main_loop,
    mix_of,
    most_live,
)
from gpuexplore.operations.compiled import recorded_elsewhere
from gpuexplore.shapes import parse_shape

DEFAULT_SIZE = "4096"
OF_A_RUN = ("grid", "arg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `sass`; values stay text."""
    declare(
        parser,
        {
            "kernel OPERATION/IMPLEMENTATION|FILE": "a CUDA kernel of gpuexplore, or a file: PTX or a cubin",
            "--gpu NAME": {"required": True, "help": "a driver name or key of `specs`"},
            "--dtype NAME": f"dtype of gpuexplore's kernel (default: {DEFAULT_DTYPE})",
        },
    )
    declare(
        parser.add_mutually_exclusive_group(),
        {
            "--size N": f"size of the operation, for the roofline (default: {DEFAULT_SIZE})",
            "--shape AXES": "shape of the operation, like m=100000,n=100, for the roofline",
        },
    )
    declare(
        parser,
        {
            "--block X[,Y[,Z]]": "threads per block (default: the kernel's own; 256 for a file that states none)",
            "--kernel NAME": {"dest": "kernel_name", "help": "kernel of a file with several: its name or a part of it"},
            "--dynamic-shared BYTES": "dynamic shared memory per block, for the kernel of a file",
            "--run": "run the kernel of a PTX file in the interpreter instead, without a GPU",
            "--grid X[,Y[,Z]]": "grid of --run, in blocks (default: 1)",
            "--arg NAME=VALUE": {
                "action": "append",
                "help": "argument of --run, in order: a=randn:fp32:256, out=zeros:fp32:256, n=256",
            },
            "--all": "print all instructions, not the main loop only",
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the main loop, what it consists of, and the upper bound of the rate with what limits it first."""
    gpu = gpu_named(arguments.gpu)
    if not arguments.json:
        say_readings([arguments.gpu])
    capability = capability_of(gpu)
    if Path(arguments.kernel).suffix.lower() in SUFFIXES or Path(arguments.kernel).is_file():
        _refuse(arguments, ("dtype", "size", "shape"), "an OPERATION/IMPLEMENTATION, but this is a file")
        file = _read(Path(arguments.kernel))
        if arguments.run:
            return _print_run(arguments, file, capability)
        return _print_file_kernel(arguments, file, gpu, capability)
    try:
        operation, implementation, geometry = kernel_named(arguments.kernel)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; or an existing file, or a name that ends in {' or '.join(SUFFIXES)}") from error
    only_of_files = ("kernel_name", "dynamic_shared", *OF_A_RUN)
    _refuse(arguments, only_of_files, "a file of PTX or a cubin, but this is a kernel of gpuexplore")
    if arguments.run:
        raise InvalidInput("--run needs a PTX file; gpuexplore's kernels can be run on the page Kernels")
    dtype = dtype_of(arguments.dtype, operation)
    shape = parse_shape(arguments.shape or arguments.size or DEFAULT_SIZE, operation)
    block = geometry.checked(None if arguments.block is None else read_block(arguments.block, capability))
    name = f"{operation.name}/{implementation.name}"
    target = Target(operation.name, implementation.name, dtype, capability.compute_capability, block)
    made = compiled_kernel(target)
    lines = lines_of_ours(made.cubin)
    code = tuple(line.instruction for line in lines)
    full = occupancy(
        capability,
        threads_per_block=prod(block),
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )
    loop = main_loop(code)
    facts = facts_of(code)
    mix = mix_of(loop if loop else code)
    bound = instruction_bound(facts, gpu, full, flop_per_byte(operation, shape, dtype))
    shown = None if arguments.all else loop
    if arguments.json:
        print_json(
            {
                "kernel": name,
                "dtype": dtype,
                "gpu": gpu.name,
                "block": block,
                "shape": dict(shape.axes),
                "main_loop": _loop_json(mix) if loop else None,
                "other_toolkits": _elsewhere(target) if block == geometry.blocks[0] else None,
                "target": made.target,
                "toolkit": made.toolkit,
                "registers_per_thread": made.registers_per_thread,
                "spill_bytes": made.spill_bytes,
                "occupancy": full.occupancy,
                "limiters": full.limiters,
                "roofline_flop_per_s": bound.roofline_flop_per_s,
                **_bound_json(bound),
                "most_live_registers": most_live(lines),
                "instructions": _lines_json(lines, shown),
                "readings": list(readings([arguments.gpu])),
            }
        )
        return EXIT_OK
    print(f"{name} in {dtype} for {gpu.name}, blocks of {' x '.join(map(str, block))}, CUDA {made.toolkit}")
    live = f" (at most {most_live(lines)} live)" if most_live(lines) else ""
    registers = f"{made.registers_per_thread} registers per thread{live}"
    print(f"{len(code)} instructions, {registers}, {made.spill_bytes} B of spills")
    _print_code(lines, shown)
    _print_mix(mix, loop)
    _print_bound(bound, full)
    return EXIT_OK


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], owner: str) -> None:
    """Refuse options that say something of the other kind of kernel."""
    for name in names:
        if (value := getattr(arguments, name)) is not None:
            option = "--" + name.replace("kernel_name", "kernel").replace("_", "-")
            raise InvalidInput(f"{option} {value}: this option needs {owner}")


def _elsewhere(target: Target) -> dict[str, dict[str, int]]:
    """Return what is recorded of other CUDA toolkits that compile the kernel otherwise, by their version."""
    found = recorded_elsewhere(target.operation, target.implementation, target.dtype, target.compute_capability)
    return {
        toolkit: {
            "registers_per_thread": made.registers_per_thread,
            "spill_bytes": made.spill_bytes,
            "main_loop_instructions": made.main_loop.instructions,
        }
        for toolkit, made in found.items()
    }


def _bound_json(bound: InstructionBound) -> dict[str, Any]:
    """Return a bound as JSON has it."""
    return {
        "bound_flop_per_s": bound.flop_per_s,
        "bound_unit": bound.rate_unit,
        "bound_of": bound.units or None,
        "no_bound_because": bound.no_rate or None,
        "bound_bytes_per_s": bound.bytes_per_s,
        "bottleneck": bound.bottleneck,
        "evidence": bound.evidence or None,
        "cycles": dict(bound.cycles),
    }


def _lines_json(lines: Sequence[Line], loop: Loop | None) -> list[dict[str, Any]]:
    """Return the instructions of a loop, without one all, as JSON has them: scheduling unknown is null."""
    inside = {each.address for each in loop} if loop else None
    return [
        {
            "address": line.instruction.address,
            "predicate": line.instruction.predicate or None,
            "opcode": line.instruction.opcode,
            "operands": line.instruction.operands,
            "live_registers": line.live,
            "control": asdict(line.control) if line.control else None,
        }
        for line in lines
        if inside is None or line.instruction.address in inside
    ]


def _loop_json(mix: Mix) -> dict[str, Any]:
    """Return what a main loop consists of as JSON has it."""
    return {
        "instructions": mix.instructions,
        "ffma": mix.by_name.get("FFMA", 0),
        "hmma": mix.tensor,
        "fma_fraction": mix.multiply_add_share,
        "loads": dict(mix.loads),
        "stores": dict(mix.stores),
        "mix": dict(mix.by_name),
    }


def _print_code(lines: Sequence[Line], loop: Loop | None) -> None:
    """Print a loop with its scheduling, and how much is left out; without one everything."""
    print(HEADER)
    if loop is None:
        print(*lines, sep="\n")
    else:
        addresses = {each.address for each in loop}
        before = sum(line.instruction.address < loop[0].address for line in lines)
        after = sum(line.instruction.address > loop[-1].address for line in lines)
        print(f"... {before} instructions before the main loop (--all prints them)")
        print(*(line for line in lines if line.instruction.address in addresses), sep="\n")
        if inside := len(lines) - before - after - len(addresses):
            print(f"... {inside} instructions of loops inside it")
        print(f"... {after} instructions after it")
    print(f"{LEGEND}.")
    if all(line.live is None for line in lines):
        print(f"live: {UNKNOWN_LIVE}.")


def _print_mix(mix: Mix, loop: Loop | None) -> None:
    """Print what the main loop, or without one the whole kernel, consists of."""
    where = "main loop" if loop else "the whole kernel, which has no loop"
    most = ", ".join(f"{count} {name}" for name, count in list(mix.by_name.items())[:8])
    print(f"{where}: {mix.instructions} instructions: {most}")
    if mix.slots_per_multiply_add:
        print(
            f"{format_percent(mix.multiply_add_share)} are multiply-adds or tensor-core instructions: "
            f"{mix.slots_per_multiply_add:.3g} issue slots for each"
        )
    if mix.tensor:
        apart = [f"{count} {name}" for name, count in mix.ordinary.items()]
        ordinary_units = f"; {' and '.join(apart)} run on the ordinary units" if apart else ""
        print(f"{mix.tensor} of {mix.instructions} instructions use the tensor cores{ordinary_units}")
    if moved := [f"{count} {name}" for name, count in (*mix.loads.items(), *mix.stores.items())]:
        print(f"loads and stores by bits per thread: {', '.join(moved)}")


def _print_bound(bound: InstructionBound, full: Occupancy) -> None:
    """Print the occupancy, and the rate that the code allows at most with what limits it first."""
    print(
        f"occupancy {format_percent(full.occupancy)}: {full.active_warps} warps per multiprocessor, {full.limited_by}"
    )
    if bound.flop_per_s is not None:
        share = bound.share_of_peak and f", {format_percent(bound.share_of_peak)} of the peak of its units"
        units = f" ({bound.units})" if share and bound.units else ""
        print(f"upper bound: {format_rate(bound)}{share or ''}{units}")
    if bound.roofline_flop_per_s is not None:
        rate = format_flop_per_s(bound.roofline_flop_per_s)
        print(f"roofline at this shape, unless its arrays stay in the caches: {rate}")
    if bound.bytes_per_s is not None:
        print(f"upper bound: {format_bytes_per_s(bound.bytes_per_s)} from device memory")
    if bound.evidence:
        print(f"{bound.evidence}.")
    if bound.no_rate and bound.flop_per_s is None:
        print(f"no bound{' of its arithmetic' if bound.evidence else ''} follows: {bound.no_rate}")


# `gpuexplore sass FILE --run`: PTX of any origin run by the interpreter, and the arrays afterwards; nothing is timed.


def _print_run(arguments: argparse.Namespace, file: KernelFile, capability: ComputeCapability) -> int:
    """Print what the interpreter found, and the values of the arrays afterwards; fail where the kernel did wrong.

    In JSON, NaN and infinities are text.

    Raises:
        InvalidInput, TooLarge, TooSlow, Unsupported: it cannot be run; the text says why.
    """
    if not isinstance(file, PtxText):
        raise InvalidInput("--run: the interpreter runs PTX, but this is a cubin")
    name = kernel_chosen([each.name for each in file.kernels], arguments.kernel_name)
    kernel = next(each for each in file.kernels if each.name == name)
    asked = None if arguments.block is None else read_block(arguments.block, capability)
    given = tuple(map(read_argument, arguments.arg or ()))
    grid = tuple(read_whole(word) or 0 for word in (arguments.grid or "1").split(","))
    most_blocks = 65_535  # along each axis
    if len(grid) > AXES or not all(1 <= length <= most_blocks for length in grid):
        raise InvalidInput.of("grid", arguments.grid, f"X or X,Y or X,Y,Z of 1 to {most_blocks} blocks each")
    block = asked or kernel.block or USUAL_BLOCK
    shared_bytes = read_dynamic_shared(arguments.dynamic_shared, capability)
    report = run_kernel(file, kernel, Grid(_three(grid), _three(block), dynamic_shared_bytes=shared_bytes), given)
    named = [argument for argument in given if argument.array is not None]
    arrays = {each.name: each.values(stored) for each, stored in zip(named, report.arrays, strict=True)}
    if arguments.json:
        print_json(
            {
                "faults": [str(fault) for fault in report.faults],
                "warp_instructions": report.warp_instructions,
                "arrays": {
                    name: [value if np.isfinite(value) else str(value) for value in values.tolist()]
                    for name, values in arrays.items()
                },
            }
        )
        return EXIT_FAILED if report.faults else EXIT_OK
    counted = f"{report.warp_instructions:,} warp instructions in the interpreter, which does not measure time"
    print(f"grid of {' x '.join(map(str, grid))}, blocks of {' x '.join(map(str, block))} threads: {counted}")
    for name, values in arrays.items():
        listed = ", ".join(f"{value:.6g}" for value in values[:8].tolist())
        print(f"{name} ({values.size}): {listed}{', ...' if values.size > 8 else ''}")
    print(*(report.faults or ["no races, no accesses out of bounds or misaligned"]), sep="\n")
    return EXIT_FAILED if report.faults else EXIT_OK


def _three(lengths: Block) -> tuple[int, int, int]:
    x, y, z = (*lengths, 1, 1)[:3]
    return x, y, z


def _print_file_kernel(
    arguments: argparse.Namespace, file: KernelFile, gpu: Accelerator, capability: ComputeCapability
) -> int:
    """Print what `sass` prints of our kernels, but for the roofline: what the kernel computes is unknown.

    Raises:
        InvalidInput, TooLarge, Unsupported: the file, its kernel or an option cannot be used; the text says why.
    """
    if any(getattr(arguments, name) is not None for name in OF_A_RUN):
        raise InvalidInput("--grid and --arg need --run")
    block = None if arguments.block is None else read_block(arguments.block, capability)
    dynamic = read_dynamic_shared(arguments.dynamic_shared, capability)
    code = machine_code_of(file, arguments.kernel_name, capability.compute_capability)
    found = file_kernel(code, capability, gpu, block=block, dynamic_shared_bytes=dynamic)
    loop = main_loop(code.code)
    mix = mix_of(loop if loop else code.code)
    shown = None if arguments.all else loop
    if arguments.json:
        full = found.occupancy
        print_json(
            {
                "kernel": code.kernel,
                "file": arguments.kernel,
                "gpu": gpu.name,
                "main_loop": _loop_json(mix) if loop else None,
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
                "occupancy": full.occupancy if full else None,
                "limiters": full.limiters if full else None,
                **_bound_json(found.bound),
                "instructions": _lines_json(code.lines, shown),
                "readings": list(readings([arguments.gpu])),
            }
        )
        return EXIT_OK
    made = f"assembled by CUDA {code.toolkit} for {code.target}" if code.toolkit else f"machine code for {code.target}"
    print(f"{code.kernel} of {Path(arguments.kernel).name} on {gpu.name}, {made}")
    print(f"blocks of {' x '.join(map(str, found.block))} threads: {ORIGINS[found.block_origin]}")
    print(", ".join(_in_words(code, found.dynamic_shared_bytes)))
    _print_code(code.lines, shown)
    _print_mix(mix, loop)
    _print_file_bound(code, found)
    return EXIT_OK


def _read(path: Path) -> KernelFile:
    if path.exists() and not path.is_file():
        raise InvalidInput(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            return read_kernel_file(file.read(MOST_BYTES + 1).removeprefix(b"\xef\xbb\xbf"))
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error


def _print_file_bound(code: MachineCode, found: FileKernel) -> None:
    if found.occupancy is None:
        print("occupancy unknown: the file does not state the registers per thread")
    elif found.occupancy.reason:
        print(f"occupancy 0: {found.occupancy.reason}")
    else:
        _print_bound(found.bound, found.occupancy)
        if code.reallocated:
            print("Occupancy is computed from the registers at launch; setmaxnreg moves them between a block's warps.")
        if found.bound.flop_per_s is not None:
            print("Memory is not part of this bound: the bytes that the kernel moves are unknown.")


def _in_words(code: MachineCode, dynamic_shared_bytes: int) -> list[str]:
    """Return what the compiler made of a kernel, a few words each; what is unknown is said to be."""
    live = most_live(code.lines)
    of_them = "live at once" if code.reallocated else "of them live"
    spills = (
        "spills unknown: a cubin does not state them" if code.spill_bytes is None else f"{code.spill_bytes} B of spills"
    )
    added = format_bytes(dynamic_shared_bytes) if dynamic_shared_bytes else "none"
    unsaid = (
        " (the file declares dynamic shared memory: give its bytes with --dynamic-shared)"
        if asks_for_shared(code, dynamic_shared_bytes)
        else ""
    )
    return [
        f"{len(code.lines)} instructions",
        registers_in_words(code),
        *([] if live is None else [f"at most {live} {of_them}"]),
        spills,
        *([f"{format_bytes(code.local_bytes)} of stack"] if code.local_bytes else []),
        f"{format_bytes(code.shared_bytes)} of static and {added} of dynamic shared memory{unsaid}",
    ]
