"""Calls of compiled functions by their address.

A function that Numba compiles contains a copy of each one it calls, which LLVM optimises again: 2.8 s for the threads'
loop of a product, most of it for code that is compiled already. Called by its address, a function is compiled once.
"""

from typing import Any

import numpy as np
from numba import typeof, types
from numba.core import cgutils
from numba.extending import intrinsic


def address_of(function: Any, *arguments: Any) -> int:
    """Return where the code of a jitted function without a result lies for such arguments, which may compile it."""
    kinds = tuple(map(typeof, arguments))
    function.compile(kinds)
    compiled = function.overloads[kinds]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    return address


def untyped(array: Any) -> Any:
    """Return the first bytes of the elements of `array`, for code that passes it on and is compiled once for all."""
    first = np.dtype({"names": ["first"], "formats": [np.uint8], "offsets": [0], "itemsize": array.itemsize})
    return array.view(first)["first"]


@intrinsic
def call_at(_typing: Any, address: Any, *arguments: Any) -> Any:
    """Call the function at `address`, without a result, with arguments of the types that `address_of` was given.

    An `untyped` array stands for the one it was made of.
    """

    def emit(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.none, arguments)
        pointer = builder.inttoptr(values[0], kind.as_pointer())
        each = cgutils.unpack_tuple(builder, values[1], len(arguments))
        status, _ = convention.call_function(builder, pointer, types.none, arguments, each)
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(address, types.StarArgTuple(arguments)), emit
