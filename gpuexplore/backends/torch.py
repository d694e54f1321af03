"""PyTorch: on the CPU with the host's clock, on CUDA with events on the current stream."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import host, host_memory
from gpuexplore.backends.contract import DriverFacts
from gpuexplore.backends.cuda_driver import why_no_gpu
from gpuexplore.backends.cuda_index import index_in_this_process
from gpuexplore.backends.timer import SPIN_HZ, Call, Clock, EventTimer, HostTimer, Stream, Timer
from gpuexplore.dtypes import DType, Stored
from gpuexplore.model import Device, Environment

INSTALL = "pip install torch"
DEVICE_KINDS: tuple[str, ...] = ("cpu", "cuda")
MKL_MIN_BITS = 32  # narrower dtypes go to oneDNN
POISONED_BLOCKS = range(1, 17)  # of unused memory, for an output that moves: as many as fit the bytes, at least one
POISONED_BYTES = 2**20


def is_available() -> bool:
    """Return whether torch is installed."""
    return host.is_installed("torch")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why torch cannot compute in `dtype` on `device`; what it emulates it can."""
    if not dtype.matrix_only:
        return None
    if device.kind != "cuda":
        return f"{dtype.name} exists only inside a GPU's matrix units; {device.name} has none"
    if dtype.name not in device.native:
        return f"{dtype.name} needs compute capability 8.0; {device.name} has {device.compute_capability}"
    return None


def driver_facts(device: str) -> DriverFacts:
    """Return what torch's CUDA says of `device`."""
    import torch

    if not _is_cuda(device):
        return DriverFacts()
    if not torch.cuda.is_available():
        return DriverFacts(problem=why_no_gpu(f"torch {torch.__version__}", torch.version.cuda))
    found = torch.cuda.get_device_properties(torch_device(device))
    return DriverFacts(uuid=str(found.uuid), cache_bytes=found.L2_cache_size or None)


def to_device(values: Stored, dtype: DType, device: str) -> Any:
    """Return a contiguous tensor of `dtype` on `device`; bf16 crosses as its bits."""
    import torch

    return _as_integers(host_memory.copy_of(values)).view(getattr(torch, dtype.array_name)).to(torch_device(device))


def load(array: Any, values: Stored) -> None:
    """Overwrite `array` with `values`."""
    array.detach().copy_(_as_integers(np.ascontiguousarray(values)).view(array.dtype))


def stored(array: Any, dtype: DType) -> Stored:
    """Return what `array` holds; bf16 crosses as its bits."""
    import torch

    here = array.detach().cpu()
    bits: Stored = (here.view(torch.int16) if dtype.itemsize_bytes == 2 else here).numpy().view(dtype.storage)
    return bits


def empty(shape: tuple[int, ...], dtype: DType, device: str) -> Any:
    """Return an uninitialised tensor."""
    import torch

    made: Any
    if _is_cuda(device):
        made = torch.empty(shape, dtype=getattr(torch, dtype.array_name), device=torch_device(device))
    else:
        made = _as_integers(host_memory.empty(shape, dtype.storage)).view(getattr(torch, dtype.array_name))
    made.made_at = made.data_ptr()
    return made


def poison(array: Any) -> None:
    """Fill `array` with NaN; where it has moved since it was made, memory too that it may move to next."""
    array.fill_(float("nan"))
    if array.data_ptr() != getattr(array, "made_at", array.data_ptr()):
        _poison_unused(array)


def _poison_unused(array: Any) -> None:
    """Fill with NaN what the allocator hands out next for an output like `array`: it may hold a right one from before.

    On CUDA torch first gives back all else that it keeps.
    """
    import torch

    if array.is_cuda:
        torch.cuda.synchronize(array.device)
        torch.cuda.empty_cache()
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


def synchronize(device: str) -> None:
    """Wait for the device's queue to drain."""
    import torch

    if _is_cuda(device):
        torch.cuda.synchronize(torch_device(device))


def timer(device: str, clock: Clock) -> Timer:
    """Return CUDA events on the device's current stream, or the wall clock on the CPU."""
    if not _is_cuda(device):
        return HostTimer(clock)
    import torch

    def new_event() -> Any:
        return torch.cuda.Event(enable_timing=True)

    def elapsed_s(start: Any, end: Any) -> float:
        return float(start.elapsed_time(end)) * 1e-3

    stream = Stream(
        new_event,
        elapsed_s,
        wait=lambda: synchronize(device),
        on_device=lambda: torch.cuda.device(torch_device(device)),
        spin=lambda seconds: torch.cuda._sleep(int(seconds * SPIN_HZ)),
    )
    return EventTimer(stream, clock)


def flusher(device: str, size_bytes: int) -> Call:
    """Return a call that overwrites `size_bytes` on `device`; on a GPU it reads as many others afterwards.

    What is overwritten stays in the cache and has to be written to memory, which would take its time from what is
    timed next; reading makes room, of lines that need no writing.
    """
    if not _is_cuda(device):
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
    """Return the replay of a CUDA graph that holds `run` `calls` times; None on the CPU."""
    if not _is_cuda(device):
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
    """Return the versions of torch and the CUDA libraries it carries."""
    import torch

    found = {"torch": torch.__version__, "torch_cuda": torch.version.cuda}
    return {name: str(version) for name, version in found.items() if version}


def slow_product(dtype: DType, environment: Environment) -> str | None:
    """Return what MKL or oneDNN, which compute torch's products, do on this CPU."""
    if dtype.bits < MKL_MIN_BITS:
        return "oneDNN computes this dtype for torch; ONEDNN_VERBOSE=1 prints which of its kernels it chose"
    if "AMD" in environment.device.name and host.has_avx512(environment):
        return "MKL, which computes it for torch, stays on AVX2 on an AMD CPU, though this one has AVX-512"
    return "MKL computes it for torch; MKL_VERBOSE=1 prints the vectors and threads it uses"


def _as_integers(values: Stored) -> Any:
    """Return a tensor over the memory of `values`; those of 16 bits, which torch may have no type for, as integers."""
    import torch

    return torch.from_numpy(values.view(np.int16) if values.dtype.itemsize == 2 else values)


def _is_cuda(device: str) -> bool:
    return device.startswith("cuda")


def torch_device(device: str) -> str:
    """Return what torch calls `device` in this process."""
    return f"cuda:{index_in_this_process(device)}" if _is_cuda(device) else "cpu"
