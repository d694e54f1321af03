"""The facts of every compiled CUDA kernel in its default block, as recorded in compiled.json; loads no compiler."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from gpuexplore.core.serialization import decode
from gpuexplore.kernels.sass import LoopFacts


@dataclass(frozen=True, slots=True)
class _Recorded:
    """One kernel in one dtype for one compute capability, in its default block."""

    registers_per_thread: int
    shared_bytes: int
    local_bytes: int
    spill_bytes: int
    main_loop: LoopFacts


def recorded(operation: str, implementation: str, dtype: str, compute_capability: str) -> _Recorded | None:
    """Return what is recorded of a kernel, or None where nothing is."""
    found = _record()["kernels"].get(f"{operation}/{implementation}/{dtype}", {}).get(compute_capability)
    return decode(_Recorded, found) if found else None


def recorded_elsewhere(
    operation: str, implementation: str, dtype: str, compute_capability: str
) -> dict[str, _Recorded]:
    """Return what other CUDA toolkits make of a kernel, by their version: none where it is the same."""
    name = f"{operation}/{implementation}/{dtype}"
    found = {}
    for other in _record()["others"]:
        if made := other["kernels"].get(name, {}).get(compute_capability):
            found[other["toolkit"]] = decode(_Recorded, made)
    return found


def toolchain() -> dict[str, str]:
    """Return the versions of the compiler it was recorded with, by package."""
    return dict(_record()["toolchain"])


@cache
def _record() -> dict[str, Any]:
    text = (files("gpuexplore.operations") / "compiled.json").read_text(encoding="utf-8")
    return json.loads(text)
