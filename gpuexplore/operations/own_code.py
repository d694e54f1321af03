"""Code of users: a file that is run, and a function that returns its result, which becomes what is timed.

A call is `function(*inputs)`, and what it returns is looked at once. Nothing is copied: its result becomes the output,
NumPy's in a holder, torch's by `take_over`, those of JAX and CuPy through DLPack, which hands memory over without
moving it (https://dmlc.github.io/dlpack/latest).
"""

import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from gpuexplore.backends.numpy_returned import VIEW
from gpuexplore.core.dtypes import DType
from gpuexplore.core.errors import IncorrectOutput, Unsupported
from gpuexplore.operations.implementation import OF_USERS

Function = Callable[..., Any]
Call = Callable[[], object]


def split_source(text: str) -> tuple[Path, str]:
    """Return the path of a file, and the name of the function after it; empty without one."""
    before, colon, function = text.rpartition(OF_USERS)
    path = Path(before).expanduser()
    return (path, function.strip()) if colon and path.suffix == ".py" else (Path(text).expanduser(), "")


def module_of(path: Path) -> Any:
    """Return the module of a user's file, which this runs."""
    spec = spec_from_file_location(f"own_{crc32(str(path).encode()):x}_" + re.sub(r"\W+", "_", path.stem), path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # what lies beside it
    spec.loader.exec_module(module)
    return module


def build_of_function(function: Function, library: str) -> Callable[..., Call]:
    """Return the `build` of an implementation whose call is `function(*inputs)`.

    Args:
        function: of arrays, (shape of each input) -> (shape of the output).
        library: whose arrays it takes and returns.
    """
    made = {"numpy": _of_numpy, "numba": _of_numpy, "torch": _of_torch}.get(library)

    def build(inputs: Sequence[Any], out: Any, _: DType) -> Call:
        return made(function, inputs, out) if made else _through_dlpack(function, inputs, out, library)

    return build


def _of_numpy(function: Function, inputs: Sequence[Any], out: Any) -> Call:
    result = function(*inputs)
    _check(result, np.ndarray, out.array)
    if any(np.may_share_memory(result, array) for array in inputs):
        raise IncorrectOutput(VIEW)
    out.inputs = tuple(inputs)

    def run() -> None:
        out.array = function(*inputs)

    return run


def _of_torch(function: Function, inputs: Sequence[Any], out: Any) -> Call:
    import torch

    from gpuexplore.backends.torch import take_over

    result = function(*inputs)
    _check(result, torch.Tensor, out)
    addresses = {array.untyped_storage().data_ptr() for array in inputs if array.numel()}
    if result.untyped_storage().data_ptr() in addresses:
        raise IncorrectOutput(VIEW)
    if result.requires_grad:
        return lambda: take_over(out, function(*inputs).detach())
    return lambda: take_over(out, function(*inputs))


def _through_dlpack(function: Function, inputs: Sequence[Any], out: Any, library: str) -> Call:
    torch: Any = import_module("torch")
    taken = [_shared(array, library) for array in inputs] if library != "jax" else _own_of_jax(inputs)
    finish: Function = (lambda result: result.block_until_ready()) if library == "jax" else lambda result: result
    result = finish(function(*taken))
    if not hasattr(result, "__dlpack__"):
        raise IncorrectOutput(f"it returned {_kind(result)}: expected one array of {library}")
    _check(torch.from_dlpack(result), torch.Tensor, out)
    take_over: Function = import_module("gpuexplore.backends.torch").take_over
    return lambda: take_over(out, torch.from_dlpack(finish(function(*taken))))


def _shared(array: Any, library: str) -> Any:
    """Return an array of `library` over the memory of a tensor.

    Raises:
        Unsupported: the library made a copy, which later values would not reach.
    """
    made: Any = import_module(library).from_dlpack(array)
    if made.data.ptr != array.data_ptr():
        raise Unsupported(
            f"{library} copies arrays passed by DLPack here, so it cannot share the inputs of the other implementations"
        )
    return made


def _own_of_jax(inputs: Sequence[Any]) -> list[Any]:
    """Return arrays that are JAX's own, for its arrays never change; new ones are made when a tensor gets new values.

    Raises:
        Unsupported: JAX has no strides.
    """
    if not all(array.is_contiguous() for array in inputs):
        raise Unsupported("JAX does not support this memory layout")
    from_dlpack = import_module("jax.dlpack").from_dlpack
    own = list[Any](inputs)

    def renew(index: int) -> None:
        own[index] = from_dlpack(inputs[index].detach().clone())

    for index, array in enumerate(inputs):
        renew(index)
        array.changed = partial(renew, index)
    return own


def _check(result: Any, wanted: Any, out: Any) -> None:
    """Raise where what a function returned is no output.

    Raises:
        IncorrectOutput: it is no array of the library, or has another dtype or shape.
    """
    if type(result) is not wanted:
        raise IncorrectOutput(f"it returned {_kind(result)}: expected one array of {wanted.__module__}")
    if result.dtype != out.dtype:
        raise IncorrectOutput(f"it returned {result.dtype} where {out.dtype} is expected")
    if tuple(result.shape) != tuple(out.shape):
        raise IncorrectOutput(f"it returned the shape {tuple(result.shape)}, expected {tuple(out.shape)}")


def _kind(result: Any) -> str:
    return "nothing" if result is None else f"a {type(result).__name__}"
