"""Rows of `implementations=`, library by library, with what is the same in every operation.

Each takes the file in the operation's folder and a sentence about it; whatever differs is named, e.g. `unit="matrix"`.
"""

from collections.abc import Mapping
from typing import Any

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.operations.implementation import WIDENED, Implementation

EVERY_DTYPE = tuple(DTYPES)
TORCH_GRAIN = 32768  # elements that one thread takes at least, at::internal::GRAIN_SIZE of ATen/Parallel.h


def by_numpy(module: str, about: str, **own: Any) -> Implementation:
    """Return NumPy's row: what computes in 16 bits is widened to fp32."""
    return _row("numpy", module, about, {"arithmetic": WIDENED} | own)


def by_numpy_alone(module: str, about: str, **own: Any) -> Implementation:
    """Return the row of NumPy where it uses one thread in every dtype: everything but BLAS."""
    return by_numpy(module, about, one_thread=EVERY_DTYPE, **own)


def by_numba_cpu(module: str, about: str, **own: Any) -> Implementation:
    """Return the row of a parallel CPU kernel of ours."""
    return _row("numba_cpu", module, about, {"arithmetic": WIDENED} | own)


def by_numba_cuda(module: str, about: str, geometry: Geometry, **own: Any) -> Implementation:
    """Return the row of a CUDA kernel of ours, launched as `geometry` says."""
    return _row("numba_cuda", module, about, {"arithmetic": WIDENED, "geometry": geometry} | own)


def by_torch(module: str, about: str, **own: Any) -> Implementation:
    """Return torch's row."""
    return _row("torch", module, about, own)


def by_torch_in_grains(module: str, about: str, **own: Any) -> Implementation:
    """Return torch's row where TensorIterator does the work: up to a grain of elements on one thread of a CPU."""
    return by_torch(module, about, one_thread_up_to=TORCH_GRAIN, **own)


def by_torch_variants(**own: Any) -> tuple[Implementation, ...]:
    """Return the rows of a training step in torch: eager, and with each technique of training."""
    facts = {"unit": "matrix"} | own
    return (
        by_torch("torch_autograd", "torch's operators and autograd, step by step", vendor_library=True, **facts),
        by_torch(
            "torch_autocast",
            "the same under torch.autocast: weights in fp32, products in 16 bits, the loss scaled in fp16",
            name="torch-autocast",
            dtypes=("bf16", "fp16"),
            **facts,
        ),
        by_torch(
            "torch_checkpoint",
            "the same with torch.utils.checkpoint: nothing inside a layer is kept, and backward computes it again",
            name="torch-checkpoint",
            **facts,
        ),
        by_torch(
            "torch_accumulate",
            "the same over four parts of the batch, whose gradients are added: a quarter of the activations at a time",
            name="torch-accumulate",
            **facts,
        ),
        by_torch_compile("torch_compile_autograd", "torch.compile of forward and backward", **facts),
    )


def by_torch_compile(module: str, about: str, **own: Any) -> Implementation:
    """Return the row of what torch.compile makes of a function."""
    return _row("torch_compile", module, about, {"optional": True} | own)


def by_triton(module: str, about: str, **own: Any) -> Implementation:
    """Return the row of a Triton kernel of ours."""
    return _row("triton", module, about, {"optional": True} | own)


def by_cupy(module: str, about: str, **own: Any) -> Implementation:
    """Return CuPy's row."""
    return _row("cupy", module, about, {"optional": True} | own)


def _row(backend: str, module: str, about: str, facts: Mapping[str, Any]) -> Implementation:
    usual = {"name": backend.replace("_", "-"), "unit": "vector"}
    return Implementation(module=module, backend=backend, about=about, **{**usual, **facts})
