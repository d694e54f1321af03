"""The libraries that can be measured, a file each; `contract.Backend` says what each file offers."""

from functools import cache
from importlib import import_module
from typing import cast

from gpuexplore.backends.contract import Backend
from gpuexplore.errors import InvalidInput

BACKENDS = ("numpy", "numpy_returned", "numba_cpu", "numba_cuda", "torch", "torch_compile", "triton", "cupy")


@cache
def load_backend(name: str) -> Backend:
    """Return the backend module called `name`; this loads nothing heavy.

    Raises:
        InvalidInput: no such backend.
    """
    if name not in BACKENDS:
        raise InvalidInput.of("backend", name, BACKENDS)
    return cast(Backend, import_module(f"gpuexplore.backends.{name}"))
