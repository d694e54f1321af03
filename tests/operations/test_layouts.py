"""Products of matrices that lie in memory by columns: the same numbers in another order."""

import numpy as np
import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.core.model import LAYOUTS, Case, Options
from gpuexplore.measure.candidates.candidate import build_candidate
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.measure.runner import open_group
from gpuexplore.operations import OPERATIONS
from tests.measure.fakes import CPU, GPU, QUIET, FakeClock
from tests.operations.shapes import awkward_shapes
from tests.unchanged import heavy_with

PRODUCTS = [operation for operation in OPERATIONS.values() if operation.has_layouts]
BY_COLUMNS = [layout for layout in LAYOUTS if layout != "NN"]
LIBRARIES = ("numpy", "torch")
OURS = [
    pytest.param(
        operation,
        implementation.name,
        layout,
        id=f"{operation.name}-{implementation.name}-{layout}",
        marks=heavy_with(operation, implementation),
    )
    for operation in PRODUCTS
    for implementation in operation.implementations
    for layout in BY_COLUMNS
    if implementation.backend == "numba_cpu"
]


def group_of(operation, implementation, layout, shape, dtype="fp32") -> tuple[Case, Group]:
    case = Case(operation.name, shape, dtype, implementation, "cpu", Options(threads=2, layout=layout))
    return case, open_group([case], CPU, clock=FakeClock(), isolation=QUIET)


def expect_right(operation, implementation, layout, dtype="fp32"):
    for shape in awkward_shapes(operation):
        case, group = group_of(operation, implementation, layout, shape, dtype)
        first, other = group.checked_reference, group.other_reference
        candidate = build_candidate(case, operation, CPU, inputs=first.inputs, clock=group.clock)
        for reference in (first, other):
            candidate.load(reference.inputs)
            candidate.poison()
            candidate.run()
            assert checked(candidate, group, reference).within, shape
            assert candidate.holds(reference.inputs)
        assert not candidate.holds(first.inputs)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("layout", BY_COLUMNS)
@pytest.mark.parametrize("implementation", LIBRARIES)
@pytest.mark.parametrize("operation", PRODUCTS, ids=lambda operation: operation.name)
def test_libraries_multiply_matrices_that_lie_by_columns(operation, implementation, layout, dtype):
    expect_right(operation, implementation, layout, dtype)


@pytest.mark.long  # each is compiled for the layout
@pytest.mark.parametrize(("operation", "implementation", "layout"), OURS)
def test_our_cpu_kernels_multiply_matrices_that_lie_by_columns(operation, implementation, layout):
    expect_right(operation, implementation, layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("operation", PRODUCTS, ids=lambda operation: operation.name)
def test_a_matrix_lies_as_its_letter_says(monkeypatch, operation, layout):
    read = []
    monkeypatch.setattr(
        "gpuexplore.measure.candidates.candidate.load_build",
        lambda *_: lambda inputs, out, dtype: read.extend(inputs),
    )
    shape = awkward_shapes(operation)[1]
    case, group = group_of(operation, "numpy", layout, shape)
    wanted = group.checked_reference.inputs
    build_candidate(case, operation, CPU, inputs=wanted, clock=group.clock)

    for array, numbers, letter in zip(read, wanted, layout, strict=True):
        np.testing.assert_array_equal(array, numbers)
        lying = array.swapaxes(-1, -2) if letter == "T" else array
        assert lying.flags.c_contiguous


@pytest.mark.parametrize("layout", BY_COLUMNS)
def test_a_kernel_that_reads_rows_says_that_it_has_no_other_layout(monkeypatch, layout):
    operation = OPERATIONS["matmul"]
    by_rows = [each for each in operation.implementations if each.lacks_layout(layout)]
    assert {each.backend for each in by_rows} == {"numba_cuda", "triton"}
    assert not any(each.lacks_layout("NN") for each in operation.implementations)

    monkeypatch.setattr("gpuexplore.measure.candidates.candidate.unsupported", lambda *_: None)
    case = Case("matmul", awkward_shapes(operation)[0], "fp32", "numba-cuda", GPU.id, Options(layout=layout))
    with pytest.raises(Unsupported, match="it has code for layout NN only"):
        build_candidate(case, operation, GPU, inputs=(), clock=FakeClock())
