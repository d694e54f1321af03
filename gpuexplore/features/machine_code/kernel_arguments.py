"""Arguments that name a CUDA kernel of ours and its dtype."""

from gpuexplore.core.dtypes import spelled
from gpuexplore.core.errors import InvalidInput
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation

DEFAULT_DTYPE = "fp32"


def dtype_of(text: str | None, operation: Operation) -> str:
    """Return the dtype, the default one for None.

    Raises:
        InvalidInput: the operation does not have it.
    """
    dtype = DEFAULT_DTYPE if text is None else spelled(text)
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
