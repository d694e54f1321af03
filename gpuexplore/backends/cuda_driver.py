"""Why a library cannot use a GPU that the machine has: nearly always a driver that is older than its CUDA."""

# the least driver on Linux for any minor version: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#id7
LEAST_DRIVERS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}
DRIVERS, TORCH_BUILDS = "https://www.nvidia.com/drivers", "https://pytorch.org/get-started/locally/"

Version = tuple[int, int]


def why_no_gpu(library: str, cuda_version: str | None) -> str:
    """Return the sentence for a library that was built for `cuda_version`; None: for CPUs only."""
    if cuda_version is None:
        return f"{library} is built for CPUs only: install its build for CUDA ({TORCH_BUILDS})"
    return f"{_needs(library, cuda_version)}, and finds no GPU ({DRIVERS})"


def why_too_old(library: str, cuda_version: Version, driver_version: Version) -> str | None:
    """Return the sentence for a driver of an older CUDA than the library's; None where it is new enough.

    Args:
        library: as it is called.
        cuda_version: major and minor, of the CUDA it is built for; within a major version any driver will do.
        driver_version: the newest CUDA that the driver supports, packages for forward compatibility included.
    """
    if driver_version[0] >= cuda_version[0]:
        return None
    needed, found = (".".join(map(str, version)) for version in (cuda_version, driver_version))
    return f"{_needs(library, needed)}, and the driver here supports CUDA {found} at most ({DRIVERS})"


def _needs(library: str, cuda_version: str) -> str:
    least = LEAST_DRIVERS.get(cuda_version.partition(".")[0])
    needs = f", which needs driver {least} or newer" if least else ""
    return f"{library} is built for CUDA {cuda_version}{needs}"
