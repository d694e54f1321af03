"""`gpuexplore sass FILE --run`: PTX of anybody run by the interpreter, and the arrays afterwards; nothing is timed."""

import argparse
from typing import Any

import numpy as np

from gpuexplore.analysis.kernels.file_kernel import USUAL_BLOCK, read_dynamic_shared
from gpuexplore.cli import EXIT_FAILED, EXIT_OK
from gpuexplore.cli.output import print_json
from gpuexplore.devices.capabilities import ComputeCapability
from gpuexplore.errors import InvalidInput
from gpuexplore.jobs.running_files import FileLaunch, run_kernel
from gpuexplore.kernels.files import KernelFile, PtxText, kernel_chosen
from gpuexplore.kernels.files.arguments import KernelArgument, read_argument
from gpuexplore.kernels.geometry import AXES, Block, read_block
from gpuexplore.kernels.ptx import LaunchReport
from gpuexplore.units import read_whole

OF_A_RUN = ("grid", "arg")
MOST_BLOCKS = 65_535  # along each axis
SHOWN = 8  # elements of an array


def print_run(arguments: argparse.Namespace, file: KernelFile, capability: ComputeCapability) -> int:
    """Print what the interpreter found, and what the arrays hold afterwards; fail where the kernel did wrong.

    Raises:
        InvalidInput, TooLarge, TooSlow, Unsupported: it cannot be run; the text says why.
    """
    if not isinstance(file, PtxText):
        raise InvalidInput("--run: the interpreter runs PTX, and this is a cubin")
    name = kernel_chosen([each.name for each in file.kernels], arguments.kernel_name)
    kernel = next(each for each in file.kernels if each.name == name)
    asked = None if arguments.block is None else read_block(arguments.block, capability)
    given = tuple(map(read_argument, arguments.arg or ()))
    launch = FileLaunch(
        grid=_grid(arguments.grid),
        block=asked or kernel.block or USUAL_BLOCK,
        dynamic_shared_bytes=read_dynamic_shared(arguments.dynamic_shared, capability),
        arguments=given,
    )
    report = run_kernel(file, kernel, launch)
    if arguments.json:
        print_json(_as_json(report, given))
    else:
        _print(report, given, launch)
    return EXIT_FAILED if report.faults else EXIT_OK


def _grid(text: str | None) -> Block:
    lengths = tuple(read_whole(word) or 0 for word in (text or "1").split(","))
    if len(lengths) > AXES or not all(1 <= length <= MOST_BLOCKS for length in lengths):
        raise InvalidInput.of("grid", text, f"X or X,Y or X,Y,Z of 1 to {MOST_BLOCKS} blocks each")
    return lengths


def _arrays(report: LaunchReport, given: tuple[KernelArgument, ...]) -> dict[str, Any]:
    named = [argument for argument in given if argument.array is not None]
    return {each.name: each.values(stored) for each, stored in zip(named, report.arrays, strict=True)}


def _as_json(report: LaunchReport, given: tuple[KernelArgument, ...]) -> dict[str, Any]:
    """Return the report; NaN and infinities are text, as strict JSON has neither."""
    return {
        "faults": [str(fault) for fault in report.faults],
        "warp_instructions": report.warp_instructions,
        "arrays": {
            name: [value if np.isfinite(value) else str(value) for value in values.tolist()]
            for name, values in _arrays(report, given).items()
        },
    }


def _print(report: LaunchReport, given: tuple[KernelArgument, ...], launch: FileLaunch) -> None:
    grid, block = (" x ".join(map(str, lengths)) for lengths in (launch.grid, launch.block))
    told = f"{report.warp_instructions:,} warp instructions in the interpreter, which tells no time"
    print(f"grid of {grid}, blocks of {block} threads: {told}")
    for name, values in _arrays(report, given).items():
        shown = ", ".join(f"{value:.6g}" for value in values[:SHOWN].tolist())
        print(f"{name} ({values.size}): {shown}{', ...' if values.size > SHOWN else ''}")
    print(*(report.faults or ["no races, no accesses out of bounds or misaligned"]), sep="\n")
