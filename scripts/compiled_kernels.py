"""Writes what the compiler makes of every CUDA kernel at its default block: registers, spills, main loop.

Usage: python -m scripts.compiled_kernels, or make kernels. A test recompiles what was changed since, by the digest of
its sources, and says what differs, so that a change of a kernel that costs registers is seen without a GPU. `--other
PYTHON` compiles everything once more by an interpreter with another CUDA toolkit, and keeps what differs beside it.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gpuexplore.operations
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.kernels.cuda_compile import toolkit_version
from gpuexplore.kernels.files.machine_code import CompiledKernel, disassembled
from gpuexplore.kernels.sass import LoopFacts, facts_of
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation
from gpuexplore.operations.kernel_targets import capabilities_for, compile_for_each
from scripts.kernel_sources import digest, toolchain

FILE = Path(gpuexplore.operations.__file__).parent / "compiled.json"
Facts = dict[str, dict[str, Any]]  # by compute capability
Kernel = tuple[Operation, Implementation, DType]


def kernels(only: str | None = None) -> list[Kernel]:
    """Return every CUDA kernel of ours with each dtype it has code for; `only` those whose names begin so."""
    return [
        (operation, implementation, dtype)
        for operation in OPERATIONS.values()
        for implementation in operation.implementations
        for dtype in DTYPES.values()
        if key(operation, implementation, dtype).startswith(only or "")
        and capabilities_for(operation, implementation, dtype)
    ]


def key(operation: Operation, implementation: Implementation, dtype: DType) -> str:
    """Return the name of a kernel in the file."""
    return f"{operation.name}/{implementation.name}/{dtype.name}"


def compiled(kernel: Kernel, targets: Sequence[str] = ()) -> list[CompiledKernel]:
    """Return a kernel at its default block, compiled for each compute capability it has code for, of the `targets`."""
    capabilities = [each for each in capabilities_for(*kernel) if not targets or each in targets]
    return list(compile_for_each(*kernel, None, capabilities)) if capabilities else []


def facts(made: list[CompiledKernel]) -> Facts:
    """Return what is kept of a compiled kernel, by compute capability."""
    return {
        kernel.compute_capability: {
            "registers_per_thread": kernel.registers_per_thread,
            "shared_bytes": kernel.shared_bytes,
            "local_bytes": kernel.local_bytes,
            "spill_bytes": kernel.spill_bytes,
            "main_loop": _without_defaults(facts_of(disassembled(kernel.cubin))),
        }
        for kernel in made
    }


def _without_defaults(loop: LoopFacts) -> dict[str, Any]:
    """Return the facts as JSON has them; those that hardly a kernel has stand where they are."""
    return {
        name: value for name, value in asdict(loop).items() if value or name not in ("special", "calls", "open_tiles")
    }


def sources() -> dict[str, str]:
    """Return the digest of what each kernel is made from, by operation and implementation."""
    rows = {
        f"{operation.name}/{implementation.name}": (operation, implementation)
        for operation, implementation, _ in kernels()
    }
    return {name: digest(*row) for name, row in rows.items()}


def differences(kept: Mapping[str, Facts], found: Mapping[str, Facts]) -> dict[str, Facts]:
    """Return the facts in `found` that are others than in `kept`."""
    return {
        name: others
        for name, by_capability in found.items()
        if (others := {each: made for each, made in by_capability.items() if kept[name].get(each) != made})
    }


def _record(only: str | None, targets: Sequence[str], *, with_progress: bool) -> dict[str, Any]:
    """Return the facts of kernels, as compiled here."""
    found = {}
    for kernel in kernels(only):
        found[key(*kernel)] = facts(compiled(kernel, targets))
        if with_progress:
            print(key(*kernel))
    return {"toolkit": toolkit_version(), "toolchain": toolchain(), "kernels": found}


def elsewhere(python: str, *arguments: str) -> dict[str, Any]:
    """Return the facts as an interpreter with another CUDA toolkit compiles them."""
    command = [python, "-m", "scripts.compiled_kernels", "--print", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    record: dict[str, Any] = json.loads(done.stdout)
    return record


def _text(record: Mapping[str, Any]) -> str:
    """Return JSON with a line for each kernel and compute capability, so that a change is a line of a diff."""
    lines = ["{"]
    for last, (name, value) in _marked(record):
        if name == "sources":
            rows = [f"  {json.dumps(row)}: {json.dumps(made)}" for row, made in value.items()]
            lines += ['"sources": {', ",\n".join(rows), "}" if last else "},"]
        elif name == "kernels":
            lines += ['"kernels": {', *_kernel_lines(value), "}" if last else "},"]
        elif name == "others":
            lines += ['"others": [', ",\n".join(_text(other).strip() for other in value), "]" if last else "],"]
        else:
            lines.append(f"{json.dumps(name)}: {json.dumps(value)}{'' if last else ','}")
    return "\n".join([*lines, "}"]) + "\n"


def _kernel_lines(kernels: Mapping[str, Facts]) -> list[str]:
    lines = []
    for last, (name, by_capability) in _marked(kernels):
        lines.append(f"  {json.dumps(name)}: {{")
        lines += [
            f"    {json.dumps(capability)}: {json.dumps(values)}{'' if end else ','}"
            for end, (capability, values) in _marked(by_capability)
        ]
        lines.append("  }" if last else "  },")
    return lines


def _marked(items: Mapping[str, Any]) -> list[tuple[bool, tuple[str, Any]]]:
    return [(place == len(items), item) for place, item in enumerate(items.items(), 1)]


def main() -> None:
    """Compile everything and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", dest="prints", help="print the record, and write nothing")
    parser.add_argument("--other", metavar="PYTHON", help="an interpreter with another CUDA toolkit")
    parser.add_argument("--only", metavar="NAME", help="with --print: kernels alone whose names begin so")
    parser.add_argument("--targets", metavar="X.Y", nargs="*", default=(), help="with --print: compute capabilities")
    asked = parser.parse_args()
    if not asked.prints and (asked.only or asked.targets):
        parser.error("--only and --targets go with --print: the file holds every kernel")
    record = _record(asked.only, asked.targets, with_progress=not asked.prints)
    if asked.prints:
        json.dump(record, sys.stdout)
        return
    record["sources"] = sources()
    others = [elsewhere(asked.other)] if asked.other else []
    record["others"] = [{**other, "kernels": differences(record["kernels"], other["kernels"])} for other in others]
    FILE.write_text(_text(record), encoding="utf-8")


if __name__ == "__main__":
    main()
