"""Reasons why a library cannot use a GPU of the machine: nearly always a driver older than its CUDA.

Where a library finds no GPU the driver is asked through NVML, which needs no CUDA: the sentence names the one command
that mends it.
"""

import os

from gpuexplore.core.served import IS_INSTALLED_FROM_WHEEL
from gpuexplore.hardware.nvml import driver_cuda

# the least driver on Linux for any minor version: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#id7
LEAST_DRIVERS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
DRIVERS = "https://www.nvidia.com/drivers"

Version = tuple[int, int]


def why_no_gpu(library: str, cuda_version: str | None, build_for_12: str | None = None) -> str:
    """Return the sentence for a library that was built for `cuda_version`; None: for CPUs only.

    Args:
        library: as it is called.
        cuda_version: of the CUDA it is built for.
        build_for_12: what installs its build for CUDA 12; None: the command that does so for torch and numba-cuda.
    """
    if cuda_version is None:
        builds = "https://pytorch.org/get-started/locally/"
        return f"{library} is built for CPUs only: install its build for CUDA ({builds})"
    driver = driver_cuda()
    if driver is not None and (problem := why_too_old(library, _version(cuda_version), driver, build_for_12)):
        return problem
    return f"{_needs(library, cuda_version)}, but finds no GPU ({DRIVERS})"


def why_too_old(
    library: str, cuda_version: Version, driver_version: Version, build_for_12: str | None = None
) -> str | None:
    """Return the sentence for a driver of an older CUDA than the library's; None where it is new enough.

    Args:
        library: as it is called.
        cuda_version: major and minor, of the CUDA it is built for; within a major version any driver will do.
        driver_version: the newest CUDA that the driver supports, packages for forward compatibility included.
        build_for_12: as of `why_no_gpu`.
    """
    if driver_version[0] >= cuda_version[0]:
        return None
    needed, found = (".".join(map(str, version)) for version in (cuda_version, driver_version))
    remedy = _remedy(driver_version, build_for_12)
    return f"{_needs(library, needed)}, but the installed driver supports at most CUDA {found}: {remedy}"


def _remedy(driver_version: Version, build_for_12: str | None) -> str:
    """Return what helps on a driver of an older CUDA: builds for it where there are any, else a newer driver."""
    if driver_version[0] != 12:
        return f"install a newer driver ({DRIVERS})"
    if build_for_12 or not IS_INSTALLED_FROM_WHEEL:
        return build_for_12 or "make install CUDA=12"
    index = "https://download.pytorch.org/whl/cu129"
    return f"pip install 'gpuexplore[cuda12]' torch==2.13.0 --extra-index-url {index}"


def _version(text: str) -> Version:
    major, _, minor = text.partition(".")
    return int(major), int(minor.partition(".")[0] or 0)


def _needs(library: str, cuda_version: str) -> str:
    least = LEAST_DRIVERS.get(cuda_version.partition(".")[0])
    needs = f", which needs driver {least} or newer" if least else ""
    return f"{library} is built for CUDA {cuda_version}{needs}"


# Which index a CUDA device has in this process: a worker sees its one device as 0.


def index_in_this_process(device: str) -> int:
    """Return the CUDA index of `device`, e.g. ``cuda:1``, under CUDA_VISIBLE_DEVICES.

    A worker is started with exactly one visible device, so that nothing it runs can touch another.
    """
    visible = [word for word in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    return 0 if len(visible) == 1 else int(device.partition(":")[2])


def set_threads(count: int) -> None:
    """Do nothing: a library of GPUs has no CPU threads."""
