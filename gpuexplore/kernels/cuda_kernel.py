"""A CUDA kernel in Numba as data: its source for a dtype and a block shape, compiled once each, and its launch.

Only modules that load Numba import this, launches with it; what the web process needs is in
`gpuexplore.kernels.geometry`.

Widening and narrowing in CUDA kernels.

bf16 travels as uint16 and is the upper half of an fp32, which works on every compute capability;
fp16 is CUDA's own type. The arithmetic between is fp32.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from math import ceil, prod
from typing import Any

from numba import config
from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.backends.cuda_kernels import cuda
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.geometry import ELEMENT_PER_THREAD, GRID_STRIDE, ROW_PER_BLOCK, WARP, Block, Geometry
from gpuexplore.kernels.llvm_values import F32, I16, I32

__all__ = [
    "ELEMENT_PER_THREAD",
    "GRID_STRIDE",
    "ROW_PER_BLOCK",
    "WARP",
    "Block",
    "CudaKernel",
    "Kernel",
    "inlined",
    "narrow",
    "narrowed",
    "sum_type",
    "widen",
]

Kernel = Callable[..., None]
# a call of a device function would make Numba compile it for the GPU at hand, if there is one
inlined: Callable[[Callable[..., Any]], Callable[..., Any]] = cuda.jit(device=True, inline="always")


@dataclass(frozen=True, eq=False)  # compiled kernels are kept by identity
class CudaKernel:
    """A CUDA implementation, which its module exports as KERNEL, and as `build = KERNEL.build`.

    Numba fuses a product and a sum into one instruction as it is; its `fastmath` would also flush small numbers to 0.

    Attributes:
        make: returns the kernel, a plain function of the input arrays and the output, for a dtype and a block shape.
        geometry: its block shapes and the grid that covers the output; the one of its implementation's row.
        flat: whether the kernel takes every array as a line, whatever its shape.
        resident_threads: threads that have to fit on a multiprocessor together, which caps the registers of each.
        dynamic_shared_bytes: shared memory of a block in addition to its arrays of fixed size; what
            `cuda.shared.array(0, ...)` returns.
        options: further arguments of `cuda.jit`.
    """

    make: Callable[[DType, Block], Kernel]
    geometry: Geometry
    flat: bool = False
    resident_threads: Callable[[DType], int] = lambda _: 1
    dynamic_shared_bytes: Callable[[DType, Block], int] = lambda *_: 0
    options: Mapping[str, Any] = field(default_factory=dict)

    def jit_options(self, dtype: DType, block: Block) -> dict[str, Any]:
        """Return the arguments of `cuda.jit` for a dtype and a block shape."""
        threads = prod(block)
        return {**self.options, "launch_bounds": (threads, ceil(self.resident_threads(dtype) / threads))}

    def build(self, inputs: Sequence[Any], out: Any, dtype: DType, block: Block | None = None) -> Callable[[], object]:
        """Return a call that computes into `out` with blocks of the shape `block`; None: the default."""
        chosen = self.geometry.checked(block)
        launch = self.geometry.launch(tuple(out.shape), chosen)
        if (blocks := max(launch.grid[1:])) > 65535:
            most = "a CUDA grid has at most 65,535 blocks along y and z"
            raise Unsupported(f"{most}, and this shape takes {blocks:,} of {chosen}")
        arrays = [array.reshape(array.size) if self.flat else array for array in (*inputs, out)]
        shared_bytes = self.dynamic_shared_bytes(dtype, chosen)
        dispatcher = _compiled(self, dtype, chosen)
        configured = dispatcher[launch.grid, launch.block, 0, shared_bytes]
        if not shared_bytes:
            return lambda: configured(*arrays)

        @cache
        def allow_once() -> None:
            _allow_shared(dispatcher, arrays, shared_bytes)

        def run() -> None:
            allow_once()
            configured(*arrays)

        return run

    def launched_registers(self, dtype: DType, block: Block | None = None) -> int | None:
        """Return the registers of a thread as the driver reports them of what `build` launched; None: nothing yet."""
        found = _compiled(self, dtype, self.geometry.checked(block)).get_regs_per_thread()
        return max(found.values(), default=None)


def _allow_shared(dispatcher: Any, arrays: Sequence[Any], size_bytes: int) -> None:
    """Let the kernel for these arrays have so much dynamic shared memory: numba-cuda never asks the driver for it.

    It has to be asked for from 48 KiB on, and arrays of fixed size count among them.
    """
    from cuda.bindings.driver import CUfunction_attribute  # on a machine with a GPU only
    from numba.cuda.cudadrv.driver import driver

    kernel = dispatcher.compile(tuple(dispatcher.typeof_pyval(array) for array in arrays))
    function = kernel._codelibrary.get_cufunc()
    attribute = CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    driver.cuKernelSetAttribute(attribute, size_bytes, function.handle, function.device.id)


def sum_type(dtype: DType) -> Any:
    """Return the NumPy type that a kernel keeps its sums in."""
    return DTYPES[dtype.accumulate].storage.type


@lru_cache(maxsize=256)
def _compiled(kernel: CudaKernel, dtype: DType, block: Block) -> Any:
    if config.ENABLE_CUDASIM:
        raise Unsupported("NUMBA_ENABLE_CUDASIM is set, and Numba's simulator lacks instructions that our kernels use")
    return cuda.jit(kernel.make(dtype, block), **kernel.jit_options(dtype, block))


@intrinsic
def widen(_typing: Any, value: Any) -> Any:
    """Return a stored element as the number it is computed with."""
    wide = types.float32 if value in (types.uint16, types.float16) else value

    def emit(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        if value == types.uint16:
            return builder.bitcast(builder.shl(builder.zext(arguments[0], I32), I32(16)), F32)
        return context.cast(builder, arguments[0], value, wide)

    return wide(value), emit


def narrowed(context: Any, builder: Any, number: Any, stored: Any) -> Any:
    """Return the LLVM value of an fp32 number as an element of Numba's type `stored`."""
    if stored != types.uint16:
        return context.cast(builder, number, types.float32, stored)
    bits = builder.bitcast(number, I32)
    odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
    upper = builder.lshr(builder.add(builder.add(bits, I32(0x7FFF)), odd), I32(16))
    is_nan = builder.fcmp_unordered("uno", number, number)
    return builder.select(is_nan, I16(0x7FC0), builder.trunc(upper, I16))


@intrinsic
def narrow(_typing: Any, value: Any, dtype: Any) -> Any:
    """Return a computed number as an element of an array whose `dtype` is given."""
    stored = dtype.dtype
    if stored == types.uint16:
        return stored(types.float32, dtype), lambda context, builder, _, arguments: narrowed(
            context, builder, arguments[0], stored
        )
    return stored(value, dtype), lambda context, builder, _, arguments: context.cast(
        builder, arguments[0], value, stored
    )
