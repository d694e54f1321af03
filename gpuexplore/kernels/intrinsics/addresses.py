"""Addresses of array elements in the LLVM code of intrinsics: an index counts along the rows, and is never negative."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

Typed = tuple[Any, Any]  # an array's Numba type and its LLVM value

_I32, _I64 = ir.IntType(32), ir.IntType(64)
SHARED, GLOBAL = 3, 1  # NVVM's address spaces


def int64(number: int) -> Any:
    """Return a constant of 64 bits, as indices are."""
    return ir.Constant(_I64, number)


def element_pointer(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the pointer to element `index`."""
    kind, value = array
    return builder.gep(context.make_array(kind)(context, builder, value).data, [index])


def vector_of(builder: Any, elements: Sequence[Any]) -> Any:
    """Return the vector of some elements of one type."""
    value = ir.Constant(ir.VectorType(elements[0].type, len(elements)), ir.Undefined)
    for i, element in enumerate(elements):
        value = builder.insert_element(value, element, ir.Constant(_I32, i))
    return value


def shared_address(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the 32-bit address of an element of an array in shared memory, as PTX takes it.

    The arithmetic is in 32 bits too: in 64 it would take twice the registers.
    """
    start = element_pointer(context, builder, array, int64(0))
    size_bytes = context.get_abi_sizeof(context.get_data_type(array[0].dtype))
    offset = builder.mul(builder.trunc(index, _I32), ir.Constant(_I32, size_bytes))
    return builder.add(builder.ptrtoint(_in_space(builder, start, SHARED), _I32), offset)


def global_address(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the 64-bit address of an element of an array in device memory, as PTX takes it."""
    pointer = element_pointer(context, builder, array, index)
    return builder.ptrtoint(_in_space(builder, pointer, GLOBAL), _I64)


def _in_space(builder: Any, pointer: Any, space: int) -> Any:
    return builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(space))
