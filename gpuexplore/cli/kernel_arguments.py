"""Arguments that name a CUDA kernel of ours, its dtype and block, and a GPU of the table."""

from math import prod

from gpuexplore.devices import Accelerator, accelerator_named, search
from gpuexplore.devices.capabilities import ComputeCapability
from gpuexplore.errors import InvalidInput
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.units import read_whole

DEFAULT_DTYPE = "fp32"
AXES = 3
LARGEST_Z = 64  # of every compute capability, and x and y reach the most threads of a block


def gpu_named(name: str) -> Accelerator:
    """Return the row of a GPU.

    Raises:
        InvalidInput: no row has this name.
    """
    row = accelerator_named(name)
    if row is None:
        near = ", ".join(accelerator.name for accelerator in search(name)[:5]) if name.strip() else ""
        raise InvalidInput.of("gpu", name, f"names and keys of `specs`{f', near: {near}' if near else ''}")
    return row


def dtype_of(text: str | None, operation: Operation) -> str:
    """Return the dtype, the default one for None.

    Raises:
        InvalidInput: the operation does not have it.
    """
    dtype = DEFAULT_DTYPE if text is None else text
    if dtype not in operation.dtypes:
        raise InvalidInput.of(f"dtype of {operation.name}", dtype, operation.dtypes)
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


def block_of(text: str, capability: ComputeCapability) -> tuple[int, ...]:
    """Return the lengths of `16,16`, where a block of that shape can be launched.

    Raises:
        InvalidInput: it cannot.
    """
    most, words = capability.max_threads_per_block, [word.strip() for word in text.split(",")]
    lengths = tuple(length for word in words if (length := read_whole(word)) is not None)
    if (
        len(lengths) < len(words)
        or len(words) > AXES
        or not 1 <= prod(lengths) <= most
        or max(lengths[2:] or (1,)) > LARGEST_Z
    ):
        raise InvalidInput.of("block", text, f"X or X,Y or X,Y,Z of 1 to {most} threads in all, Z up to {LARGEST_Z}")
    return lengths
