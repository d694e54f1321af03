"""State that libraries of a process share and results depend on: threads, flags, rounding.

Each is read in microseconds, because it is read after every round.
"""

import ctypes
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from struct import pack
from typing import Any

from gpuexplore.backends import numpy as numpy_backend

TINY = 5e-324  # is zero where subnormal numbers are
HALF_STEP = 2.0**-53  # added to 1 it is rounded away to nearest, and up where everything is rounded up
CONTRADICTED = "contradicted"
DEFAULT_ENVIRONMENT = ctypes.c_void_p(-1)  # FE_DFL_ENV of glibc
TORCH_FLAGS: Mapping[str, tuple[str, str]] = {  # by what they are called: what reads and what sets them
    "torch's use of oneDNN": ("_C._get_mkldnn_enabled", "_C._set_mkldnn_enabled"),
    "torch's precision of fp32 products": ("get_float32_matmul_precision", "set_float32_matmul_precision"),
    "torch's default dtype": ("get_default_dtype", "set_default_dtype"),
    "torch's gradient recording": ("is_grad_enabled", "_C._set_grad_enabled"),
    "torch's use of deterministic algorithms": (
        "are_deterministic_algorithms_enabled",
        "use_deterministic_algorithms",
    ),
    "torch's use of cuDNN": ("_C._get_cudnn_enabled", "_C._set_cudnn_enabled"),
    "torch's use of TF32 in products": ("_C._get_cublas_allow_tf32", "_C._set_cublas_allow_tf32"),
}

Reading = tuple[str, Callable[[], Any], Callable[[Any], object]]


def thread_counts() -> Iterator[Reading]:
    """Yield the name of each loaded library with threads, and how to read and set their number."""
    if (blas := numpy_backend.blas_threads()) is not None:
        yield "NumPy's BLAS", blas, numpy_backend.set_threads
    if torch := sys.modules.get("torch"):
        yield "torch", torch.get_num_threads, torch.set_num_threads
    pool = sys.modules.get("numba.np.ufunc.parallel")
    if pool and getattr(pool, "_is_initialized", False):  # asking would start its threads
        yield "numba", pool.get_num_threads, pool.set_num_threads


def torch_flags() -> Iterator[Reading]:
    """Yield the flags of torch that decide how it computes; none where it is not loaded, or has no such flag."""
    if torch := sys.modules.get("torch"):
        for name, (read, write) in TORCH_FLAGS.items():
            reader, writer = _attribute(torch, read), _attribute(torch, write)
            if reader and writer:
                yield name, partial(_read, reader), writer
        yield from _precisions(torch)


def _precisions(torch: Any) -> Iterator[Reading]:
    """Yield the settings of TF32 in torch's newer interface, from 2.9 on, where it exists."""
    read, write = (
        _attribute(torch, f"_C.{name}") for name in ("_get_fp32_precision_getter", "_set_fp32_precision_setter")
    )
    if read and write:
        for library in ("generic", "cuda"):
            name = f"torch's precision in fp32, {library}"
            yield name, partial(_read, partial(read, library, "all")), partial(write, library, "all")
        yield "cuDNN's use of TF32", partial(_read, partial(read, "cuda", "conv")), _allow_cudnn


def _allow_cudnn(precision: str) -> None:
    """Set it by the older interface, which refuses to be read where the newer one contradicts it."""
    sys.modules["torch"].backends.cudnn.allow_tf32 = precision == "tf32"


def allow_tf32(is_allowed: bool) -> None:
    """Have torch's products and cuDNN use TF32 in fp32, or not, where torch is loaded: tf32 needs it, fp32 must not."""
    if torch := sys.modules.get("torch"):
        torch.backends.cudnn.allow_tf32 = is_allowed
        torch.set_float32_matmul_precision("high" if is_allowed else "highest")


def floating_point() -> bytes:
    """Return the results of rounding in this thread: a subnormal number, and half of a last digit in each direction.

    As bytes: to a thread without subnormal numbers, one is equal to zero.
    """
    return pack("4d", TINY * _one(), _one() + HALF_STEP, -_one() - HALF_STEP, _one() - HALF_STEP / 2)


def reset_floating_point(_: object = None) -> None:
    """Have this thread round to nearest, and keep subnormal numbers: the default environment."""
    if reset := getattr(ctypes.CDLL(None), "fesetenv", None):
        reset(DEFAULT_ENVIRONMENT)


def _one() -> float:
    """Return 1.0 by a call, so that the interpreter computes nothing beforehand."""
    return float("1")


def _read(reader: Callable[[], Any]) -> Any:
    """Return a flag; CONTRADICTED where TF32 was set by both of its interfaces and torch refuses to read it."""
    try:
        return reader()
    except RuntimeError:
        return CONTRADICTED


def _attribute(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner
