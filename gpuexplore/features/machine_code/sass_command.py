"""`gpuexplore sass`: the machine code of a CUDA kernel, what its main loop consists of, and the rate it allows."""

import argparse
from math import prod
from typing import Any

from gpuexplore.analysis.occupancy import Occupancy, occupancy
from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.output import print_json, say_readings
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.machine_code.analysis import (
    InstructionBound,
    flop_per_byte,
    instruction_bound,
)
from gpuexplore.features.machine_code.compiling import Target, compiled_kernel
from gpuexplore.features.machine_code.occupancy_command import DEFAULT_DTYPE, dtype_of, kernel_named
from gpuexplore.features.machine_code.sass_output import (
    OF_A_RUN,
    bound_json,
    is_file_named,
    lines_json,
    loop_json,
    print_bound,
    print_code,
    print_file_kernel,
    print_mix,
)
from gpuexplore.hardware import gpu_named, readings
from gpuexplore.hardware.capabilities import capability_of
from gpuexplore.kernels.files import SUFFIXES
from gpuexplore.kernels.files.machine_code import CompiledKernel, lines_of_ours
from gpuexplore.kernels.geometry import Geometry, read_block
from gpuexplore.kernels.sass import facts_of, main_loop, mix_of, most_live
from gpuexplore.operations.compiled import recorded_elsewhere
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.shapes import parse_shape

DEFAULT_SIZE = "4096"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `sass`; values stay text."""
    add = parser.add_argument
    add(
        "kernel",
        metavar="OPERATION/IMPLEMENTATION|FILE",
        help="a CUDA kernel of ours, or anybody's file: PTX or a cubin",
    )
    add("--gpu", required=True, metavar="NAME", help="a driver name or key of `specs`")
    add("--dtype", metavar="NAME", help=f"of our kernel (default: {DEFAULT_DTYPE})")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--size", metavar="N", help=f"of the operation, for the roofline (default: {DEFAULT_SIZE})")
    size.add_argument("--shape", metavar="AXES", help="of the operation, like m=100000,n=100, for the roofline")
    add(
        "--block",
        metavar="X[,Y[,Z]]",
        help="threads of a block (default: the kernel's own; of a file that has none: 256)",
    )
    add("--kernel", dest="kernel_name", metavar="NAME", help="of a file with several: its name or a part of it")
    add("--dynamic-shared", metavar="BYTES", help="shared memory of a block that the launch of a file's kernel adds")
    add("--run", action="store_true", help="run the kernel of a PTX file in the interpreter instead, without a GPU")
    add("--grid", metavar="X[,Y[,Z]]", help="blocks of --run (default: 1)")
    add(
        "--arg",
        action="append",
        metavar="NAME=VALUE",
        help="of --run, in order: a=randn:fp32:256, out=zeros:fp32:256, n=256",
    )
    add("--all", action="store_true", help="print all instructions, not the main loop only")
    add("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the main loop, what it consists of, and the upper bound of the rate with what limits it first."""
    gpu = gpu_named(arguments.gpu)
    if not arguments.json:
        say_readings([arguments.gpu])
    if is_file_named(arguments.kernel):
        _refuse(arguments, ("dtype", "size", "shape"), "an OPERATION/IMPLEMENTATION, and this is a file")
        return print_file_kernel(arguments, gpu, capability_of(gpu))
    operation, implementation, geometry = _ours(arguments.kernel)
    _refuse(
        arguments,
        ("kernel_name", "dynamic_shared", *OF_A_RUN),
        "a file of PTX or a cubin, and this is a kernel of ours",
    )
    if arguments.run:
        raise InvalidInput("--run is for a file of PTX; our kernels are run on the page Kernels")
    capability = capability_of(gpu)
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
    if arguments.json:
        about = {"kernel": name, "dtype": dtype, "gpu": gpu.name, "block": block, "shape": dict(shape.axes)}
        of_loop = {
            "main_loop": loop_json(mix) if loop else None,
            "other_toolkits": _elsewhere(target) if block == geometry.blocks[0] else None,
        }
        further = {
            "most_live_registers": most_live(lines),
            "instructions": lines_json(lines, None if arguments.all else loop),
            "readings": list(readings([arguments.gpu])),
        }
        print_json({**about, **of_loop, **_facts(made, bound, full), **further})
        return EXIT_OK
    print(f"{name} in {dtype} for {gpu.name}, blocks of {' x '.join(map(str, block))}, CUDA {made.toolkit}")
    live = f" (at most {most_live(lines)} live)" if most_live(lines) else ""
    registers = f"{made.registers_per_thread} registers per thread{live}"
    print(f"{len(code)} instructions, {registers}, {made.spill_bytes} B of spills")
    print_code(lines, None if arguments.all else loop)
    print_mix(mix, loop)
    print_bound(bound, full)
    return EXIT_OK


def _ours(text: str) -> tuple[Operation, Implementation, Geometry]:
    try:
        return kernel_named(text)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; or a file that is there, or ends in {' or '.join(SUFFIXES)}") from error


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], owner: str) -> None:
    """Refuse options that say something of the other kind of kernel."""
    for name in names:
        if (value := getattr(arguments, name)) is not None:
            option = "--" + name.replace("kernel_name", "kernel").replace("_", "-")
            raise InvalidInput(f"{option} {value}: this option is for {owner}")


def _facts(made: CompiledKernel, bound: InstructionBound, full: Occupancy) -> dict[str, Any]:
    return {
        "target": made.target,
        "toolkit": made.toolkit,
        "registers_per_thread": made.registers_per_thread,
        "spill_bytes": made.spill_bytes,
        "occupancy": full.occupancy,
        "limiters": full.limiters,
        "roofline_flop_per_s": bound.roofline_flop_per_s,
        **bound_json(bound),
    }


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
