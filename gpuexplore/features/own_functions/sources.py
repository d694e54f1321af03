"""Implementations and operations of users: where they are, in this process and in the workers that it starts.

What is told here stands in a variable of the environment, which workers inherit: the name of an implementation, and
the file it is in. Nothing is imported before it is built, so that what a file does when it is loaded happens where
cases are measured, and becomes the status of one.
"""

import ast
import json
import os
import pickle
import re
import sys
from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain, count
from pathlib import Path
from typing import Any
from zlib import crc32

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import BACKEND_OF_USERS, OF_USERS

Build = Callable[..., Callable[[], object]]

VARIABLE = (
    "GPUEXPLORE_OWN"  # a JSON object: by the name of an implementation, `file.py`, `file.py:function` or a pickle
)
PICKLED = ".pickle"
SUFFIX = ".py"
LIBRARY = "LIBRARY"  # of a file whose name does not start with it
WITH_FUNCTIONS = ("numpy", "numba", "torch", "jax", "cupy")  # libraries of functions that return their result
WITH_BUILD = ("numpy", "numba", "torch", "triton", "numba_cuda")
OPERATIONS_OF_USERS: dict[str, Operation] = {}
FUNCTIONS_OF_USERS: dict[str, Callable[..., Any]] = {}
FORMS = "file.py with build(inputs, out, dtype), or file.py:function with function(*inputs) -> output"


def add_source(name: str, source: str) -> None:
    """Remember where the implementation called `name` is, here and in every worker started from now on."""
    FUNCTIONS_OF_USERS.pop(name, None)
    os.environ[VARIABLE] = json.dumps({**_sources(), name: source})


def remove_source(name: str) -> None:
    """Forget where `name` is."""
    os.environ[VARIABLE] = json.dumps({known: source for known, source in _sources().items() if known != name})


def add_function(name: str, function: Callable[..., Any]) -> None:
    """Remember a function for this process; one of that name that was there before is replaced."""
    remove_source(name)
    FUNCTIONS_OF_USERS[name] = function


def free_name(name: str) -> str:
    """Return a name that no operation of a user has here: results of one that was declared before keep it."""
    taken = [known for known in OPERATIONS_OF_USERS if known == name or known.rpartition("_")[0] == name]
    return f"{name}_{len(taken) + 1}" if taken else name


def add_operation(operation: Operation) -> None:
    """Remember an operation for this process."""
    OPERATIONS_OF_USERS[operation.name] = operation


def operation_of_user(name: str) -> Operation | None:
    """Return the operation called `name` that a user declared, here or in the process that started this one."""
    if name not in OPERATIONS_OF_USERS and OF_USERS not in name and (source := _sources().get(name)):
        OPERATIONS_OF_USERS[name] = _unpickled(source)
    return OPERATIONS_OF_USERS.get(name)


def add_file(text: str, taken: Collection[str] = ()) -> str:
    """Remember the implementation in a file, and return its name, e.g. `torch:mine`; the file is read, not run.

    Args:
        text: the path, and after a colon the name of a function in it; without one the file has a `build`.
        taken: names that others have, who are measured beside it.

    Raises:
        InvalidInput: there is no such file, it is no Python, or it has no such function; or its library is unknown.
    """
    path, function = split_source(text)
    tree = _parsed(path, text)
    wanted = function or "build"
    if wanted not in _names_in(tree):
        raise InvalidInput.of(f"{wanted} in {path.name}", "not there", FORMS)
    library = _library_of(path, tree, is_function=bool(function))
    label = label_of(function or path.stem.removeprefix(f"{library}_"))
    name = numbered(f"{library}{OF_USERS}{label}", taken)
    add_source(name, f"{path.resolve()}{OF_USERS}{function}" if function else str(path.resolve()))
    return name


def own_names() -> list[str]:
    """Return the names of implementations of users whose place was told here, or to whoever started this process."""
    return [name for name in _sources() if OF_USERS in name]


def numbered(name: str, taken: Collection[str]) -> str:
    """Return `name`, with the first number behind it that nobody has where it is taken."""
    others = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], others) if each not in taken)


def is_source(text: str) -> bool:
    """Return whether `text` is the path of a file, with or without a function, and no name of an implementation."""
    return split_source(text)[0].suffix == SUFFIX


def split_source(text: str) -> tuple[Path, str]:
    """Return the path, and the name of the function after it; empty without one."""
    before, colon, function = text.rpartition(OF_USERS)
    path = Path(before).expanduser()
    return (path, function.strip()) if colon and path.suffix == SUFFIX else (Path(text).expanduser(), "")


def build_of_user(name: str) -> Build:
    """Return the `build` of a user's implementation; this runs its file.

    Raises:
        Unsupported: nobody told where it is.
    """
    library, source = name.partition(OF_USERS)[0], _sources().get(name)
    if name in FUNCTIONS_OF_USERS:
        return _returning(FUNCTIONS_OF_USERS[name], library)
    if source is None:
        raise Unsupported(f"{name} is a user's, and its file is not known here: --impl takes {FORMS}")
    return _built(library, source, split_source(source)[0].stat().st_mtime_ns)


@cache
def _built(library: str, source: str, _: int) -> Build:
    """Return the build of a source as it was written last."""
    if source.endswith(PICKLED):
        return _returning(_unpickled(source), library)
    path, function = split_source(source)
    module = module_of(path)
    if function:
        return _returning(getattr(module, function), library)
    build: Build = module.build
    return _into_holder(build) if BACKEND_OF_USERS[library] == "numpy_returned" else build


def module_of(path: Path) -> Any:
    """Return the module of a user's file, which this runs."""
    spec = spec_from_file_location(f"own_{crc32(str(path).encode()):x}_{label_of(path.stem).replace('-', '_')}", path)
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # what lies beside it
    spec.loader.exec_module(module)
    return module


def _returning(function: Callable[..., Any], library: str) -> Build:
    """Return the build of a function; who only asks for facts loads nothing of what it needs."""
    made: Build = import_module("gpuexplore.operations.returning").build_of_function(function, library)
    return made


def _into_holder(build: Build) -> Build:
    """Return a build that gets the array itself where the library keeps what was returned in a holder."""
    return lambda inputs, out, dtype, **chosen: build(inputs, out.array, dtype, **chosen)


def _sources() -> Mapping[str, str]:
    try:
        found: Mapping[str, str] = json.loads(os.environ.get(VARIABLE) or "{}")
    except ValueError as error:
        raise InvalidInput.of(VARIABLE, os.environ[VARIABLE], "a JSON object: names and files") from error
    return found


def _unpickled(source: str) -> Any:
    """Return what a process of this user wrote for its workers."""
    return pickle.loads(Path(source).read_bytes())


def _parsed(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"{text}: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(f"{text} is no Python: {error}") from error


def _names_in(tree: ast.Module) -> set[str]:
    """Return the names that a file defines: functions, classes, what is assigned or imported."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def _library_of(path: Path, tree: ast.Module, *, is_function: bool) -> str:
    """Return what LIBRARY in the file says, else what the name of the file starts with, else what it imports."""
    said = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(isinstance(target, ast.Name) and target.id == LIBRARY for target in node.targets)
    ]
    accepted = WITH_FUNCTIONS if is_function else WITH_BUILD
    if said:
        if said[-1] not in accepted:
            raise InvalidInput.of(f"{LIBRARY} in {path.name}", said[-1], accepted)
        return str(said[-1])
    first = sorted((name for name in accepted if path.stem.startswith(f"{name}_")), key=len)
    imported = [name for name in ("cupy", "jax", "torch", "numpy") if name in accepted and name in _imports(tree)]
    if not first and not imported:
        raise InvalidInput(f"{path.name} does not say what its arrays are of: {LIBRARY} = one of {', '.join(accepted)}")
    return (first or imported)[-1 if first else 0]


def _imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def label_of(text: str) -> str:
    """Return a name that can be shown and typed."""
    return re.sub(r"[^\w]+", "-", text).strip("-_") or "unnamed"
