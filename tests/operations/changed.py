"""Which CUDA kernels are other than those that compiled.json tells of: the others are compiled by `make ptx` alone."""

import json
from functools import cache

import pytest

from gpuexplore.operations import OPERATIONS
from scripts.compiled_kernels import FILE
from scripts.kernel_sources import digest

RECORD = json.loads(FILE.read_text(encoding="utf-8"))


@cache
def _digest(operation, implementation):
    row = OPERATIONS[operation]
    return digest(row, row.implementation_named(implementation))


def is_changed(operation, implementation):
    """Return whether the sources of a kernel or its compiler are others than compiled.json was made with."""
    found = RECORD["sources"].get(f"{operation.name}/{implementation.name}")
    return found != _digest(operation.name, implementation.name)


def unless_changed(operation, implementation="numba-cuda"):
    """Return the marks of a test that `make test` leaves to `make ptx` as long as a kernel is the one recorded."""
    row = OPERATIONS[operation].implementation_named(implementation)
    return [] if is_changed(OPERATIONS[operation], row) else [pytest.mark.ptx]
