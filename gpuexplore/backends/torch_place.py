"""The devices torch computes on: their names in torch, and how to wait for and time each kind."""

from collections.abc import Callable
from typing import Any

from gpuexplore.backends import DriverFacts
from gpuexplore.backends.cuda_driver import index_in_this_process, why_no_gpu
from gpuexplore.backends.timer import SPIN_HZ, Clock, EventTimer, HostTimer, Timer
from gpuexplore.hardware.torch_devices import TORCH_KINDS

CPU = "cpu"
CUDA = "cuda"


def kind_of(device: str) -> str:
    """Return the kind of the device with this id."""
    return device.partition(":")[0]


def torch_device(device: str) -> str:
    """Return what torch calls `device` in this process; it counts those of its other kinds as they are discovered."""
    kind, _, index = device.partition(":")
    if kind == CUDA:
        return f"cuda:{index_in_this_process(device)}"
    return f"{TORCH_KINDS[kind].torch_type}:{index}" if kind in TORCH_KINDS else CPU


def device_of(torch_type: str, index: int | str) -> str:
    """Return our id of what torch calls `torch_type`, in a process that has loaded torch: ROCm's are called cuda."""
    import torch

    names = [kind.name for kind in TORCH_KINDS.values() if kind.torch_type == torch_type]
    if torch_type == CUDA and not is_rocm(torch):
        return f"{CUDA}:{index}"
    return f"{names[0]}:{index}" if names else CPU


def is_rocm(torch: Any) -> bool:
    """Return whether this torch is built for AMD's GPUs, which it calls cuda."""
    return bool(getattr(torch.version, "hip", None))


def driver_facts(device: str) -> DriverFacts:
    """Return what torch says of `device`: of NVIDIA's which one it is, of others why it finds none."""
    import torch

    kind = kind_of(device)
    if kind == CPU:
        return DriverFacts()
    if kind != CUDA:
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
    if kind_of(device) != CPU:
        _waiting(device)()


def timer(device: str, clock: Clock) -> Timer:
    """Return events on the device's current stream; the host's clock for a CPU, and where events have no times.

    Only NVIDIA's devices spin before a round: elsewhere torch says in no known unit for how long.
    """
    kind = kind_of(device)
    if kind == CPU:
        return HostTimer(clock)
    wait = _waiting(device)
    if kind != CUDA and TORCH_KINDS[kind].timed_by == "host":
        return HostTimer(clock, wait)
    import torch

    module = _module(torch, kind)
    return EventTimer(
        clock,
        new_event=lambda: module.Event(enable_timing=True),
        elapsed_s=lambda start, end: float(start.elapsed_time(end)) * 1e-3,
        wait=wait,
        on_device=lambda: module.device(torch_device(device)),
        enqueue_spin=(lambda seconds: torch.cuda._sleep(int(seconds * SPIN_HZ))) if kind == CUDA else None,
    )


def empty_cache(array: Any) -> None:
    """Wait for the device of `array` and give back what torch keeps there unused; a CPU's allocator keeps nothing."""
    import torch

    kind = str(array.device).partition(":")[0]
    if kind == "mps":
        torch.mps.synchronize()
        torch.mps.empty_cache()
    elif kind != CPU:
        module = getattr(torch, kind)
        module.synchronize(array.device)
        module.empty_cache()


def _waiting(device: str) -> Callable[[], None]:
    import torch

    module = _module(torch, kind_of(device))
    arguments = () if kind_of(device) == "mps" else (torch_device(device),)  # of that there is one
    return lambda: module.synchronize(*arguments)


def _module(torch: Any, kind: str) -> Any:
    """Return the part of torch for a kind of device: its events, waiting and current device."""
    return getattr(torch, CUDA if kind == CUDA else TORCH_KINDS[kind].torch_type)
