"""A CUDA kernel as PTX and machine code, made on a machine that needs no GPU, and what the compiler says about it.

It is made as `cuda.jit` makes the kernel it launches: NVVM translates to LTO-IR, which nvJitLink optimizes once more,
assembles and reports registers and spills of; from compute capability 9.0 on for the architecture-specific target.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.kernels.exhibits import Exhibit
from gpuexplore.kernels.files.machine_code import Assembled, CompiledKernel
from gpuexplore.kernels.files.ptx_text import PtxText

LINKS = 3  # of a kernel, until nvJitLink reports on it
ARCHITECTURE_SPECIFIC = (9, 0)  # numba-cuda's choice from here on, e.g. sm_90a
_STACK = re.compile(r"(\d{1,12}) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"\.shared \.align \d+ \.b8 \S+\[(\d+)\]")  # the linker's figure adds the system's 1 KiB on 9.0

_FUNCTION = re.compile(r"Function properties for (\S+)\n[^\n]*?(\d{1,12}) bytes spill stores, (\d+) bytes spill loads")
_PREFIX = re.compile(r"^ptxas (?:application )?(?:ptx input, )?(?:fatal\s+: )?")
_WORDS = ("error", "fatal")


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
        options: of `CudaKernel.jit_options`.

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
    dynamic_shared_bytes: int = 0,
) -> Iterator[CompiledKernel]:
    """Yield what `compile_kernel` returns for each compute capability; Python is translated once, which takes longest.

    Raises:
        Unsupported: the CUDA toolkit that is installed does not know a compute capability.
    """
    library = _translated(kernel, signature, compute_capabilities[0], **options)
    for capability in compute_capabilities:
        ir = _lto_ir(library, capability)
        ptx, _ = _linked(ir, capability, "ptx")
        cubin, log = _assembled(ir, capability)
        text = ptx.decode().strip("\0\n") + "\n"
        stack, stores, loads = (sum(map(int, column)) for column in zip(*_STACK.findall(log), strict=True))
        yield CompiledKernel(
            compute_capability=capability,
            target=_target(capability),
            toolkit=toolkit_version(),
            ptx=text,
            cubin=cubin,
            registers_per_thread=max(map(int, _REGISTERS.findall(log))),
            shared_bytes=sum(map(int, _SHARED.findall(text))) + dynamic_shared_bytes,
            dynamic_shared_bytes=dynamic_shared_bytes,
            local_bytes=stack,
            spill_store_bytes=stores,
            spill_load_bytes=loads,
        )


def toolkit_version() -> str:
    """Return the version of the CUDA toolkit whose NVVM and nvJitLink compile here, e.g. `13.0`."""
    from numba import cuda

    return ".".join(map(str, cuda.runtime.get_version()))


def _unknown_capability(capability: str) -> Unsupported:
    """Return the error that says which compute capabilities the installed toolkit compiles for."""
    from numba.cuda.cudadrv.nvrtc import get_supported_ccs

    accepted = ", ".join(f"{major}.{minor}" for major, minor in get_supported_ccs())
    return Unsupported(
        f"the CUDA {toolkit_version()} toolkit installed here does not compile for compute capability {capability}, "
        f"but for {accepted}"
    )


def _translated(
    kernel: Callable[..., None], signature: Sequence[Any], capability: str, *, launch_bounds: Any = None
) -> Any:
    """Return the kernel as LLVM code, as the constructor of numba-cuda's `_Kernel` makes it, which needs a GPU."""
    from numba.cuda import types
    from numba.cuda.compiler import compile_cuda, kernel_fixup
    from numba.cuda.cudadrv import nvvm

    made = compile_cuda(
        kernel,
        types.void,
        tuple(signature),
        nvvm_options={"fastmath": False, "opt": 3},
        cc=_pair(capability),
        lto=True,
    )
    function = made.library.get_function(made.fndesc.llvm_func_name)
    kernel_fixup(function, debug=False)
    nvvm.set_launch_bounds(function, launch_bounds)
    return made.library


def _lto_ir(library: Any, capability: str) -> bytes:
    from numba.cuda.cudadrv.error import CCSupportError

    major, minor = _pair(capability)
    try:
        return bytes(library.get_ltoir(cc=(major, minor, _suffix(capability))))
    except (CCSupportError, ValueError) as error:  # the second where only a smaller one is known
        raise _unknown_capability(capability) from error


def _pair(capability: str) -> tuple[int, int]:
    major, minor = map(int, capability.split("."))
    return major, minor


def _target(capability: str) -> str:
    return f"sm_{capability.replace('.', '')}{_suffix(capability)}"


def _suffix(capability: str) -> str:
    """Return `a` where numba-cuda compiles for one architecture only, which opens all of its instructions."""
    return "a" if _pair(capability) >= ARCHITECTURE_SPECIFIC else ""


def _assembled(ir: bytes, capability: str) -> tuple[bytes, str]:
    """Return machine code and a log with its registers and spills; on an H100 one log of 56 had neither.

    Raises:
        Unsupported: no log has them.
    """
    log = ""
    for _ in range(LINKS):
        cubin, log = _linked(ir, capability, "cubin")
        if _STACK.search(log) and _REGISTERS.search(log):
            return cubin, log
    raise Unsupported(f"nvJitLink reports neither registers nor spills: its log is {log!r}")


def _linked(ir: bytes, capability: str, target: Literal["ptx", "cubin"]) -> tuple[bytes, str]:
    """Return what nvJitLink makes of LTO-IR, and its log."""
    from cuda.bindings.nvjitlink import nvJitLinkError
    from cuda.core import Linker, LinkerOptions, ObjectCode

    options = LinkerOptions(
        arch=_target(capability),
        link_time_optimization=True,
        ptx=True if target == "ptx" else None,
        verbose=True,
        ptxas_options=None if target == "ptx" else ["-v"],
    )
    try:
        linker = Linker(ObjectCode.from_ltoir(ir), options=options)
        code = linker.link(target).code
    except nvJitLinkError as error:
        if "ARCH" in str(error):
            raise _unknown_capability(capability) from error
        raise
    return bytes(code), str(linker.get_info_log())


# An exhibit as the compiler sees it: PTX, registers, spills. Nothing is launched.


def compile_exhibit(exhibit: Exhibit, compute_capability: str) -> CompiledKernel:
    """Return a notebook's kernel compiled for fp32 arrays, as `cuda.jit` without options does it.

    Raises:
        Unsupported: the CUDA toolkit that is installed does not know the compute capability.
    """
    module = import_module(f"gpuexplore.kernels.exhibits.{exhibit.module}")
    signature = [array_type("float32", dimensions) for dimensions in module.DIMENSIONS]
    return compile_kernel(module.make(), signature, compute_capability=compute_capability, options={})


# PTX of users made machine code for a GPU by nvJitLink, which assembles our own kernels too; no GPU is needed.
#
# Loads CUDA's libraries and Numba: only processes of their own import it.


def assemble(module: PtxText, compute_capability: str) -> Assembled:
    """Return the machine code of a PTX module for a compute capability.

    Raises:
        InvalidInput: the PTX is wrong, or for another GPU; the text is the assembler's.
        Unsupported: the CUDA toolkit that is installed does not know the compute capability.
    """
    from cuda.bindings.nvjitlink import nvJitLinkError
    from cuda.core import Linker, LinkerOptions, ObjectCode

    target = f"sm_{compute_capability.replace('.', '')}{'a' if module.suffix else ''}"  # `a` has all of a family's `f`
    options = LinkerOptions(arch=target, verbose=True, ptxas_options=["-v"])
    try:
        linker = Linker(ObjectCode.from_ptx(module.text.encode()), options=options)
        cubin = bytes(linker.link("cubin").code)
    except nvJitLinkError as error:
        if "_ARCH" in str(error):
            raise _unknown_capability(compute_capability) from error
        raise InvalidInput(f"this PTX cannot be compiled for {target}: {_first_complaint(str(error))}") from error
    spilled = {name: int(stores) + int(loads) for name, stores, loads in _FUNCTION.findall(linker.get_info_log())}
    return Assembled(cubin, target, toolkit_version(), spilled)


def _first_complaint(log: str) -> str:
    """Return what nvJitLink's log says first, with the line of the PTX where it names one."""
    lines = [line.strip().removeprefix("nvJitLink error log: ") for line in log.replace("\0", "").splitlines()]
    named = [line for line in lines if any(word in line for word in _WORDS)]
    if not named:
        return lines[0] if lines and lines[0] else "no message"
    return " ".join(_PREFIX.sub("", named[0]).split()).replace(" : ", ": ")
