"""CUDA kernels compiled for any target, in a process of their own, and cached on disk."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import gpuexplore
from gpuexplore.backends import host
from gpuexplore.devices import cache_directory
from gpuexplore.errors import Unsupported
from gpuexplore.kernels.compiled_kernel import CompiledKernel
from gpuexplore.kernels.geometry import Block
from gpuexplore.serialization import decode, encode
from gpuexplore.units import format_seconds

LIMIT_S = 120.0
TOOLCHAIN = ("numba-cuda", "nvidia-nvjitlink", "nvidia-cuda-nvvm", "nvidia-nvvm", "llvmlite")
SOURCES = ("operations", "kernels")
PROCESS = "gpuexplore.jobs.compile_process"


@dataclass(frozen=True, slots=True)
class Target:
    """A kernel and what it is compiled for; `block` None is the kernel's default."""

    operation: str
    implementation: str
    dtype: str
    compute_capability: str
    block: Block | None = None


def compiled_kernel(target: Target) -> CompiledKernel:
    """Return one kernel compiled for one target.

    Raises:
        Unsupported: it cannot be compiled for this target, and why.
    """
    (found,) = compiled_kernels([target])
    if isinstance(found, str):
        raise Unsupported(found)
    return found


def compiled_kernels(targets: Sequence[Target]) -> list[CompiledKernel | str]:
    """Return each target compiled, or the reason why it cannot be, in order; new ones in one process."""
    if not host.is_installed("numba", "numba_cuda"):
        return ['the compiler is not installed: pip install "numba-cuda[cu13]"'] * len(targets)
    known = {target: _cached(target) for target in targets}
    missing = [target for target, answer in known.items() if answer is None]
    for target, answer in zip(missing, _compile(missing), strict=True):
        _cache(target, answer)
        known[target] = answer
    return [_value(known[target]) for target in targets]


def _compile(targets: Sequence[Target]) -> list[dict[str, Any]]:
    if not targets:
        return []
    request = json.dumps([asdict(target) for target in targets])
    command = [sys.executable, "-m", PROCESS]
    try:
        done = subprocess.run(command, input=request, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return [{"reason": f"the compiler took longer than {format_seconds(LIMIT_S)}"} for _ in targets]
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return [{"reason": f"the compiler failed: {last}"} for _ in targets]
    answers: list[dict[str, Any]] = json.loads(done.stdout)
    return answers


def _value(answer: dict[str, Any] | None) -> CompiledKernel | str:
    if answer is None:
        return "it was not compiled"
    return answer["reason"] if "reason" in answer else decode(CompiledKernel, answer["compiled"])


def _cached(target: Target) -> dict[str, Any] | None:
    try:
        cached: dict[str, Any] = json.loads(_path(target).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # never compiled, or cut off while it was written
        return None
    return cached


def _cache(target: Target, answer: dict[str, Any]) -> None:
    if "compiled" in answer:
        path = _path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(answer), encoding="utf-8")


def _path(target: Target) -> Path:
    key = json.dumps([encode(target), _fingerprint()])
    return cache_directory() / "kernels" / f"{sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def _fingerprint() -> list[str]:
    """Return what a compiled kernel depends on besides its target: sources and compiler."""
    root = Path(gpuexplore.__file__).parent
    files = [path for name in SOURCES for path in _python_files(root / name)]
    digest = sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return [digest, *(f"{name} {host.version_of(name)}" for name in TOOLCHAIN)]


def _python_files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py"))
