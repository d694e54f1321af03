"""LLVM types, and addresses of array elements in the code of intrinsics: an index counts along the rows.

An index is never negative. `I32(7)` is a constant.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

Typed = tuple[Any, Any]  # an array's Numba type and its LLVM value

I16 = ir.IntType(16)
I32 = ir.IntType(32)
I64 = ir.IntType(64)  # of indices
F32 = ir.FloatType()


def element_pointer(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the pointer to element `index`."""
    kind, value = array
    return builder.gep(context.make_array(kind)(context, builder, value).data, [index])


def vector_of(builder: Any, elements: Sequence[Any]) -> Any:
    """Return the vector of some elements of one type."""
    value = ir.Constant(ir.VectorType(elements[0].type, len(elements)), ir.Undefined)
    for i, element in enumerate(elements):
        value = builder.insert_element(value, element, I32(i))
    return value


def shared_address(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the 32-bit address of an element of an array in shared memory, as PTX takes it.

    The arithmetic is in 32 bits too: in 64 it would take twice the registers.
    """
    start = element_pointer(context, builder, array, I64(0))
    size_bytes = context.get_abi_sizeof(context.get_data_type(array[0].dtype))
    offset = builder.mul(builder.trunc(index, I32), I32(size_bytes))
    return builder.add(builder.ptrtoint(_in_space(builder, start, 3), I32), offset)


def global_address(context: Any, builder: Any, array: Typed, index: Any) -> Any:
    """Return the 64-bit address of an element of an array in device memory, as PTX takes it."""
    pointer = element_pointer(context, builder, array, index)
    return builder.ptrtoint(_in_space(builder, pointer, 1), I64)


def _in_space(builder: Any, pointer: Any, space: int) -> Any:
    """Return a pointer into one of NVVM's address spaces: 1 is global memory, 3 shared memory."""
    return builder.addrspacecast(pointer, pointer.type.pointee.as_pointer(space))
