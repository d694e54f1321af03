"""Torch's facts about the devices of one kind, as JSON: run in a separate process, so that no other one loads torch.

Usage: python -m gpuexplore.hardware.torch_probe rocm | mps | xpu
"""

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

Facts = Mapping[str, object]


def main() -> None:
    """Write a list with the facts of each device of the kind that the command line names."""
    import torch

    probes = {"rocm": _rocm, "mps": _mps, "xpu": _xpu}
    sys.stdout.write(json.dumps([dict(facts) for facts in probes[sys.argv[1]](torch)]) + "\n")


def _rocm(torch: Any) -> Iterator[Facts]:
    if not torch.version.hip or not torch.cuda.is_available():
        return
    for index in range(torch.cuda.device_count()):
        found = torch.cuda.get_device_properties(index)
        architecture = found.gcnArchName.partition(":")[0]
        yield {
            "name": found.name,
            "memory_bytes": found.total_memory,
            # from gfx10 on HIP counts work-group processors of two units each: https://github.com/ROCm/hip/issues/3767
            "multiprocessors": None if architecture.startswith("gfx1") else found.multi_processor_count,
            "architecture": architecture,
            "driver": f"HIP {torch.version.hip}",
            "cache_bytes": getattr(found, "L2_cache_size", None),
            "uuid": str(getattr(found, "uuid", "")),
        }


def _mps(torch: Any) -> Iterator[Facts]:
    if not torch.backends.mps.is_available():
        return
    named = torch.backends.mps
    yield {
        "name": named.get_name() if hasattr(named, "get_name") else "",
        "memory_bytes": torch.mps.recommended_max_memory(),
        "multiprocessors": named.get_core_count() if hasattr(named, "get_core_count") else None,
    }


def _xpu(torch: Any) -> Iterator[Facts]:
    if not torch.xpu.is_available():
        return
    for index in range(torch.xpu.device_count()):
        found = torch.xpu.get_device_properties(index)
        yield {
            "name": found.name,
            "memory_bytes": found.total_memory,
            "multiprocessors": getattr(found, "gpu_subslice_count", None),  # Xe-cores
            "driver": found.driver_version,
            "cache_bytes": getattr(found, "last_level_cache_size", None),
            "uuid": str(getattr(found, "uuid", "")),
        }


if __name__ == "__main__":
    main()
