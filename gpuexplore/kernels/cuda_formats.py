"""Widening and narrowing in CUDA kernels.

bf16 travels as uint16 and is the upper half of an fp32, which works on every compute capability;
fp16 is CUDA's own type. The arithmetic between is fp32.
"""

from typing import Any

from numba.cuda import types
from numba.cuda.extending import intrinsic

from gpuexplore.kernels.llvm_values import F32, I16, I32


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
