"""Small files, documented and typed public functions: what readers rely on."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "gpuexplore").rglob("*.py"))
SCRIPTS = sorted([*ROOT.glob("*.py"), *(ROOT / "pages").glob("*.py")])
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
    return [one for one in every if one is not None and one.arg not in ("self", "cls")]


def is_kernel(function):
    """Return whether Numba compiles it, by decorator or by call, and so gives it its types."""
    return "kernel" in function.name or any("jit" in ast.unparse(one) for one in function.decorator_list)


def lacks(function):
    """Return what a reader misses: a docstring, the return type or types of parameters."""
    missing = [] if ast.get_docstring(function) else ["docstring"]
    if is_kernel(function):
        return missing
    missing += [parameter.arg for parameter in parameters(function) if parameter.annotation is None]
    return missing + (["return type"] if function.returns is None else [])


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_file_is_short_enough_to_read_at_once(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LARGEST_FILE_LINES


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_page_is_thin(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LARGEST_PAGE_LINES


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_public_functions_say_what_they_do_and_take(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))

    assert ast.get_docstring(tree) is not None, "the module says nothing about its job"
    assert {
        f"{public_function.name}: {', '.join(lacks(public_function))}"
        for public_function in public_functions(tree.body)
        if lacks(public_function)
    } == set()
