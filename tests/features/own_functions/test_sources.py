"""Files of users: what they are called, whose arrays they take, and what is said of those that cannot be used."""

import json

import pytest

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.features.own_functions import sources
from gpuexplore.features.own_functions.sources import (
    VARIABLE,
    _add_file,
    build_of,
    named,
    remove_source,
)
from gpuexplore.operations import load_build, operation_named

BUILD = "def build(inputs, out, dtype):\n    return lambda: None\n"


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch):
    monkeypatch.setenv(VARIABLE, "{}")
    monkeypatch.setattr(sources, "FUNCTIONS_OF_USERS", {})


@pytest.fixture
def written(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("torch_mine.py", BUILD, "torch:mine"),
        ("numba_cuda_mine.py", BUILD, "numba_cuda:mine"),
        ("mine.py", f"LIBRARY = 'numba'\n{BUILD}", "numba:mine"),
        ("mine.py", f"import numpy as np\n{BUILD}", "numpy:mine"),
        ("mine.py", f"import numpy\nfrom torch import add\n{BUILD}", "torch:mine"),
        ("naïve kernel.py", f"LIBRARY = 'torch'\n{BUILD}", "torch:naïve-kernel"),
    ],
)
def test_a_file_is_called_after_its_library_and_its_name(written, file, text, name):
    assert _add_file(written(file, text)) == name


@pytest.mark.parametrize(("text", "library"), [("import jax\n", "jax"), ("import cupy\nimport numpy\n", "cupy")])
def test_a_function_may_take_arrays_that_a_build_does_not(written, text, library):
    path = written("mine.py", f"{text}def add(a, b):\n    return a + b\n")

    assert _add_file(f"{path}:add") == f"{library}:add"
    with pytest.raises(InvalidInput, match=r"build in mine.py 'missing'"):
        _add_file(path)


@pytest.mark.parametrize(
    ("file", "text", "function", "said"),
    [
        ("mine.py", "def build(:\n", "", "is not valid Python"),
        ("mine.py", "import numpy\n", "", "build in mine.py 'missing': expected file.py with build"),
        ("mine.py", "import numpy\ndef add(a): ...\n", "sub", "sub in mine.py 'missing'"),
        (
            "mine.py",
            f"LIBRARY = 'tensorflow'\n{BUILD}",
            "",
            "LIBRARY in mine.py 'tensorflow': expected numpy, numba",
        ),
        ("mine.py", f"LIBRARY = 'jax'\n{BUILD}", "", "'jax': expected numpy, numba, torch, triton, numba_cuda"),
        ("mine.py", BUILD, "", "does not state its array library"),
    ],
)
def test_what_cannot_be_used_is_told_before_anything_runs(written, file, text, function, said):
    with pytest.raises(InvalidInput, match=said):
        _add_file(written(file, f"{text}") + (f":{function}" if function else ""))


def test_a_missing_file_is_named():
    with pytest.raises(InvalidInput, match=r"nowhere/mine\.py: No such file"):
        _add_file("nowhere/mine.py")


def test_a_file_is_not_run_before_it_is_built(written):
    path = written("numpy_mine.py", f"raise RuntimeError('ran')\n{BUILD}")

    name = _add_file(path)

    with pytest.raises(RuntimeError, match="ran"):
        build_of(name)


def test_who_asks_for_an_implementation_whose_file_is_not_told_hears_so():
    row = operation_named("matmul").implementation_named("torch:mine")

    assert (row.backend, row.unit, row.of_a_user) == ("torch", "matrix", True)
    with pytest.raises(Unsupported, match="torch:mine is a user's implementation, and its file is not known here"):
        load_build(operation_named("matmul"), row)


def test_names_stay_as_they_are():
    assert named(["torch:mine", "numpy", "mine"]) == ["torch:mine", "numpy", "mine"]


def test_workers_inherit_what_is_told_until_it_is_forgotten(written, monkeypatch):
    name = _add_file(written("numpy_mine.py", BUILD))

    assert name in json.loads(sources.os.environ[VARIABLE])
    remove_source(name)
    assert json.loads(sources.os.environ[VARIABLE]) == {}
