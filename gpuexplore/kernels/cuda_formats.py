"""Widening and narrowing in CUDA kernels; in Numba's simulator the same in plain Python.

bf16 travels as uint16 and is the upper half of an fp32, which works on every compute capability;
fp16 is CUDA's own type. The arithmetic between is fp32.
"""

from typing import Any

import numpy as np
from numba import config

if config.ENABLE_CUDASIM:

    def widen(value: Any) -> Any:
        """Return a stored element as the number it is computed with."""
        if value.dtype == np.uint16:
            return (np.uint32(value) << np.uint32(16)).view(np.float32)
        return np.float32(value) if value.dtype == np.float16 else value

    def narrow(value: Any, dtype: Any) -> Any:
        """Return a computed number as an element of an array whose `dtype` is given."""
        if dtype != np.uint16:
            return dtype.type(value)
        bits = int(np.float32(value).view(np.uint32))
        return np.uint16(0x7FC0 if np.isnan(value) else (bits + 0x7FFF + (bits >> 16 & 1)) >> 16)

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    _I16, _I32, _F32 = ir.IntType(16), ir.IntType(32), ir.FloatType()

    def _widen_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        shifted = builder.shl(builder.zext(arguments[0], _I32), ir.Constant(_I32, 16))
        return builder.bitcast(shifted, _F32)

    def _narrow_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(arguments[0], _I32)
        odd = builder.and_(builder.lshr(bits, ir.Constant(_I32, 16)), ir.Constant(_I32, 1))
        upper = builder.lshr(builder.add(builder.add(bits, ir.Constant(_I32, 0x7FFF)), odd), ir.Constant(_I32, 16))
        is_nan = builder.fcmp_unordered("uno", arguments[0], arguments[0])
        return builder.select(is_nan, ir.Constant(_I16, 0x7FC0), builder.trunc(upper, _I16))

    @intrinsic
    def widen(_typing: Any, value: Any) -> Any:
        """Return a stored element as the number it is computed with."""
        if value == types.uint16:
            return types.float32(value), _widen_bf16
        wide = types.float32 if value == types.float16 else value
        return wide(value), lambda context, builder, _, arguments: context.cast(builder, arguments[0], value, wide)

    def narrowed(context: Any, builder: Any, number: Any, stored: Any) -> Any:
        """Return the LLVM value of an fp32 number as an element of Numba's type `stored`."""
        if stored == types.uint16:
            return _narrow_bf16(context, builder, None, [number])
        return context.cast(builder, number, types.float32, stored)

    @intrinsic
    def narrow(_typing: Any, value: Any, dtype: Any) -> Any:
        """Return a computed number as an element of an array whose `dtype` is given."""
        stored = dtype.dtype
        if stored == types.uint16:
            return stored(types.float32, dtype), _narrow_bf16
        return stored(value, dtype), lambda context, builder, _, arguments: context.cast(
            builder, arguments[0], value, stored
        )
