"""Implementations of users: what they are called, whose arrays they take, and where they are, here and in workers.

The name of an implementation and the file it is in stand in a variable of the environment, which workers inherit.
Nothing is imported before it is built, so that what a file does when it is loaded happens where cases are measured, and
becomes the status of one.
"""

import argparse
import ast
import inspect
import json
import os
import pickle
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuexplore.core.errors import InvalidInput, Unsupported, check_known, require
from gpuexplore.jobs.server_settings import ALLOWED_HOSTS
from gpuexplore.operations import BACKEND_OF_USERS, OF_USERS, Build, Operation
from gpuexplore.operations.own_code import Function, build_of_function, module_of, split_source

VARIABLE = (
    "GPUEXPLORE_OWN"  # a JSON object: by the name of an implementation, `file.py`, `file.py:function` or a pickle
)
PICKLED = ".pickle"  # what a process of this user wrote for its workers
LIBRARY = "LIBRARY"  # of a file whose name does not start with it
WITH_FUNCTIONS = ("numpy", "numba", "torch", "jax", "cupy")  # libraries of functions that return their result
OPERATIONS_OF_USERS: dict[str, Operation] = {}
FUNCTIONS_OF_USERS: dict[str, Function] = {}
FORMS = "file.py with build(inputs, out, dtype), or file.py:function with function(*inputs) -> output"
ACCEPTED = "and your own files: mine.py with build(inputs, out, dtype), or mine.py:function that returns its output"
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def named(implementations: Iterable[Any]) -> list[Any]:
    """Return implementations by name: functions and files of users are remembered and get one."""
    found: list[Any] = []
    for each in implementations:
        if callable(each):
            found += add_functions([each], taken=found)
        elif isinstance(each, str | Path) and split_source(str(each))[0].suffix == ".py":
            found.append(_add_file(str(each), found))
        else:
            found.append(each)
    return found


def offered() -> list[str]:
    """Return the names of implementations whose file is known to this process."""
    return [name for name in _sources() if OF_USERS in name]


def build_of(name: str) -> Build:
    """Return the `build` of a user's implementation; this runs its file.

    Raises:
        Unsupported: its file is not known here.
    """
    library = name.partition(OF_USERS)[0]
    source = _sources().get(name)
    if name in FUNCTIONS_OF_USERS:
        return build_of_function(FUNCTIONS_OF_USERS[name], library)
    if source is None:
        raise Unsupported(f"{name} is a user's implementation, and its file is not known here: --impl accepts {FORMS}")
    return _built(library, source, split_source(source)[0].stat().st_mtime_ns)


@cache
def _built(library: str, source: str, _: int) -> Build:
    """Return the build of a source as it was written last."""
    if source.endswith(PICKLED):
        return build_of_function(pickle.loads(Path(source).read_bytes()), library)
    path, function = split_source(source)
    module = module_of(path)
    if function:
        return build_of_function(getattr(module, function), library)
    build: Build = module.build
    if BACKEND_OF_USERS[library] == "numpy_returned":  # which keeps what was returned in a holder
        return lambda inputs, out, dtype, **chosen: build(inputs, out.array, dtype, **chosen)
    return build


def operation_of(name: str) -> Operation | None:
    """Return the operation called `name` that a user declared, here or in the process that started this one."""
    if name not in OPERATIONS_OF_USERS and OF_USERS not in name and (source := _sources().get(name)):
        OPERATIONS_OF_USERS[name] = pickle.loads(Path(source).read_bytes())
    return OPERATIONS_OF_USERS.get(name)


def add_app_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the option of `gpuexplore app` that offers files."""
    parser.add_argument(
        "--own",
        action="append",
        default=[],
        metavar="FILE",
        help=f"offer your own implementation: {FORMS}; on this machine only; may be repeated",
    )


def check_app_arguments(arguments: argparse.Namespace) -> None:
    """Have the form offer files of users, which every visitor of the app can run.

    Raises:
        InvalidInput: others than this machine's users can open it, or a file cannot be used.
    """
    if arguments.own or offered():
        accepted = f"{' or '.join(LOOPBACK)}, without a proxy: anyone who opens the app runs the file with your rights"
        allowed = filter(None, (name.strip() for name in os.environ.get(ALLOWED_HOSTS, "").split(",")))
        for name in (arguments.address, *allowed):
            require(name in LOOPBACK, "--address with --own", name, accepted)
        if arguments.behind_proxy:
            raise InvalidInput.of("--behind-proxy with --own", arguments.behind_proxy, accepted)
    for file in arguments.own:
        _add_file(file)


def add_source(name: str, source: str) -> None:
    """Remember where the implementation called `name` is, here and in every worker started from now on."""
    FUNCTIONS_OF_USERS.pop(name, None)
    os.environ[VARIABLE] = json.dumps({**_sources(), name: source})


def remove_source(name: str) -> None:
    """Forget where `name` is."""
    os.environ[VARIABLE] = json.dumps({known: source for known, source in _sources().items() if known != name})


def _sources() -> Mapping[str, str]:
    try:
        found: Mapping[str, str] = json.loads(os.environ.get(VARIABLE) or "{}")
    except ValueError as error:
        raise InvalidInput.of(VARIABLE, os.environ[VARIABLE], "a JSON object: names and files") from error
    return found


def _numbered(name: str, taken: Collection[str]) -> str:
    """Return `name`, with the first number behind it that nothing has where it is taken."""
    others = (f"{name}-{number}" for number in count(2))
    return next(each for each in chain([name], others) if each not in taken)


def label_of(text: str) -> str:
    """Return a name that can be shown and typed."""
    return re.sub(r"[^\w]+", "-", text).strip("-_") or "unnamed"


def _add_file(text: str, taken: Collection[str] = ()) -> str:
    """Remember the implementation in a file, and return its name, e.g. `torch:mine`.

    Args:
        text: the path, and after a colon the name of a function in it; without one the file has a `build`.
        taken: names that others have, which are measured together with it.

    Raises:
        InvalidInput: there is no such file, it is no Python, or it has no such function; or its library is unknown.
    """
    path, function = split_source(text)
    tree = _parsed(path, text)
    wanted = function or "build"
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    require(wanted in found, f"{wanted} in {path.name}", "missing", FORMS)
    library = _library_of_file(path, tree, is_function=bool(function))
    label = label_of(function or path.stem.removeprefix(f"{library}_"))
    name = _numbered(f"{library}{OF_USERS}{label}", taken)
    add_source(name, f"{path.resolve()}{OF_USERS}{function}" if function else str(path.resolve()))
    return name


def _parsed(path: Path, text: str) -> ast.Module:
    try:
        return ast.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InvalidInput(f"{text}: {error.strerror or error}") from error
    except (SyntaxError, ValueError) as error:
        raise InvalidInput(f"{text} is not valid Python: {error}") from error


def _library_of_file(path: Path, tree: ast.Module, *, is_function: bool) -> str:
    """Return what LIBRARY in the file says, else what the name of the file starts with, else what it imports."""
    said = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and any(isinstance(target, ast.Name) and target.id == LIBRARY for target in node.targets)
    ]
    accepted = WITH_FUNCTIONS if is_function else ("numpy", "numba", "torch", "triton", "numba_cuda")
    if said:
        check_known(f"{LIBRARY} in {path.name}", said[-1], accepted)
        return str(said[-1])
    first = sorted((name for name in accepted if path.stem.startswith(f"{name}_")), key=len)
    imported = [name for name in ("cupy", "jax", "torch", "numpy") if name in accepted and name in _imports(tree)]
    if not first and not imported:
        raise InvalidInput(
            f"{path.name} does not state its array library: set {LIBRARY} to one of {', '.join(accepted)}"
        )
    return (first or imported)[-1 if first else 0]


def _imports(tree: ast.Module) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def add_functions(
    functions: Sequence[Function], library: str = "", arrays: Sequence[Any] = (), *, taken: Collection[str] = ()
) -> dict[str, Function]:
    """Remember functions for this process; return them by the names of their implementations, `torch:mine`.

    Args:
        functions: each `function(*inputs) -> output`.
        library: whose arrays they take; empty: as seen from the arrays or the functions themselves.
        arrays: inputs, where there are some.
        taken: names of others, which are measured with them.

    Raises:
        InvalidInput: one is no function.
    """
    found: dict[str, Function] = {}
    for function in functions:
        label = label_of(title_of(function))
        name = f"{library or _library_of_function(function, arrays)}{OF_USERS}{label}"
        found[_numbered(name, [*found, *taken])] = function
    for name in found:
        remove_source(name)
    FUNCTIONS_OF_USERS.update(found)
    return found


def title_of(function: Function) -> str:
    """Return what a function is called.

    Raises:
        InvalidInput: it is none.
    """
    require(callable(function), "implementation", function, "names that `gpuexplore list` prints, and functions")
    inner = getattr(function, "py_func", None) or getattr(function, "_torchdynamo_orig_callable", None) or function
    return str(getattr(inner, "__name__", None) or type(inner).__name__).strip("<>")


def _library_of_function(function: Function, arrays: Sequence[Any]) -> str:
    """Return whose arrays a function takes: those it is given, unless they are NumPy's and it is another library's.

    That is seen by its type, as of `jax.jit`, and by the modules that its code names: one that calls torch's
    `from_numpy`, or `numpy` of a tensor, takes NumPy's. What calls nothing of a library takes any arrays: it gets
    NumPy's.
    """
    given = _library_named(arrays[0]) if arrays else ""
    own = _library_named(function)
    if given not in ("", "numpy"):
        return given
    if own in ("", "numpy"):
        of_torch = getattr(sys.modules.get("torch"), getattr(function, "__name__", ""), None)
        if of_torch is function or getattr(function, "_torchdynamo_orig_callable", None):
            own = "torch"
    if own:
        return own
    used = {getattr(value, "__name__", "").partition(".")[0] for value in _modules_of(function)}
    called = next((library for library in WITH_FUNCTIONS[::-1] if library in used), "numpy")
    code = getattr(inspect.unwrap(function), "__code__", None)  # none where it is not Python's
    names = set(code.co_names) if code else set()
    return "numpy" if given and ("numpy" in used or names & {"from_numpy", "numpy"}) else called


def _library_named(value: Any) -> str:
    """Return the library whose object a value is; empty: none's."""
    modules = (getattr(value, "__module__", ""), type(value).__module__)
    roots = (str(module or "").partition(".")[0].replace("jaxlib", "jax") for module in modules)
    return next((root for root in roots if root in WITH_FUNCTIONS), "")


def _modules_of(function: Function) -> list[ModuleType]:
    """Return the modules that the code of a function names."""
    try:
        found = inspect.getclosurevars(inspect.unwrap(function))
    except TypeError:  # it has no code of Python
        return []
    return [value for value in (*found.globals.values(), *found.nonlocals.values()) if isinstance(value, ModuleType)]
