"""torch.compile: torch's arrays, clocks and threads; Inductor compiles each shape and dtype in its first call.

A CPU kernel is C++, so a compiler has to be there; a CUDA kernel is Triton's. What Inductor compiled it keeps on
disk, so that the first call of a later process is shorter.
"""

import os
import shutil
from collections.abc import Mapping

from gpuexplore.backends import host
from gpuexplore.backends import torch as torch_backend
from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Device
from gpuexplore.hardware.torch_devices import TORCH_KINDS

INSTALL = torch_backend.INSTALL
DEVICE_KINDS: tuple[str, ...] = ("cpu", "cuda", *(name for name, row in TORCH_KINDS.items() if row.compiled_by_triton))

is_available = torch_backend.is_available
driver_facts = torch_backend.driver_facts
to_device = torch_backend.to_device
empty = torch_backend.empty
poison = torch_backend.poison
load = torch_backend.load
stored = torch_backend.stored
synchronize = torch_backend.synchronize
timer = torch_backend.timer
flusher = torch_backend.flusher
capture = torch_backend.capture
set_threads = torch_backend.set_threads
slow_product = torch_backend.slow_product


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why torch.compile cannot compute in `dtype` on `device`: torch cannot, or nothing there compiles."""
    return torch_backend.unsupported(dtype, device) or _missing_compiler(device)


def versions() -> Mapping[str, str]:
    """Return torch's versions and Triton's, where there is one."""
    triton = host.version_of("triton")
    return {**torch_backend.versions(), **({"triton": triton} if triton else {})}


def _missing_compiler(device: Device) -> str | None:
    if device.kind == "cuda":
        return None if host.is_installed("triton") else "torch.compile needs Triton on CUDA: pip install triton"
    if device.kind in TORCH_KINDS:
        needs = (
            f"torch.compile needs Triton on {TORCH_KINDS[device.kind].title}, which the build of torch for it includes"
        )
        return None if host.is_installed("triton") else needs
    compiler = os.environ.get("CXX", "g++")  # as torch._inductor.config.cpp.cxx has it
    return (
        None if shutil.which(compiler) else f"torch.compile needs a C++ compiler on a CPU, but {compiler} was not found"
    )
