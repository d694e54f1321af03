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
from gpuexplore.operations.sources import code_of, imports

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
    texts = code(operation, implementation, package)
    codes = {path: _digest_of_syntax(text, path.name == "__init__.py") for path, text in texts.items()}
    rows = sorted(f"{codes[path]}\n{_imported(text, package, codes)}" for path, text in texts.items())
    return sha256("\0".join([*made_by, *rows]).encode()).hexdigest()[:16]


def code(operation: Operation, implementation: Implementation, package: Path = PACKAGE) -> dict[Path, str]:
    """Return the code that decides what a kernel is, by file: its own, and whatever that imports.

    Files of kernels count as a whole, and so does the declaration of the operation with its constants; of other files
    of operations, what is used.
    """
    declaration = package / "operations" / operation.name / "__init__.py"
    own = _file(implementation.module_in(operation.name), package)
    names = {own: {implementation.export}}
    found = {path: path.read_text(encoding="utf-8") for pattern in ALWAYS for path in package.glob(pattern)}
    ahead = [declaration, own]
    while ahead:
        path = ahead.pop()
        text = path.read_text(encoding="utf-8")
        found[path] = code_of(text, frozenset(names[path])) if path in names else text
        ours = [(module, name) for module, name, _ in imports(found[path]) if module.startswith("gpuexplore.")]
        for module, name in ours:
            for other in (_file(module, package), _file(f"{module}.{name}", package)):
                if other != declaration and other.match("operations/*/*.py") and other.is_file():
                    if name not in names.setdefault(other, set()):
                        names[other].add(name)
                        ahead.append(other)
                elif module.startswith("gpuexplore.kernels") and other.is_file() and other not in found:
                    ahead.append(other)
    return found


def _file(module: str, package: Path) -> Path:
    stem = package.joinpath(*module.split(".")[1:])
    return stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")


@cache
def _digest_of_syntax(text: str, is_declaration: bool) -> str:
    """Return a digest of syntax without imports and docstrings, and of a declaration without sentences."""
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


def _imported(text: str, package: Path, codes: Mapping[Path, str]) -> str:
    """Return the names that code imports: from files that are counted, with their code instead of their place."""
    rows = []
    for module, name, alias in imports(text):
        paths = [_file(module, package), _file(f"{module}.{name}", package)] if module.startswith("gpuexplore") else []
        origin = "gpuexplore" if paths else module
        rows.append(" ".join([name, str(alias), origin, *(codes[path] for path in paths if path in codes)]))
    return "\n".join(sorted(rows))
