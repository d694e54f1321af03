"""Widening and narrowing on the CPU, as LLVM instructions that vectorise.

The integer type names the format: uint16 holds bf16, int16 holds fp16. bf16 is the upper half of an
fp32, so widening is a shift and narrowing rounds to nearest even with integers; fp16 goes through
LLVM's `half`, which is one instruction where the CPU has F16C or NEON.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_I16, _I32, _F32, _HALF = ir.IntType(16), ir.IntType(32), ir.FloatType(), ir.HalfType()


def _widen_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    shifted = builder.shl(builder.zext(arguments[0], _I32), _I32(16))
    return builder.bitcast(shifted, _F32)


def _widen_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.fpext(builder.bitcast(arguments[0], _HALF), _F32)


def _narrow_bf16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return bf16_bits(builder, arguments[0])


def _narrow_fp16(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return fp16_bits(builder, arguments[0])


def bf16_bits(builder: Any, value: Any) -> Any:
    """Return the code that rounds an fp32 value, or a vector of them, to the bits of bf16."""
    wide, short = _like(value.type, _I32), _like(value.type, _I16)
    bits = builder.bitcast(value, wide)
    odd = builder.and_(builder.lshr(bits, _constant(wide, 16)), _constant(wide, 1))
    nearest = builder.add(builder.add(bits, _constant(wide, 0x7FFF)), odd)
    rounded = builder.trunc(builder.lshr(nearest, _constant(wide, 16)), short)
    is_nan = builder.fcmp_unordered("uno", value, value)
    return builder.select(is_nan, _constant(short, 0x7FC0), rounded)


def fp16_bits(builder: Any, value: Any) -> Any:
    """Return the code that rounds an fp32 value, or a vector of them, to the bits of fp16."""
    return builder.bitcast(builder.fptrunc(value, _like(value.type, _HALF)), _like(value.type, _I16))


def _like(kind: Any, element: Any) -> Any:
    return ir.VectorType(element, kind.count) if isinstance(kind, ir.VectorType) else element


def _constant(kind: Any, number: int) -> Any:
    return ir.Constant(kind, [number] * kind.count if isinstance(kind, ir.VectorType) else number)


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
