"""The helper processes of a server that compile, assemble and interpret kernels: a new one for each request.

`python -m gpuexplore.features.machine_code.kernel_process` does one of `TASKS`, in a process of its own because it
loads what the web process must not, Numba or CUDA's compiler, or takes seconds of one core, which pages need; no GPU is
needed. The PTX of a file is of any user, besides: it may take this process down, or more memory than its share, and
nothing else.
"""

import json
import os
import pickle
import resource
import sys
from typing import Any

from gpuexplore.core import GpuExploreError, InvalidInput, encode

MOST_BYTES = 8 * 2**30  # of addresses, of which most are never touched


def _compile_targets() -> None:
    """Answer targets with a line of `{"compiled": ...}` or `{"reason": ...}` each, in order, as it is made."""
    for target in json.load(sys.stdin):
        sys.stdout.write(json.dumps(_compiled(target)) + "\n")
        sys.stdout.flush()


def _compiled(target: dict[str, Any]) -> dict[str, Any]:
    from gpuexplore.core.dtypes import dtype_named
    from gpuexplore.kernels.cuda_compile import compile_exhibit
    from gpuexplore.kernels.exhibits import EXHIBITS
    from gpuexplore.operations import operation_named
    from gpuexplore.operations.kernel_targets import compile_for

    exhibit = EXHIBITS.get(target["implementation"])
    capability = target["compute_capability"]
    try:
        if exhibit:
            return {"compiled": encode(compile_exhibit(exhibit, capability))}
        operation = operation_named(target["operation"])
        block = target["block"]
        implementation = operation.implementation_named(target["implementation"])
        dtype = dtype_named(target["dtype"])
        made = compile_for(operation, implementation, dtype, tuple(block) if block else None, capability)
        return {"compiled": encode(made)}
    except GpuExploreError as error:
        return {"reason": str(error)}


def _assemble_ptx() -> None:
    """Answer `{"ptx", "compute_capability"}` with what `_assembled_answer` returns."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    request = json.load(sys.stdin)
    sys.stdout.write(json.dumps(_assembled_answer(request["ptx"], request["compute_capability"])))


def _assembled_answer(ptx: str, compute_capability: str) -> dict[str, Any]:
    """Return `{"assembled": ...}`, `{"invalid": ...}` or `{"reason": ...}`."""
    from gpuexplore.kernels.cuda_compile import assemble
    from gpuexplore.kernels.files import read_ptx

    try:
        return {"assembled": encode(assemble(read_ptx(ptx), compute_capability))}
    except InvalidInput as error:
        older = "'Compile only(-c)' requires PTX ISA .version 3.1 or later"  # nvJitLink's words
        return {"invalid": str(error).replace(older, "the assembler reads PTX of .version 3.1 and later")}
    except GpuExploreError as error:
        return {"reason": str(error)}


def _interpret_kernel() -> None:
    """Answer a `Request` with a `BlockRun`, or with the error that says why there is none; both pickled."""
    from gpuexplore.measure.check.interpreted import interpreted

    request = pickle.load(sys.stdin.buffer)
    try:
        answer: object = interpreted(request)
    except GpuExploreError as error:
        answer = error
    pickle.dump(answer, sys.stdout.buffer)


TASKS = {"compile": _compile_targets, "assemble": _assemble_ptx, "interpret": _interpret_kernel}


if __name__ == "__main__":
    os.nice(10)  # no measurement and no page shall wait for a compiler, or a picture
    TASKS[sys.argv[1]]()
