"""Code of users: where it is in a text, which implementation it makes, and how its results become what is timed."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from gpuexplore import operations
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.operations import load_build, operation_named
from gpuexplore.operations.own_code import build_of_function, split_source


@pytest.mark.parametrize("name", ["tensorflow:mine", "torch:", "torch:a b", ":mine", "torch:<script>"])
def test_a_name_of_no_library_or_of_nothing_is_refused(name):
    with pytest.raises(InvalidInput, match="own implementation of matmul"):
        operation_named("matmul").implementation_named(name)


@pytest.mark.parametrize(
    ("text", "path", "function"),
    [("a/mine.py", "a/mine.py", ""), ("a/mine.py:add", "a/mine.py", "add"), ("c:/mine.py", "c:/mine.py", "")],
)
def test_the_function_stands_after_the_file(text, path, function):
    found = split_source(text)

    assert (str(found[0]), found[1]) == (path, function)


def test_what_no_feature_adds_is_refused(monkeypatch):
    monkeypatch.setattr(operations, "additions", lambda: iter([]))
    row = operation_named("matmul").implementation_named("torch:mine")

    assert (row.backend, row.unit, row.of_a_user) == ("torch", "matrix", True)
    with pytest.raises(Unsupported, match="torch:mine is a user's, and nothing here runs code of users"):
        load_build(operation_named("matmul"), row)
    with pytest.raises(InvalidInput, match="operation 'mine': expected matmul"):
        operation_named("mine")


class OfJax:
    """An array as JAX's: handed over by DLPack, waited for."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **about):
        return self.tensor.__dlpack__(**about)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def block_until_ready(self):
        return self


def test_jax_computes_with_arrays_of_its_own_which_follow_new_values(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "jax", ModuleType("jax"))
    monkeypatch.setitem(sys.modules, "jax.dlpack", SimpleNamespace(from_dlpack=lambda tensor: OfJax(tensor.clone())))
    backend, dtype = load_backend("torch"), DTYPES["fp32"]
    given, out = backend.to_device(np.ones((3, 2), np.float32), dtype, "cpu"), backend.empty((3, 2), dtype, "cpu")
    build = build_of_function(lambda array: OfJax(array.tensor * 2), "jax")
    call = build([given], out, dtype)

    call()
    assert (backend.stored(out, dtype) == 2).all()
    backend.load(given, np.full((3, 2), 3, np.float32))
    call()
    assert (backend.stored(out, dtype) == 6).all()
    with pytest.raises(Unsupported, match="JAX does not support this memory layout"):
        build([given.T], out, dtype)
