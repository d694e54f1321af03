"""PyTorch: on the CPU with the host's clock, on GPUs with events on the current stream, where they can time it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import host, torch_place
from gpuexplore.backends.timer import Call
from gpuexplore.core.dtypes import DTYPES, DType, Stored
from gpuexplore.core.model import Device, Environment
from gpuexplore.hardware.torch_devices import TORCH_KINDS

INSTALL = "pip install torch"
DEVICE_KINDS: tuple[str, ...] = ("cpu", "cuda", *TORCH_KINDS)
MKL_MIN_BITS = 32  # narrower dtypes go to oneDNN
POISONED_BLOCKS = range(1, 17)  # of unused memory, for an output that moves: as many as fit the bytes, at least one
POISONED_BYTES = 2**20

driver_facts = torch_place.driver_facts
synchronize = torch_place.synchronize
timer = torch_place.timer
torch_device = torch_place.torch_device


def is_available() -> bool:
    """Return whether torch is installed."""
    return host.is_installed("torch")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why torch cannot compute in `dtype` on `device`; what it emulates it can."""
    if device.kind in TORCH_KINDS:
        return _absent(dtype, device)
    if not dtype.matrix_only:
        return None
    if device.kind != "cuda":
        return f"{dtype.name} exists only inside a GPU's matrix units; {device.name} has none"
    if dtype.name not in device.native:
        return f"{dtype.name} needs compute capability 8.0; {device.name} has {device.compute_capability}"
    return None


def _absent(dtype: DType, device: Device) -> str | None:
    """Return why torch cannot compute in `dtype` on a device of its other kinds; logs what it has to find out."""
    kind = TORCH_KINDS[device.kind]
    has = [name for name, row in DTYPES.items() if not row.matrix_only and name not in kind.absent]
    if dtype.name in has:
        return None
    return f"torch has no {dtype.name} on {kind.title}; {device.id} ({device.name}) takes {', '.join(has)}"


def to_device(values: Stored, dtype: DType, device: str) -> Any:
    """Return a contiguous tensor of `dtype` on `device`; bf16 crosses as its bits."""
    import torch

    if _is_gpu(device):
        return _as_integers(values.copy()).view(getattr(torch, dtype.array_name)).to(torch_device(device))
    there = empty(values.shape, dtype, device)
    load(there, values)
    return there


def load(array: Any, values: Stored) -> None:
    """Overwrite `array` with `values`, and call what it has as `changed`: a copy that another library computes with."""
    array.detach().copy_(_as_integers(np.ascontiguousarray(values)).view(array.dtype))
    if changed := getattr(array, "changed", None):
        changed()


def stored(array: Any, dtype: DType) -> Stored:
    """Return the values of `array`; bf16 crosses as its bits."""
    import torch

    here = array.detach().cpu()
    bits: Stored = (here.view(torch.int16) if dtype.itemsize_bytes == 2 else here).numpy().view(dtype.storage)
    return bits


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """Return an uninitialised tensor."""
    import torch

    own = getattr(torch, dtype.array_name)
    pages = None if _is_gpu(device) else host.in_pages(shape, dtype.storage)
    made: Any = (
        torch.empty(shape, dtype=own, device=torch_device(device)) if pages is None else _as_integers(pages).view(own)
    )
    made.made_at = made.data_ptr()
    return made


def poison(array: Any) -> None:
    """Fill `array` with NaN; where it has moved since it was made, memory too that it may move to next."""
    array.fill_(float("nan"))
    if array.data_ptr() != getattr(array, "made_at", array.data_ptr()):
        _poison_unused(array)


def _poison_unused(array: Any) -> None:
    """Fill with NaN what the allocator hands out next for an output like `array`: it may have a right one from before.

    On a GPU torch first gives back all else that it keeps.
    """
    import torch

    torch_place.empty_cache(array)
    count = POISONED_BYTES // max(1, array.nbytes)
    count = min(max(count, POISONED_BLOCKS.start), POISONED_BLOCKS.stop - 1)
    blocks = [torch.empty_like(array) for _ in range(count)]
    for block in blocks:
        block.fill_(float("nan"))


def take_over(out: Any, result: Any) -> None:
    """Let `out` take over the memory of `result`, from functions that cannot write into an output they are given.

    This moves no bytes, where torch's own overloads with `out=` would compute into fresh memory and copy. The
    allocation is timed; torch hands out on each call what the call before gave back. `poison` knows an output that
    has moved.
    """
    out.set_(result)


def flusher(device: str, size_bytes: int) -> Call:
    """Return a call that overwrites `size_bytes` on `device`; on a GPU it reads as many others afterwards.

    What is overwritten stays in the cache and has to be written to memory, which would take its time from what is
    timed next; reading evicts them, for lines that need no writing.
    """
    if not _is_gpu(device):
        return host.flusher(device, size_bytes)
    import torch

    count, there = max(1, size_bytes // 4), torch_device(device)
    overwritten = torch.empty(count, dtype=torch.float32, device=there)
    kept, total = torch.zeros(count, dtype=torch.float32, device=there), torch.empty((), device=there)

    def flush() -> None:
        overwritten.zero_()
        torch.sum(kept, dim=0, out=total)

    return flush


def capture(run: Call, device: str, calls: int) -> Call | None:
    """Return the replay of a CUDA graph of `calls` times `run`; None on the CPU and on GPUs of other makers.

    torch offers graphs for some of these too, where it is untested that they contain what they should.
    """
    if torch_place.kind_of(device) != torch_place.CUDA:
        return None
    import torch

    graph = torch.cuda.CUDAGraph()
    # a stream of this device: torch keeps one for all captures, of the device that was captured on first
    with torch.cuda.device(torch_device(device)), torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        for _ in range(calls):
            run()
    replay: Call = graph.replay
    return replay


def set_threads(count: int) -> None:
    """Pin torch's intra-operation threads."""
    import torch

    if torch.get_num_threads() != count:
        torch.set_num_threads(count)


def versions() -> Mapping[str, str]:
    """Return the versions of torch and of the libraries of a GPU's maker that it is built for."""
    import torch

    built_for = {f"torch_{name}": getattr(torch.version, name, None) for name in ("cuda", "hip", "xpu")}
    found = {"torch": torch.__version__, **built_for}
    return {name: str(version) for name, version in found.items() if version}


def slow_product(dtype: DType, environment: Environment) -> str | None:
    """Return what MKL or oneDNN, which compute torch's products, do on this CPU."""
    if dtype.bits < MKL_MIN_BITS:
        return "oneDNN computes this dtype for torch; ONEDNN_VERBOSE=1 prints which of its kernels it chose"
    if "AMD" in environment.device.name and host.has_avx512(environment):
        return "MKL, which computes it for torch, uses AVX2 on AMD CPUs, although this one has AVX-512"
    return "MKL computes it for torch; MKL_VERBOSE=1 prints the vectors and threads it uses"


def _as_integers(values: Stored) -> Any:
    """Return a tensor over the memory of `values`; those of 16 bits, which torch may have no type for, as integers."""
    import torch

    return torch.from_numpy(values.view(np.int16) if values.dtype.itemsize == 2 else values)


def _is_gpu(device: str) -> bool:
    return torch_place.kind_of(device) != torch_place.CPU
