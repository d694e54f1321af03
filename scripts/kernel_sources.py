"""A digest of what a CUDA kernel is made from: its files, those they take code from, and the compiler's versions.

Where it is the one in compiled.json, the compiler would be given what it was given when the file was written.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

import gpuexplore
from gpuexplore.backends import host
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import Implementation

PACKAGE = Path(gpuexplore.__file__).parent
TOOLCHAIN = ("numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "llvmlite")
# what compiles, reads and runs every kernel
ALWAYS = (
    "core/dtypes.py",
    "operations/kernel_targets.py",
    "kernels/cuda_compile.py",
    "kernels/sass/*.py",
    "kernels/ptx/*.py",
)


def toolchain() -> dict[str, str]:
    """Return the versions of what compiles kernels here."""
    return {name: host.version_of(name) or "not installed" for name in TOOLCHAIN}


def digest(operation: Operation, implementation: Implementation, package: Path = PACKAGE) -> str:
    """Return a digest of a kernel's sources, of the compiler's versions and of Python's, which decides its bytecode."""
    made_by = [*map("=".join, sorted(toolchain().items())), f"python={sys.version_info.major}.{sys.version_info.minor}"]
    paths = files(operation, implementation, package)
    texts = (path.relative_to(package).as_posix().encode() + _decisive(path) for path in paths)
    return sha256(b"\0".join([*map(str.encode, made_by), *texts])).hexdigest()[:16]


def files(operation: Operation, implementation: Implementation, package: Path = PACKAGE) -> list[Path]:
    """Return the files that decide what a kernel is: its module, and whatever that imports of kernels and operations.

    An operation's own folder is among them with its constants, but not what all operations are declared with.
    """
    folder = package / "operations" / operation.name
    found = {path for pattern in ALWAYS for path in package.glob(pattern)}
    ahead = [folder / "__init__.py", folder / f"{implementation.module}.py"]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += _taken_from(path, package)
    return sorted(found)


def _decisive(path: Path) -> bytes:
    """Return what of a file decides a kernel: of an operation's declaration its syntax, without sentences."""
    if path.name != "__init__.py":
        return path.read_bytes()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            node.value = ""
    return ast.dump(tree).encode()


@cache
def _taken_from(path: Path, package: Path) -> list[Path]:
    """Return the files of kernels, and of folders of operations, that a file imports."""
    names = _names(ast.parse(path.read_text(encoding="utf-8")))
    candidates = (package.joinpath(*name.split(".")[1:]) for name in names if _is_code_of_kernels(name))
    both = (each for stem in candidates for each in (stem.with_suffix(".py"), stem / "__init__.py"))
    return sorted({each for each in both if each.is_file()})


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a script imports from, and what it imports from them, which may be modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _is_code_of_kernels(name: str) -> bool:
    shared = ("contract", "families", "implementation", "implementations")
    _, _, inside = name.partition("gpuexplore.operations.")
    return name.startswith("gpuexplore.kernels.") or (inside != "" and inside.split(".")[0] not in shared)
