"""Writes what the compiler makes of every CUDA kernel at its default block: registers, shared memory and spills.

Usage: python -m scripts.compiled_kernels, or make kernels. A test recompiles and says what differs, so that a change of
a kernel that costs registers is seen without a GPU.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpuexplore.operations
from gpuexplore.backends import host
from gpuexplore.dtypes import DTYPES, DType
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Implementation, Operation
from gpuexplore.operations.kernel_targets import capabilities_for, compile_for_each

FILE = Path(gpuexplore.operations.__file__).parent / "compiled.json"
TOOLCHAIN = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "llvmlite")
Kernel = tuple[Operation, Implementation, DType]


def toolchain() -> dict[str, str]:
    """Return the versions of what compiles kernels here."""
    return {name: host.version_of(name) or "not installed" for name in TOOLCHAIN}


def kernels() -> list[Kernel]:
    """Return every CUDA kernel of ours with each dtype it has code for."""
    return [
        (operation, implementation, dtype)
        for operation in OPERATIONS.values()
        for implementation in operation.implementations
        for dtype in DTYPES.values()
        if capabilities_for(operation, implementation, dtype)
    ]


def key(operation: Operation, implementation: Implementation, dtype: DType) -> str:
    """Return the name of a kernel in the file."""
    return f"{operation.name}/{implementation.name}/{dtype.name}"


def compiled(operation: Operation, implementation: Implementation, dtype: DType) -> list[CompiledKernel]:
    """Return a kernel at its default block, compiled for each compute capability it has code for."""
    capabilities = capabilities_for(operation, implementation, dtype)
    return list(compile_for_each(operation, implementation, dtype, None, capabilities))


def facts(made: list[CompiledKernel]) -> dict[str, dict[str, int]]:
    """Return what is kept of a compiled kernel, by compute capability."""
    return {
        kernel.compute_capability: {
            "registers_per_thread": kernel.registers_per_thread,
            "shared_bytes": kernel.shared_bytes,
            "spill_bytes": kernel.spill_bytes,
        }
        for kernel in made
    }


def _text(record: Mapping[str, Any]) -> str:
    """Return JSON with a line for each kernel and compute capability, so that a change is a line of a diff."""
    lines = [f'  "toolchain": {json.dumps(record["toolchain"])},', '  "kernels": {']
    for last, (name, by_capability) in _marked(record["kernels"]):
        lines.append(f"    {json.dumps(name)}: {{")
        lines += [
            f"      {json.dumps(capability)}: {json.dumps(values)}{'' if end else ','}"
            for end, (capability, values) in _marked(by_capability)
        ]
        lines.append("    }" if last else "    },")
    return "\n".join(["{", *lines, "  }", "}"]) + "\n"


def _marked(items: Mapping[str, Any]) -> list[tuple[bool, tuple[str, Any]]]:
    return [(place == len(items), item) for place, item in enumerate(items.items(), 1)]


def main() -> None:
    """Compile everything and write the file."""
    found = {}
    for kernel in kernels():
        found[key(*kernel)] = facts(compiled(*kernel))
        print(key(*kernel), *found[key(*kernel)].items())
    FILE.write_text(_text({"toolchain": toolchain(), "kernels": found}), encoding="utf-8")


if __name__ == "__main__":
    main()
