"""`gpuexplore occupancy`: how full a CUDA kernel can make a GPU, from one of our kernels or from bare numbers."""

import argparse
from dataclasses import asdict
from math import prod
from typing import Any

from gpuexplore.analysis.occupancy import Occupancy, occupancy, read_multiprocessors, waves
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say_readings
from gpuexplore.core import InvalidInput, check_known, format_bytes, format_percent, whole_typed
from gpuexplore.core.dtypes import spelled
from gpuexplore.features.machine_code.compiling import Target, compiled_kernel
from gpuexplore.hardware import (
    CAPABILITIES,
    Accelerator,
    ComputeCapability,
    capability_named,
    capability_of,
    gpu_named,
    readings,
)
from gpuexplore.kernels.geometry import Geometry, read_block
from gpuexplore.operations import OPERATIONS, Implementation, Operation, operation_named
from gpuexplore.shapes import parse_shape


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `occupancy`; values stay text."""
    parser.add_argument(
        "kernel", nargs="?", default="", metavar="OPERATION/IMPLEMENTATION", help="a CUDA kernel, compiled here"
    )
    declare(
        parser.add_mutually_exclusive_group(required=True),
        {
            "--gpu NAME": "a driver name or key of `specs`",
            "--cc NUMBER": f"compute capability: {', '.join(CAPABILITIES)}",
        },
    )
    parser.add_argument(
        "--multiprocessors",
        metavar="N",
        help="multiprocessors of the GPU (default: those of --gpu); needs --size or --shape",
    )
    declare(
        parser.add_mutually_exclusive_group(),
        {
            "--size N": "size of the kernel's operation, else number of elements, one per thread; prints waves",
            "--shape AXES": "shape of the kernel's operation, like m=100000,n=100; prints waves",
        },
    )
    declare(
        parser,
        {
            "--block X[,Y[,Z]]": "threads per block (default: the kernel's own)",
            "--dtype NAME": f"dtype of the kernel (default: {DEFAULT_DTYPE})",
            "--registers N": "registers per thread, without a kernel",
            "--shared BYTES": "shared memory per block, without a kernel (default: 0)",
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print blocks and warps per multiprocessor, their share of the most, the limiter, and the waves of a size."""
    row = None if arguments.gpu is None else gpu_named(arguments.gpu)
    capability = capability_of(row) if row else capability_named(arguments.cc)
    multiprocessors = _multiprocessors(arguments, row)
    about = _compiled(arguments, capability) if arguments.kernel else _numbers(arguments, capability)
    answer = occupancy(
        capability,
        **{name: about.pop(name) for name in ("threads_per_block", "registers_per_thread", "shared_bytes_per_block")},
    )
    passing: dict[str, Any] = {}
    if multiprocessors:
        blocks = _grid_blocks(arguments, answer)
        per_multiprocessor = answer.blocks_per_multiprocessor
        found = waves(blocks, per_multiprocessor, multiprocessors) if per_multiprocessor else None
        passing = {
            "multiprocessors": multiprocessors,
            "grid_blocks": blocks,
            "waves": {"count": found.count, **asdict(found)} if found else None,
        }
    if arguments.json:
        read = {"readings": list(readings([arguments.gpu]))} if arguments.gpu else {}
        print_json({**asdict(answer), "limiters": answer.limiters, **about, **passing, **read})
    else:
        say_readings([arguments.gpu or ""])
        _print(answer, about)
        if passing.get("waves"):
            _print_waves(passing["waves"], passing["grid_blocks"], passing["multiprocessors"])
    return EXIT_OK


def _multiprocessors(arguments: argparse.Namespace, row: Accelerator | None) -> int | None:
    """Return the multiprocessors that run a grid; None where no size was given, so that there is no grid."""
    typed = arguments.multiprocessors
    if arguments.size is None and arguments.shape is None:
        if typed is not None:
            raise InvalidInput.of("multiprocessors", typed, "none without --size or --shape")
        return None
    if typed is not None:
        return read_multiprocessors(typed)
    if row is None or row.multiprocessors is None:
        raise InvalidInput("give --multiprocessors: with a size, they decide the number of waves")
    return row.multiprocessors


def _print_waves(found: dict[str, Any], blocks: int, multiprocessors: int) -> None:
    last = f"the last of {found['tail_blocks']} blocks" if found["tail_blocks"] else "all full"
    print(
        f"{blocks} blocks on {multiprocessors} multiprocessors, {found['blocks_per_wave']} at once: {found['count']} "
        f"wave{'s'[: found['count'] > 1]}, {last}, slot utilization {format_percent(found['efficiency'])}"
    )


def _grid_blocks(arguments: argparse.Namespace, answer: Occupancy) -> int:
    if arguments.kernel:
        operation, _, geometry = kernel_named(arguments.kernel)
        shape = parse_shape(arguments.shape or arguments.size, operation)
        capability = capability_named(answer.compute_capability)
        block = None if arguments.block is None else read_block(arguments.block, capability)
        return geometry.launch(operation.output(shape), block).blocks
    if arguments.shape is not None:
        raise InvalidInput.of(
            "shape", arguments.shape, "none without OPERATION/IMPLEMENTATION; use --size for a number of elements"
        )
    return -(-whole_typed("size", arguments.size, 2**40) // answer.threads_per_block)


def _numbers(arguments: argparse.Namespace, capability: ComputeCapability) -> dict[str, Any]:
    """Return what a block needs, as it was typed."""
    if arguments.dtype is not None:
        raise InvalidInput.of("dtype", arguments.dtype, "none without OPERATION/IMPLEMENTATION")
    if arguments.block is None or arguments.registers is None:
        raise InvalidInput("give OPERATION/IMPLEMENTATION, or both --block and --registers")
    most_shared = capability.max_shared_bytes_per_block_opt_in
    return {
        "threads_per_block": prod(read_block(arguments.block, capability)),
        "registers_per_thread": whole_typed("registers", arguments.registers, capability.max_registers_per_thread),
        "shared_bytes_per_block": 0
        if arguments.shared is None
        else whole_typed("shared", arguments.shared, most_shared, least=0),
    }


def _compiled(arguments: argparse.Namespace, capability: ComputeCapability) -> dict[str, Any]:
    """Return what a block of one of our kernels needs, and what else the compiler says."""
    for name in ("registers", "shared"):
        if getattr(arguments, name) is not None:
            raise InvalidInput.of(name, getattr(arguments, name), "none with a kernel, which determines it")
    operation, implementation, geometry = kernel_named(arguments.kernel)
    dtype = dtype_of(arguments.dtype, operation)
    block = geometry.checked(None if arguments.block is None else read_block(arguments.block, capability))
    made = compiled_kernel(Target(operation.name, implementation.name, dtype, capability.compute_capability, block))
    return {
        "operation": operation.name,
        "implementation": implementation.name,
        "dtype": dtype,
        "block": list(block),
        "local_bytes": made.local_bytes,
        "spill_bytes": made.spill_bytes,
        "threads_per_block": prod(block),
        "registers_per_thread": made.registers_per_thread,
        "shared_bytes_per_block": made.shared_bytes,
    }


def _print(answer: Occupancy, about: dict[str, Any]) -> None:
    if about:
        block = " x ".join(map(str, about["block"]))
        print(f"{about['operation']}/{about['implementation']} in {about['dtype']}, blocks of {block}, ", end="")
        print(f"{about['local_bytes']} B local memory per thread, {about['spill_bytes']} B of spills")
    shared = format_bytes(answer.shared_bytes_per_block)
    print(f"compute capability {answer.compute_capability}: {answer.threads_per_block} threads per block, ", end="")
    print(f"{answer.registers_per_thread} registers per thread, {shared} shared memory per block")
    if answer.limiter is None:
        print(f"cannot be launched: {answer.reason}")
        return
    print(
        f"occupancy {format_percent(answer.occupancy)}: {answer.blocks_per_multiprocessor} blocks, "
        f"{answer.active_warps} of {answer.max_warps} warps per multiprocessor, {answer.limited_by}"
    )
    print_columns([("limit", "blocks"), *((name, str(blocks)) for name, blocks in answer.limits.items())])


DEFAULT_DTYPE = "fp32"


def dtype_of(text: str | None, operation: Operation) -> str:
    """Return the dtype, the default one for None.

    Raises:
        InvalidInput: the operation does not have it.
    """
    dtype = DEFAULT_DTYPE if text is None else spelled(text)
    check_known(f"dtype of {operation.name}", dtype, operation.dtypes)
    return dtype


def kernel_named(text: str) -> tuple[Operation, Implementation, Geometry]:
    """Return the CUDA kernel that `matmul/numba-cuda-naive` names.

    Raises:
        InvalidInput: there is no such kernel.
    """
    operation_name, slash, name = text.partition("/")
    if not slash:
        raise InvalidInput.of("kernel", text, f"OPERATION/IMPLEMENTATION: {_kernels()}")
    operation = operation_named(operation_name)
    implementation = operation.implementation_named(name)
    if implementation.geometry is None:
        raise InvalidInput.of("CUDA kernel", text, _kernels())
    return operation, implementation, implementation.geometry


def _kernels() -> str:
    every = (
        (operation, implementation) for operation in OPERATIONS.values() for implementation in operation.implementations
    )
    return ", ".join(
        f"{operation.name}/{implementation.name}" for operation, implementation in every if implementation.geometry
    )
