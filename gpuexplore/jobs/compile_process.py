"""Compiles CUDA kernels for the targets on standard input and prints each result, a line of JSON, as it is there.

A process of its own because it loads Numba, which the web process must not; no GPU is needed.
"""

import json
import os
import sys
from typing import Any

from gpuexplore.dtypes import dtype_named
from gpuexplore.errors import GpuExploreError
from gpuexplore.kernels.cuda_compile import compile_exhibit
from gpuexplore.kernels.exhibits import EXHIBITS
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.operations import operation_named
from gpuexplore.operations.kernel_targets import compile_for
from gpuexplore.serialization import encode

NICENESS = 10  # nobody who measures or serves pages shall wait for a compiler


def main() -> None:
    """Answer a list of targets with a line of `{"compiled": ...}` or `{"reason": ...}` each, in order."""
    os.nice(NICENESS)
    for target in json.load(sys.stdin):
        sys.stdout.write(json.dumps(_answer(target)) + "\n")
        sys.stdout.flush()


def _answer(target: dict[str, Any]) -> dict[str, Any]:
    exhibit = EXHIBITS.get(target["implementation"])
    try:
        made = compile_exhibit(exhibit, target["compute_capability"]) if exhibit else _ours(target)
        return {"compiled": encode(made)}
    except GpuExploreError as error:
        return {"reason": str(error)}


def _ours(target: dict[str, Any]) -> CompiledKernel:
    operation, block = operation_named(target["operation"]), target["block"]
    implementation, dtype = operation.implementation_named(target["implementation"]), dtype_named(target["dtype"])
    return compile_for(operation, implementation, dtype, tuple(block) if block else None, target["compute_capability"])


if __name__ == "__main__":
    main()
