"""An implementation's CUDA kernel, compiled for any GPU on a machine that has none."""

from collections.abc import Iterator, Sequence
from importlib import import_module

from gpuexplore.core import Device, Unsupported
from gpuexplore.core.dtypes import DType
from gpuexplore.kernels.cuda_compile import array_type, compile_kernels
from gpuexplore.kernels.cuda_kernel import Block, CudaKernel
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation

# of all GPUs in the table that the CUDA toolkit compiles for
COMPUTE_CAPABILITIES = ("7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")


def kernel_of(operation: Operation, implementation: Implementation) -> CudaKernel:
    """Return the kernel that an implementation exports; loads Numba."""
    return getattr(import_module(implementation.module_in(operation.name)), implementation.export)


def capabilities_for(operation: Operation, implementation: Implementation, dtype: DType) -> tuple[str, ...]:
    """Return those of `COMPUTE_CAPABILITIES` for which an implementation has a kernel of ours in `dtype`."""
    if implementation.geometry is None:
        return ()
    return tuple(
        compute_capability
        for compute_capability in COMPUTE_CAPABILITIES
        if _unsupported(operation, implementation, dtype, compute_capability) is None
    )


def _unsupported(operation: Operation, implementation: Implementation, dtype: DType, capability: str) -> str | None:
    target = Device("cuda:0", "cuda", "the target", compute_capability=capability)
    return operation.unsupported(dtype) or implementation.unsupported(dtype, target)


def compile_for(  # noqa: PLR0917 the five things that decide
    operation: Operation, implementation: Implementation, dtype: DType, block: Block | None, compute_capability: str
) -> CompiledKernel:
    """Return an implementation's kernel as it is compiled for arrays of `dtype`.

    Args:
        operation: decides how many dimensions the arrays have.
        implementation: one with a CUDA kernel of ours.
        dtype: of all arrays.
        block: its block shape; None: the default.
        compute_capability: e.g. `8.0`.

    Raises:
        InvalidInput: the kernel cannot be compiled for `block`.
        Unsupported: there is no kernel for `dtype`, or the CUDA toolkit does not know the compute capability.
    """
    return next(compile_for_each(operation, implementation, dtype, block, [compute_capability]))


def compile_for_each(  # noqa: PLR0917 the five things that decide
    operation: Operation,
    implementation: Implementation,
    dtype: DType,
    block: Block | None,
    compute_capabilities: Sequence[str],
) -> Iterator[CompiledKernel]:
    """Yield what `compile_for` returns for each compute capability, in less time."""
    for capability in compute_capabilities:
        if reason := _unsupported(operation, implementation, dtype, capability):
            raise Unsupported(reason)
    kernel = kernel_of(operation, implementation)
    chosen = kernel.geometry.checked(block)
    shape = operation.shape_of_size(2)
    shapes = (*operation.inputs(shape), operation.output(shape))
    return compile_kernels(
        kernel.make(dtype, chosen),
        [array_type(dtype.storage.name, 1 if kernel.flat else len(lengths)) for lengths in shapes],
        compute_capabilities=compute_capabilities,
        options=kernel.jit_options(dtype, chosen),
        dynamic_shared_bytes=kernel.dynamic_shared_bytes(dtype, chosen),
    )
