"""A CUDA kernel's PTX run in the interpreter on a small case, judged as a measured one, one block of it kept.

Needs no GPU and no Numba. Nothing is timed.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from gpuexplore.core import Accuracy, InvalidInput, Shape, TooLarge
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.kernels.geometry import WARP, Lengths
from gpuexplore.kernels.ptx import BlockTrace, Grid, LaunchOptions, TraceStep, addresses_of, parse, run
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import Reference, make_inputs
from gpuexplore.operations import Operation, operation_named

MOST_BYTES = 2**22  # of all arrays
MOST_WORK = 20_000_000  # thread instructions: some ten seconds
MOST_STEPS = 8000  # steps of a block that are recorded


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """A launch to be interpreted: a kernel in PTX, on inputs of a shape, in a grid.

    Attributes:
        ptx: of the kernel.
        operation: its name.
        dtype: its name.
        shape: of the operation.
        grid: blocks along x, y and z.
        threads: of a block, likewise.
        block: index of the block whose steps are kept.
        dynamic_shared_bytes: shared memory of a block that its launch asks for.
    """

    ptx: str
    operation: str
    dtype: str
    shape: Shape
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    block: tuple[int, int, int] = (0, 0, 0)
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, slots=True)
class RunArray:
    """An array of a launch: its name on the page, its address and layout."""

    name: str
    shape: Lengths
    item_bytes: int
    address: int

    @property
    def size_bytes(self) -> int:
        """Bytes of all elements."""
        return prod(self.shape) * self.item_bytes

    def holds(self, addresses: np.typing.NDArray[Any]) -> np.typing.NDArray[np.bool_]:
        """Return which addresses are inside it."""
        return (addresses >= self.address) & (addresses < self.address + self.size_bytes)


@dataclass(frozen=True, slots=True)
class BlockRun:
    """The results of a kernel in the interpreter.

    Attributes:
        request: what was run.
        arrays: the arguments in their order, the output last.
        steps: of the block that was asked for, in the order they were executed in.
        step_count: how many there were; the first MOST_STEPS are kept.
        shared_arrays: where each array of shared memory begins, in bytes, in order.
        faults: races, accesses out of bounds and their like in any block, a sentence each.
        warp_instructions: that all blocks executed.
        unwritten_bytes: of the output.
        accuracy: of the output against the float64 reference.
    """

    request: KernelLaunch
    arrays: tuple[RunArray, ...]
    steps: tuple[TraceStep, ...]
    step_count: int
    shared_arrays: tuple[int, ...]
    faults: tuple[str, ...]
    warp_instructions: int
    unwritten_bytes: int
    accuracy: Accuracy

    @property
    def is_right(self) -> bool:
        """True if all blocks wrote all correct values without a fault."""
        worst = self.accuracy.worst
        near = self.accuracy.within and (worst is None or worst.share <= 1)
        return near and not self.faults and not self.unwritten_bytes

    @property
    def warps(self) -> int:
        """Warps of a block."""
        return -(-prod(self.request.threads) // WARP)


def check_size(operation: Operation, shape: Shape, dtype: str) -> None:
    """Refuse a shape whose arrays take more memory than the interpreter is given.

    Raises:
        TooLarge: they do; the text carries both figures.
    """
    lengths = (*operation.inputs(shape), operation.output(shape))
    size_bytes = sum(map(prod, lengths)) * DTYPES[dtype].storage.itemsize
    if size_bytes > MOST_BYTES:
        raise TooLarge(f"arrays of {size_bytes:,} bytes are more than the interpreter's limit of {MOST_BYTES:,}")


def interpreted(request: KernelLaunch) -> BlockRun:
    """Return the results of a kernel in the interpreter.

    Raises:
        InvalidInput: the kernel takes arrays of other dimensions.
        TooLarge: the arrays take more memory than is allowed here.
        TooSlow: it would execute, or has executed, more instructions than are allowed here.
        Unsupported: an instruction is not known to the interpreter.
    """
    operation = operation_named(request.operation)
    dtype = DTYPES[request.dtype]
    shape = request.shape
    check_size(operation, shape, request.dtype)
    inputs = make_inputs(operation, shape, dtype, "normal")
    out = np.zeros(operation.output(shape), dtype.storage)
    program = parse(request.ptx)
    shaped = (*inputs, out)
    arrays = _as_passed(shaped, len(program.parameters))
    trace = BlockTrace(request.block, MOST_STEPS)
    options = LaunchOptions(unwritten=(len(inputs),), most_work=MOST_WORK, observer=trace)
    grid = Grid(request.grid, request.threads, dynamic_shared_bytes=request.dynamic_shared_bytes)
    report = run(program, grid, arrays, options)
    found = dtype.widen(report.arrays[-1].reshape(out.shape))
    named = zip((*"ABCDEFG"[: len(inputs)], "out"), shaped, addresses_of(arrays), strict=True)
    return BlockRun(
        request=request,
        arrays=tuple(RunArray(name, array.shape, array.itemsize, address) for name, array, address in named),
        steps=tuple(trace.steps),
        step_count=trace.count,
        shared_arrays=tuple(sorted(program.shared.offsets.values())),
        faults=tuple(map(str, report.faults)),
        warp_instructions=report.warp_instructions,
        unwritten_bytes=report.unwritten[-1],
        accuracy=judge(found, Reference(operation, dtype, inputs), shape),
    )


def _as_passed(arrays: tuple[np.typing.NDArray[Any], ...], parameters: int) -> list[np.typing.NDArray[Any]]:
    """Return the arrays as a kernel of so many parameters takes them: as they are, or flat.

    Raises:
        InvalidInput: it takes neither.
    """
    if parameters == sum(5 + 2 * array.ndim for array in arrays):  # numba-cuda passes five, and two for each axis
        return list(arrays)
    if parameters == (5 + 2) * len(arrays):
        return [array.reshape(-1) for array in arrays]
    dimensions = ", ".join(str(array.ndim) for array in arrays)
    raise InvalidInput(
        f"arrays of {dimensions} axes: the kernel was compiled for other arrays ({parameters} parameters)"
    )
