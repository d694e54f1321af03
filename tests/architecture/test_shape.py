"""Small files, documented and typed public functions: what readers rely on."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "gpuexplore").rglob("*.py"))
PAGES = sorted([*(ROOT / "pages").glob("*.py"), *(ROOT / "gpuexplore" / "features").glob("*/page.py")])
SCRIPTS = sorted([*ROOT.glob("*.py"), *PAGES])
LARGEST_FILE_LINES = 400
LARGEST_PAGE_LINES = 120


def name_of(path):
    return str(path.relative_to(ROOT))


def public_functions(body):
    """Yield public functions of a module or class and of its public classes."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from public_functions(node.body)


def parameters(function):
    """Return every parameter that needs a type: all but self and cls."""
    listed = function.args
    every = [*listed.posonlyargs, *listed.args, listed.vararg, *listed.kwonlyargs, listed.kwarg]
    return [parameter for parameter in every if parameter is not None and parameter.arg not in ("self", "cls")]


def is_kernel(function):
    """Return whether Numba compiles it, by decorator or by call, and so gives it its types."""
    return "kernel" in function.name or any("jit" in ast.unparse(decorator) for decorator in function.decorator_list)


def lacks(function):
    """Return what a reader misses: a docstring, the return type or types of parameters."""
    missing = [] if ast.get_docstring(function) else ["docstring"]
    if is_kernel(function):
        return missing
    missing += [parameter.arg for parameter in parameters(function) if parameter.annotation is None]
    return missing + (["return type"] if function.returns is None else [])


def longer_than(lines, paths):
    """Return the files with more lines, and how many these have."""
    counts = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}
    return {name: count for name, count in counts.items() if count > lines}


def test_files_are_short_enough_to_read_at_once():
    assert longer_than(LARGEST_FILE_LINES, SOURCES) == {}


def test_pages_are_thin():
    assert longer_than(LARGEST_PAGE_LINES, SCRIPTS) == {}


def unexplained(path):
    """Return what a reader misses in a file: its own docstring, and what its public functions lack."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = [] if ast.get_docstring(tree) else ["the module says nothing about its job"]
    lacking = [(function.name, lacks(function)) for function in public_functions(tree.body)]
    return module + [f"{name}: {', '.join(missing)}" for name, missing in lacking if missing]


def test_public_functions_say_what_they_do_and_take():
    found = {name_of(path): unexplained(path) for path in SOURCES}

    assert {name: missing for name, missing in found.items() if missing} == {}


def variables_called_one(path):
    """Return the lines where a loop variable or a parameter is called `one`, which says nothing about it."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    targets = [node.target for node in nodes if isinstance(node, ast.For | ast.comprehension)]
    names = [name for target in targets for name in ast.walk(target) if isinstance(name, ast.Name) and name.id == "one"]
    return [
        node.lineno for node in [*names, *(node for node in nodes if isinstance(node, ast.arg) and node.arg == "one")]
    ]


def test_variables_are_named_after_what_they_hold():
    found = {str(path.relative_to(ROOT)): variables_called_one(path) for path in [*SOURCES, *SCRIPTS]}

    assert {name: lines for name, lines in found.items() if lines} == {}
