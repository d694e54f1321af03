"""`gpuexplore sass`: the machine code of a CUDA kernel, what its main loop consists of, and the rate it allows."""

import argparse
from math import prod
from typing import Any

from gpuexplore.analysis.kernels.instruction_bound import InstructionBound, flop_per_byte, instruction_bound
from gpuexplore.analysis.kernels.occupancy import Occupancy, occupancy
from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.kernel_arguments import DEFAULT_DTYPE, block_of, dtype_of, gpu_named, kernel_named
from gpuexplore.cli.output import print_json
from gpuexplore.devices.capabilities import capability_of
from gpuexplore.jobs.compiling import Target, compiled_kernel
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.sass import Instruction, Loop, Mix, facts_of, main_loop, mix_of
from gpuexplore.kernels.sass.disassembler import disassembled
from gpuexplore.operations.compiled import recorded_elsewhere
from gpuexplore.shapes import parse_shape
from gpuexplore.units import format_bytes_per_s, format_flop_per_s, format_percent

DEFAULT_SIZE = "4096"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `sass`; values stay text."""
    add = parser.add_argument
    add("kernel", metavar="OPERATION/IMPLEMENTATION", help="a CUDA kernel, compiled here")
    add("--gpu", required=True, metavar="NAME", help="a driver name or key of `specs`")
    add("--dtype", metavar="NAME", help=f"of the kernel (default: {DEFAULT_DTYPE})")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--size", metavar="N", help=f"of the operation, for the roofline (default: {DEFAULT_SIZE})")
    size.add_argument("--shape", metavar="AXES", help="of the operation, like m=100000,n=100, for the roofline")
    add("--block", metavar="X[,Y[,Z]]", help="threads of a block (default: the kernel's own)")
    add("--all", action="store_true", help="print all instructions, not the main loop only")
    add("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the main loop, what it consists of, and the upper bound of the rate with what limits it first."""
    operation, implementation, geometry = kernel_named(arguments.kernel)
    gpu = gpu_named(arguments.gpu)
    capability, dtype = capability_of(gpu), dtype_of(arguments.dtype, operation)
    shape = parse_shape(arguments.shape or arguments.size or DEFAULT_SIZE, operation)
    block = geometry.checked(None if arguments.block is None else block_of(arguments.block, capability))
    name = f"{operation.name}/{implementation.name}"
    target = Target(operation.name, implementation.name, dtype, capability.compute_capability, block)
    made = compiled_kernel(target)
    code = disassembled(made.cubin)
    full = occupancy(
        capability,
        threads_per_block=prod(block),
        registers_per_thread=made.registers_per_thread,
        shared_bytes_per_block=made.shared_bytes,
    )
    loop, facts = main_loop(code), facts_of(code)
    mix = mix_of(loop.instructions if loop else code)
    bound = instruction_bound(facts, gpu, full, flop_per_byte(operation, shape, dtype))
    if arguments.json:
        about = {"kernel": name, "dtype": dtype, "gpu": gpu.name, "block": block, "shape": dict(shape.axes)}
        of_loop = {
            "main_loop": _loop(mix) if loop else None,
            "other_toolkits": _elsewhere(target) if block == geometry.blocks[0] else None,
        }
        print_json({**about, **of_loop, **_facts(made, bound, full)})
        return EXIT_OK
    print(f"{name} in {dtype} for {gpu.name}, blocks of {' x '.join(map(str, block))}, CUDA {made.toolkit}")
    print(f"{len(code)} instructions, {made.registers_per_thread} registers per thread, {made.spill_bytes} B of spills")
    _print_code(code, None if arguments.all else loop)
    _print_mix(mix, "main loop" if loop else "the whole kernel, which has no loop")
    _print_bound(bound, full)
    return EXIT_OK


def _facts(made: CompiledKernel, bound: InstructionBound, full: Occupancy) -> dict[str, Any]:
    return {
        "target": made.target,
        "toolkit": made.toolkit,
        "registers_per_thread": made.registers_per_thread,
        "spill_bytes": made.spill_bytes,
        "occupancy": full.occupancy,
        "bound_flop_per_s": bound.flop_per_s,
        "bound_bytes_per_s": bound.bytes_per_s,
        "roofline_flop_per_s": bound.roofline_flop_per_s,
        "bottleneck": bound.bottleneck,
        "evidence": bound.evidence or None,
        "cycles": dict(bound.cycles),
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


def _loop(mix: Mix) -> dict[str, Any]:
    return {
        "instructions": mix.instructions,
        "ffma": mix.by_name.get("FFMA", 0),
        "hmma": mix.tensor,
        "fma_fraction": mix.multiply_add_share,
        "loads": dict(mix.loads),
        "stores": dict(mix.stores),
        "mix": dict(mix.by_name),
    }


def _print_code(code: tuple[Instruction, ...], loop: Loop | None) -> None:
    """Print a loop, and how much is left out; without one everything."""
    if loop is None:
        print(*code, sep="\n")
        return
    before = sum(instruction.address < loop.first for instruction in code)
    after = sum(instruction.address > loop.last for instruction in code)
    inside = len(code) - before - after - len(loop.instructions)
    print(f"... {before} instructions before the main loop (--all prints them)")
    print(*loop.instructions, sep="\n")
    if inside:
        print(f"... {inside} instructions of loops inside it")
    print(f"... {after} instructions after it")


def _print_mix(mix: Mix, where: str) -> None:
    most = ", ".join(f"{count} {name}" for name, count in list(mix.by_name.items())[:8])
    print(f"{where}: {mix.instructions} instructions: {most}")
    if mix.slots_per_multiply_add:
        print(
            f"{format_percent(mix.multiply_add_share)} are multiply-adds or tensor-core instructions: "
            f"{mix.slots_per_multiply_add:.3g} issue slots for each"
        )
    if moved := [f"{count} {name}" for name, count in (*mix.loads.items(), *mix.stores.items())]:
        print(f"loads and stores by bits per thread: {', '.join(moved)}")


def _print_bound(bound: InstructionBound, full: Occupancy) -> None:
    print(f"occupancy {format_percent(full.occupancy)}: {full.active_warps} warps per multiprocessor")
    if bound.flop_per_s is not None:
        share = bound.share_of_peak and f", {format_percent(bound.share_of_peak)} of the peak of its units"
        print(f"upper bound: {format_flop_per_s(bound.flop_per_s)}{share or ''}")
    if bound.roofline_flop_per_s is not None:
        rate = format_flop_per_s(bound.roofline_flop_per_s)
        print(f"roofline at this shape, unless its arrays stay in the caches: {rate}")
    if bound.bytes_per_s is not None:
        print(f"upper bound: {format_bytes_per_s(bound.bytes_per_s)} from device memory")
    print(f"{bound.evidence}." if bound.evidence else "no bound follows: nothing is computed or loaded in a loop")
