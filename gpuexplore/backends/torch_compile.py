"""torch.compile: torch's arrays, clocks and threads; Inductor compiles each shape and dtype in its first call.

A CPU kernel is C++, so a compiler has to be there; a CUDA kernel is Triton's. What Inductor compiled it keeps on
disk, so that the first call of a later process is shorter.
"""

import os
import shutil
from collections.abc import Mapping

from gpuexplore.backends import host
from gpuexplore.backends import torch as torch_backend
from gpuexplore.backends.torch import (  # noqa: F401 parts of the contract
    INSTALL,
    capture,
    driver_facts,
    empty,
    flusher,
    is_available,
    load,
    poison,
    set_threads,
    slow_product,
    stored,
    synchronize,
    timer,
    to_device,
)
from gpuexplore.core.dtypes import DType
from gpuexplore.core.model import Device
from gpuexplore.hardware.torch_devices import TORCH_KINDS

DEVICE_KINDS: tuple[str, ...] = ("cpu", "cuda", *(name for name, row in TORCH_KINDS.items() if row.compiled_by_triton))


def unsupported(dtype: DType, device: Device) -> str | None:
    """Return why torch.compile cannot compute in `dtype` on `device`: torch cannot, or nothing there compiles."""
    return torch_backend.unsupported(dtype, device) or _missing_compiler(device)


def versions() -> Mapping[str, str]:
    """Return torch's versions and Triton's, where there is one."""
    return {**torch_backend.versions(), **host.versions_of("triton")}


def _missing_compiler(device: Device) -> str | None:
    if device.kind == "cpu":
        compiler = os.environ.get("CXX", "g++")  # as torch._inductor.config.cpp.cxx has it
        missing = f"torch.compile needs a C++ compiler on a CPU, but {compiler} was not found"
        return None if shutil.which(compiler) else missing
    missing = "torch.compile needs Triton on CUDA: pip install triton"
    if device.kind in TORCH_KINDS:
        title = TORCH_KINDS[device.kind].title
        missing = f"torch.compile needs Triton on {title}, which the build of torch for it includes"
    return None if host.is_installed("triton") else missing
