"""PyTorch: on the CPU with the host's clock, on GPUs with events on the current stream, where they can time it."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpuexplore.backends import SPIN_HZ, Call, Clock, DriverFacts, EventTimer, HostTimer, Timer, host
from gpuexplore.backends.cuda_driver import index_in_this_process, why_no_gpu
from gpuexplore.core.dtypes import DTYPES, DType, Stored
from gpuexplore.core.model import Device, Environment
from gpuexplore.hardware.torch_devices import TORCH_KINDS

INSTALL = "pip install torch"
DEVICE_KINDS: tuple[str, ...] = ("cpu", "cuda", *TORCH_KINDS)


def is_available() -> bool:
    """Return whether torch is installed."""
    return host.is_installed("torch")


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why torch cannot compute in `dtype` on `device`; what it emulates it can."""
    if device.kind in TORCH_KINDS:
        kind = TORCH_KINDS[device.kind]
        has = [name for name, row in DTYPES.items() if not row.matrix_only and name not in kind.absent]
        if dtype.name in has:
            return None
        return f"torch has no {dtype.name} on {kind.title}; {device.id} ({device.name}) supports {', '.join(has)}"
    if not dtype.matrix_only:
        return None
    if device.kind != "cuda":
        return f"{dtype.name} exists only inside a GPU's matrix units; {device.name} has none"
    if dtype.name not in device.native:
        return f"{dtype.name} needs compute capability 8.0; {device.name} has {device.compute_capability}"
    return None


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
    return (here.view(torch.int16) if dtype.itemsize_bytes == 2 else here).numpy().view(dtype.storage)


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
        import torch

        _empty_cache(array)
        count = 2**20 // max(1, array.nbytes)  # as many as fit a megabyte
        blocks = [torch.empty_like(array) for _ in range(min(max(count, 1), 16))]
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

    count = max(1, size_bytes // 4)
    there = torch_device(device)
    overwritten = torch.empty(count, dtype=torch.float32, device=there)
    kept = torch.zeros(count, dtype=torch.float32, device=there)
    total = torch.empty((), device=there)

    def flush() -> None:
        overwritten.zero_()
        torch.sum(kept, dim=0, out=total)

    return flush


def capture(run: Call, device: str, calls: int) -> Call | None:
    """Return the replay of a CUDA graph of `calls` times `run`; None on the CPU and on GPUs of other makers.

    torch offers graphs for some of these too, where it is untested that they contain what they should.
    """
    if _kind_of(device) != "cuda":
        return None
    import torch

    graph = torch.cuda.CUDAGraph()
    # a stream of this device: torch keeps one for all captures, of the device that was captured on first
    with torch.cuda.device(torch_device(device)), torch.cuda.graph(graph, stream=torch.cuda.Stream()):
        for _ in range(calls):
            run()
    return graph.replay


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
    if dtype.bits < 32:
        return "oneDNN computes this dtype for torch; ONEDNN_VERBOSE=1 prints which of its kernels it chose"
    if "AMD" in environment.device.name and host.has_avx512(environment):
        return "MKL, which computes it for torch, uses AVX2 on AMD CPUs, although this one has AVX-512"
    return "MKL computes it for torch; MKL_VERBOSE=1 prints the vectors and threads it uses"


def _as_integers(values: Stored) -> Any:
    """Return a tensor over the memory of `values`; those of 16 bits, which torch may have no type for, as integers."""
    import torch

    return torch.from_numpy(values.view(np.int16) if values.dtype.itemsize == 2 else values)


def _is_gpu(device: str) -> bool:
    return _kind_of(device) != "cpu"


# The devices torch computes on: their names in torch, and how to wait for and time each kind.


def _kind_of(device: str) -> str:
    """Return the kind of the device with this id."""
    return device.partition(":")[0]


def torch_device(device: str) -> str:
    """Return what torch calls `device` in this process; it counts those of its other kinds as they are discovered."""
    kind, _, index = device.partition(":")
    if kind == "cuda":
        return f"cuda:{index_in_this_process(device)}"
    return f"{TORCH_KINDS[kind].torch_type}:{index}" if kind in TORCH_KINDS else "cpu"


def device_of(torch_type: str, index: int | str) -> str:
    """Return our id of what torch calls `torch_type`, in a process that has loaded torch: ROCm's are called cuda."""
    import torch

    names = [kind.name for kind in TORCH_KINDS.values() if kind.torch_type == torch_type]
    if torch_type == "cuda" and not is_rocm(torch):
        return f"cuda:{index}"
    return f"{names[0]}:{index}" if names else "cpu"


def is_rocm(torch: Any) -> bool:
    """Return whether this torch is built for AMD's GPUs, which it calls cuda."""
    return bool(getattr(torch.version, "hip", None))


def driver_facts(device: str) -> DriverFacts:
    """Return what torch says of `device`: of NVIDIA's which one it is, of others why it finds none."""
    import torch

    kind = _kind_of(device)
    if kind == "cpu":
        return DriverFacts()
    if kind != "cuda":
        return DriverFacts(problem=_why_not_there(torch, kind))
    if is_rocm(torch):
        built = f"torch {torch.__version__} is built for ROCm {torch.version.hip}, which runs only on AMD GPUs"
        return DriverFacts(problem=f"{built}: install its build for CUDA (https://pytorch.org/get-started/locally/)")
    if not torch.cuda.is_available():
        return DriverFacts(problem=why_no_gpu(f"torch {torch.__version__}", torch.version.cuda))
    found = torch.cuda.get_device_properties(torch_device(device))
    return DriverFacts(uuid=str(found.uuid), cache_bytes=found.L2_cache_size or None)


def _why_not_there(torch: Any, kind: str) -> str | None:
    """Return why this torch finds no device of one of its other kinds, though one was discovered."""
    row = TORCH_KINDS[kind]
    if row.build is not None and not getattr(torch.version, row.build, None):
        return f"torch {torch.__version__} is not built for {row.title} (https://pytorch.org/get-started/locally/)"
    available = torch.backends.mps.is_available if kind == "mps" else _module(torch, kind).is_available
    return None if available() else f"torch {torch.__version__} no longer finds a device of {row.title}"


def synchronize(device: str) -> None:
    """Wait for the device's queue to drain."""
    if _kind_of(device) != "cpu":
        _waiting(device)()


def timer(device: str, clock: Clock) -> Timer:
    """Return events on the device's current stream; the host's clock for a CPU, and where events have no times.

    Only NVIDIA's devices spin before a round: elsewhere torch says in no known unit for how long.
    """
    kind = _kind_of(device)
    if kind == "cpu":
        return HostTimer(clock)
    wait = _waiting(device)
    if kind != "cuda" and TORCH_KINDS[kind].timed_by == "host":
        return HostTimer(clock, wait)
    import torch

    module = _module(torch, kind)
    return EventTimer(
        clock,
        new_event=lambda: module.Event(enable_timing=True),
        elapsed_s=lambda start, end: float(start.elapsed_time(end)) * 1e-3,
        wait=wait,
        on_device=lambda: module.device(torch_device(device)),
        enqueue_spin=(lambda seconds: torch.cuda._sleep(int(seconds * SPIN_HZ))) if kind == "cuda" else None,
    )


def _empty_cache(array: Any) -> None:
    """Wait for the device of `array` and give back what torch keeps there unused; a CPU's allocator keeps nothing."""
    import torch

    kind = str(array.device).partition(":")[0]
    if kind == "mps":
        torch.mps.synchronize()
        torch.mps.empty_cache()
    elif kind != "cpu":
        module = getattr(torch, kind)
        module.synchronize(array.device)
        module.empty_cache()


def _waiting(device: str) -> Callable[[], None]:
    import torch

    module = _module(torch, _kind_of(device))
    arguments = () if _kind_of(device) == "mps" else (torch_device(device),)  # of that there is one
    return lambda: module.synchronize(*arguments)


def _module(torch: Any, kind: str) -> Any:
    """Return the part of torch for a kind of device: its events, waiting and current device."""
    return getattr(torch, "cuda" if kind == "cuda" else TORCH_KINDS[kind].torch_type)
