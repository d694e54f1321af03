"""A CUDA kernel as PTX and machine code, made on a machine that needs no GPU, and what the compiler says about it.

Numba makes PTX with NVVM; nvJitLink assembles it as the driver would, and reports registers and spills.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.compiled_kernel import CompiledKernel

_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"\.shared \.align \d+ \.b8 \S+\[(\d+)\]")  # the linker's figure adds the system's 1 KiB on 9.0


def array_type(storage: str, dimensions: int) -> Any:
    """Return Numba's type of an array in C order whose elements are `storage`, e.g. `float32`."""
    from numba import cuda

    return getattr(cuda.types, storage)[(slice(None),) * (dimensions - 1) + (slice(None, None, 1),)]


def compile_kernel(
    kernel: Callable[..., None], signature: Sequence[Any], *, compute_capability: str, options: Mapping[str, Any]
) -> CompiledKernel:
    """Return `kernel` compiled for arguments of the types in `signature`.

    Args:
        kernel: a plain function, as `CudaKernel.make` returns it.
        signature: Numba's types of its arguments.
        compute_capability: what it is compiled for, e.g. `8.0`.
        options: further arguments of `numba.cuda.compile`.

    Raises:
        Unsupported: the CUDA toolkit that is installed does not know the compute capability.
    """
    return next(compile_kernels(kernel, signature, compute_capabilities=[compute_capability], options=options))


def compile_kernels(
    kernel: Callable[..., None],
    signature: Sequence[Any],
    *,
    compute_capabilities: Sequence[str],
    options: Mapping[str, Any],
) -> Iterator[CompiledKernel]:
    """Yield what `compile_kernel` returns for each compute capability; Python is translated once, which takes longest.

    Raises:
        Unsupported: the CUDA toolkit that is installed does not know a compute capability.
    """
    library = _translate(kernel, signature, compute_capabilities[0], options)
    for capability in compute_capabilities:
        ptx = _ptx(library, capability)
        cubin, log = _assemble(ptx, capability)
        stack, stores, loads = (sum(map(int, column)) for column in zip(*_STACK.findall(log), strict=True))
        yield CompiledKernel(
            compute_capability=capability,
            ptx=ptx,
            registers_per_thread=max(map(int, _REGISTERS.findall(log))),
            shared_bytes=sum(map(int, _SHARED.findall(ptx))),
            local_bytes=stack,
            spill_store_bytes=stores,
            spill_load_bytes=loads,
            cubin_bytes=len(cubin),
        )


def _translate(
    kernel: Callable[..., None], signature: Sequence[Any], capability: str, options: Mapping[str, Any]
) -> Any:
    """Return the kernel as LLVM code: the first half of `numba.cuda.compile`, which does not offer the halves."""
    from numba.cuda.compiler import _compile_pyfunc_with_fixup

    given = {"device": False, "abi": "numba", **options}
    library, _ = _compile_pyfunc_with_fixup(kernel, tuple(signature), cc=_pair(capability), **given)
    return library


def _ptx(library: Any, capability: str) -> str:
    from numba.cuda.cudadrv.error import CCSupportError

    try:
        (text,) = library.get_asm_strs(cc=_pair(capability))
    except CCSupportError as error:
        raise _unknown(capability) from error
    return str(text)


def _pair(capability: str) -> tuple[int, int]:
    major, minor = map(int, capability.split("."))
    return major, minor


def _assemble(ptx: str, capability: str) -> tuple[bytes, str]:
    from cuda.bindings.nvjitlink import nvJitLinkError
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(arch=f"sm_{capability.replace('.', '')}", verbose=True, ptxas_options=["-v"])
    try:
        linker = Linker(ObjectCode.from_ptx(ptx.encode()), options=options)
        code = linker.link("cubin").code
    except nvJitLinkError as error:
        if "ARCH" in str(error):
            raise _unknown(capability) from error
        raise
    return bytes(code), str(linker.get_info_log())


def _unknown(capability: str) -> Unsupported:
    from numba import cuda

    version = ".".join(map(str, cuda.runtime.get_version()))
    return Unsupported(
        f"the CUDA {version} toolkit installed here does not compile for compute capability {capability}"
    )
