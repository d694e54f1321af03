"""Widening and narrowing on the CPU, as LLVM instructions that vectorise.

The integer type names the format: uint16 holds bf16, int16 holds fp16. bf16 is the upper half of an
fp32, so widening is a shift and narrowing rounds to nearest even with integers; fp16 goes through
LLVM's `half`, which is one instruction where the CPU has F16C or NEON.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from gpuexplore.kernels.llvm_values import F32, I16, I32

_HALF = ir.HalfType()


def _widen_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    shifted = builder.shl(builder.zext(arguments[0], I32), I32(16))
    return builder.bitcast(shifted, F32)


def _widen_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.fpext(builder.bitcast(arguments[0], _HALF), F32)


def _narrow_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    value = arguments[0]
    bits = builder.bitcast(value, I32)
    odd = builder.and_(builder.lshr(bits, I32(16)), I32(1))
    nearest = builder.add(builder.add(bits, I32(0x7FFF)), odd)
    rounded = builder.trunc(builder.lshr(nearest, I32(16)), I16)
    return builder.select(builder.fcmp_unordered("uno", value, value), I16(0x7FC0), rounded)


def _narrow_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.bitcast(builder.fptrunc(arguments[0], _HALF), I16)


def _unchanged(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
    return arguments[0]


_WIDEN = {types.uint16: _widen_bf16, types.int16: _widen_fp16}
_NARROW = {types.uint16: _narrow_bf16, types.int16: _narrow_fp16}


@intrinsic
def widen(_typing: Any, value: Any) -> Any:
    """Return a stored element as the number it is computed with: fp32 for 16-bit formats."""
    if value in _WIDEN:
        return types.float32(value), _WIDEN[value]
    return value(value), _unchanged


@intrinsic
def narrow(_typing: Any, value: Any, dtype: Any) -> Any:
    """Return a computed number as an element of an array whose `dtype` is given."""
    if dtype.dtype in _NARROW:
        return dtype.dtype(types.float32, dtype), _NARROW[dtype.dtype]
    return value(value, dtype), _unchanged
