"""Why a library finds no GPU though the machine has one: nearly always a driver that is older than its CUDA."""

# the least driver on Linux for any minor version: https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/#id7
LEAST_DRIVERS = {"11": "450.80.02", "12": "525.60.13", "13": "580.65.06"}


def why_no_gpu(library: str, cuda_version: str | None) -> str:
    """Return the sentence for a library that was built for `cuda_version`; None: for CPUs only."""
    if cuda_version is None:
        return f"{library} is built for CPUs only: install its build for CUDA"
    least = LEAST_DRIVERS.get(cuda_version.partition(".")[0])
    needs = f", which needs driver {least} or newer" if least else ""
    return f"{library} is built for CUDA {cuda_version}{needs}, and finds no GPU"
