"""A digest of what a CUDA kernel is made from: its files, those they take code from, and the compiler's versions.

Where it is the one in compiled.json, the compiler would be given what it was given when the file was written.
"""

import ast
import sys
from collections.abc import Mapping
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
    """Return a digest of a kernel's code, of the compiler's versions and of Python's, which decides its bytecode.

    Docstrings, comments and the places of files are not counted: a file that is moved makes no other kernel.
    """
    made_by = [*map("=".join, sorted(toolchain().items())), f"python={sys.version_info.major}.{sys.version_info.minor}"]
    codes = {path: _code(path) for path in files(operation, implementation, package)}
    texts = sorted(f"{code}\n{_imported(path, package, codes)}" for path, code in codes.items())
    return sha256("\0".join([*made_by, *texts]).encode()).hexdigest()[:16]


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


def _code(path: Path) -> str:
    """Return a digest of a file's syntax without imports and docstrings, and of a declaration without sentences."""
    return _digest_of_syntax(path.read_text(encoding="utf-8"), path.name == "__init__.py")


@cache
def _digest_of_syntax(text: str, is_declaration: bool) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_docstring_or_import(each)]
        elif is_declaration and isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = "" if " " in node.value else node.value
    return sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring_or_import(node: ast.stmt) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return is_text or isinstance(node, ast.Import | ast.ImportFrom)


def _imported(path: Path, package: Path, codes: Mapping[Path, str]) -> str:
    """Return the names that a file imports: from files that are counted, with their code instead of their place."""
    rows = []
    for module, name, alias in _imports(path.read_text(encoding="utf-8")):
        stems = [package.joinpath(*each.split(".")[1:]) for each in (module, f"{module}.{name}")]
        paths = [each for stem in stems for each in (stem.with_suffix(".py"), stem / "__init__.py")]
        origin = "gpuexplore" if module.startswith("gpuexplore") else module
        rows.append(" ".join([name, str(alias), origin, *(codes[each] for each in paths if each in codes)]))
    return "\n".join(sorted(rows))


@cache
def _imports(text: str) -> list[tuple[str, str, str | None]]:
    """Return module, name and alias of each import of a script."""
    rows: list[tuple[str, str, str | None]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            rows += [(node.module, each.name, each.asname) for each in node.names]
        elif isinstance(node, ast.Import):
            rows += [(each.name, "", each.asname) for each in node.names]
    return rows


def _taken_from(path: Path, package: Path) -> list[Path]:
    """Return the files of kernels, and of folders of operations, that a file imports."""
    imports = [(module, name) for module, name, _ in _imports(path.read_text(encoding="utf-8")) if name]
    names = {each for module, name in imports for each in (module, f"{module}.{name}")}
    candidates = (package.joinpath(*name.split(".")[1:]) for name in names if _is_code_of_kernels(name))
    both = (each for stem in candidates for each in (stem.with_suffix(".py"), stem / "__init__.py"))
    return sorted({each for each in both if each.is_file()})


def _is_code_of_kernels(name: str) -> bool:
    shared = ("contract", "families", "implementation", "implementations")
    _, _, inside = name.partition("gpuexplore.operations.")
    return name.startswith("gpuexplore.kernels.") or (inside != "" and inside.split(".")[0] not in shared)
