"""PTX of anybody run by the interpreter, with arguments that somebody names; nothing is timed."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.errors import InvalidInput, Unsupported
from gpuexplore.jobs.compiling import in_turn
from gpuexplore.kernels.files import PtxKernel, PtxText
from gpuexplore.kernels.files.arguments import KernelArgument, bits_of
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.ptx import Grid, LaunchOptions, LaunchReport, parse, run

MOST_WORK = 100_000_000  # thread instructions: about a minute


@dataclass(frozen=True, slots=True)
class FileLaunch:
    """How a kernel of a file is launched: blocks and threads along x, y and z, and shared memory that it adds."""

    grid: Block
    block: Block
    dynamic_shared_bytes: int
    arguments: tuple[KernelArgument, ...]


def run_kernel(module: PtxText, kernel: PtxKernel, launch: FileLaunch) -> LaunchReport:
    """Return what running a kernel of a PTX module tells.

    Raises:
        InvalidInput: the kernel takes other arguments.
        TooLarge, TooSlow: arrays or work are more than the interpreter is given.
        Unsupported: the interpreter does not know an instruction, or others keep the CPU.
    """
    kinds, given = kernel.parameters, launch.arguments
    if len(given) != len(kinds):
        took = ", ".join(f".{kind}" for kind in kinds) or "none"
        raise InvalidInput(f"{len(given)} arguments: {kernel.name[:60]} takes {len(kinds)}, in this order: {took}")
    numbers = [None if each.array is not None else bits_of(each, kind) for each, kind in zip(given, kinds, strict=True)]
    grid = Grid(_three(launch.grid), _three(launch.block), dynamic_shared_bytes=launch.dynamic_shared_bytes)
    arrays = [each.array for each in given if each.array is not None]
    try:
        with in_turn():
            options = LaunchOptions(most_work=MOST_WORK, arguments=lambda addresses, _: _in_order(numbers, addresses))
            return run(parse(module.alone(kernel.name)), grid, arrays, options)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        # it was written for the PTX of our own kernels, and meets here what nobody has tried
        raise Unsupported(f"the interpreter does not understand this PTX: {error!r}"[:200]) from error


def _in_order(numbers: Sequence[int | None], addresses: Sequence[int]) -> list[int]:
    """Return the parameters: a number, or the address of the next array."""
    left = iter(addresses)
    return [next(left) if number is None else number for number in numbers]


def _three(lengths: Block) -> tuple[int, int, int]:
    x, y, z = (*lengths, 1, 1)[:3]
    return x, y, z
