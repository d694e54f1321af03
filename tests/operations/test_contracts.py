"""The tables are complete: what is listed exists, what exists is listed, and the costs are the formulas'."""

from dataclasses import replace
from pathlib import Path

import pytest

import gpuexplore.operations
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.measure.candidates.candidate import support_matrix
from gpuexplore.operations import NAMES, OPERATIONS, load_build, operation_named
from tests.measure.fakes import CPU, GPU
from tests.operations.shapes import awkward_shapes, simulated_shapes

FOLDER = Path(gpuexplore.operations.__file__).parent
EACH = pytest.mark.parametrize("operation", list(OPERATIONS.values()), ids=list(OPERATIONS))
EACH_IMPLEMENTATION = pytest.mark.parametrize(
    ("operation", "implementation"),
    [
        pytest.param(operation, implementation, id=f"{operation.name}-{implementation.name}")
        for operation in OPERATIONS.values()
        for implementation in operation.implementations
    ],
)


def forgotten_operations(folder, listed):
    """Return the operations that have a folder or a line in the list, but not both."""
    found = {path.parent.name for path in folder.glob("*/__init__.py")}
    return found ^ set(listed)


def forgotten_implementations(folder, operation):
    """Return the files that no row of `implementations=` names, and the modules of rows that have no file."""
    found = {f"{operation.name}.{path.stem}" for path in folder.glob("*.py")} - {f"{operation.name}.__init__"}
    modules = {row.module_in(operation.name) for row in operation.implementations if row.module}
    declared = {module.removeprefix("gpuexplore.operations.") for module in modules}
    return (found - declared) | {each for each in declared - found if each.startswith(f"{operation.name}.")}


def test_every_operation_has_a_folder_and_is_listed():
    assert forgotten_operations(FOLDER, NAMES) == set(), "a folder without a line in NAMES, or a line without a folder"
    assert [operation.name for operation in OPERATIONS.values()] == list(NAMES)


@EACH
def test_every_file_is_declared_and_every_declared_file_is_there(operation):
    forgotten = forgotten_implementations(FOLDER / operation.name, operation)

    assert forgotten == set(), "a file without a row in `implementations=`, or a row without a file"


def test_a_folder_that_is_not_listed_and_a_file_that_is_not_declared_are_noticed(tmp_path):
    for name in ("__init__", "triton_tiles", *(row.module for row in OPERATIONS["softmax"].implementations[1:])):
        path = tmp_path / "softmax" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.touch()

    found = forgotten_implementations(tmp_path / "softmax", OPERATIONS["softmax"])
    assert found == {"softmax.triton_tiles", "softmax.numpy"}
    assert forgotten_operations(tmp_path, ["matmul"]) == {"softmax", "matmul"}
    assert forgotten_operations(tmp_path, ["softmax"]) == set()


@EACH_IMPLEMENTATION
def test_implementation_has_a_backend_and_a_builder(operation, implementation):
    assert implementation.backend in BACKENDS
    assert bool(implementation.module) != bool(implementation.calls)
    library = implementation.calls or implementation.module.rpartition(".")[2]
    assert library.startswith(implementation.backend) or (implementation.technique, library) == (
        "through_compiler",
        "torch",
    )
    assert set(implementation.arithmetic.items()) <= {("bf16", "fp32"), ("fp16", "fp32")}
    assert set(implementation.native) <= set(implementation.arithmetic)
    assert (implementation.geometry is not None) == (implementation.backend == "numba_cuda")
    assert implementation.about
    if load_backend(implementation.backend).is_available():
        assert callable(load_build(operation, implementation))
    else:
        assert implementation.optional, f"{implementation.backend} is a dependency"


@EACH
def test_names_are_unique_the_baseline_comes_first_and_optional_ones_last(operation):
    names = [implementation.name for implementation in operation.implementations]
    optional = [implementation.optional for implementation in operation.implementations]

    assert len(set(names)) == len(names)
    assert names[0] == "numpy"
    assert optional == sorted(optional)


@EACH
def test_names_of_implementations_begin_with_their_library(operation):
    libraries = {name.split("_")[0] for name in BACKENDS}

    assert {row.name.split("-")[0] for row in operation.implementations} <= libraries


@EACH
def test_it_has_shapes_to_check_and_costs_equal_to_those_worked_out_by_hand(operation):
    assert awkward_shapes(operation)
    assert simulated_shapes(operation)
    assert operation.examples, f"work out a small shape of {operation.name} by hand and give it in `examples=`"
    for shape, flop_count, fp32_bytes, terms in operation.examples:
        assert tuple(axis for axis, _ in shape.axes) == operation.axes
        assert operation.flop_count(shape) == flop_count
        assert operation.reduction_length(shape) == terms
        assert operation.byte_count(shape, DTYPES["fp32"]) == fp32_bytes
        assert operation.byte_count(shape, DTYPES["fp64"]) == 2 * fp32_bytes
        assert operation.byte_count(shape, DTYPES["bf16"]) == fp32_bytes // 2


@EACH
def test_one_implementation_says_it_is_the_vendors_library(operation):
    named = [implementation for implementation in operation.implementations if implementation.vendor_library]

    assert len(named) == 1, f"one implementation of {operation.name} is `vendor_library=True`: predictions stand for it"
    assert named == [operation.vendor_library]
    assert (named[0].calls_library, named[0].optional, named[0].device_kinds) == (True, False, ())


def test_the_vendors_library_is_the_one_that_says_so_and_not_the_last():
    matmul = operation_named("matmul")
    rows = {implementation.name: implementation for implementation in matmul.implementations}
    added = replace(matmul, implementations=(*rows.values(), replace(rows["numpy"], name="numpy-again")))

    assert added.vendor_library.name == "torch"


@pytest.mark.parametrize(
    ("name", "cpu", "gpu"),
    [("numpy", True, False), ("torch", True, True), ("torch-autotune", False, True), ("numba-cuda", False, True)],
)
def test_implementation_runs_on_the_kinds_its_library_or_it_itself_names(name, cpu, gpu):
    implementation = operation_named("conv2d").implementation_named(name)

    assert implementation.runs_on(CPU) == cpu
    assert implementation.runs_on(GPU) == implementation.runs_on(replace(GPU, kind="table")) == gpu


@EACH
def test_default_sizes_are_ascending_and_within_the_limits(operation):
    assert list(operation.default_sizes) == sorted(set(operation.default_sizes))
    for size in operation.default_sizes:
        shape = operation.shape_of_size(size)
        assert tuple(axis for axis, _ in shape.axes) == operation.axes == tuple(operation.limits)
        assert all(length <= operation.limits[axis] for axis, length in shape.axes)


@EACH
@pytest.mark.parametrize("dtype", list(DTYPES.values()), ids=list(DTYPES))
def test_dtype_is_supported_or_says_why_not(operation, dtype):
    reason = operation.unsupported(dtype)

    assert (reason is None) == (dtype.name in operation.dtypes)
    assert reason is None or dtype.name in reason


@EACH
@pytest.mark.parametrize("device", [CPU, GPU], ids=["cpu", "cuda"])
def test_support_matrix_has_a_cell_for_every_implementation_and_dtype(operation, device):
    cells = support_matrix(operation, device)
    pairs = {(cell["implementation"], cell["dtype"]) for cell in cells}

    assert len(cells) == len(pairs) == len(operation.implementations) * len(DTYPES)
    assert all(cell["device"] == device.id and (cell["reason"] is None or cell["reason"]) for cell in cells)
    assert any(cell["reason"] is None for cell in cells)


@EACH
def test_matrix_products_are_the_flops_of_the_operation(operation):
    if operation.products is None:
        assert not operation.is_matrix_product
        return
    shape = operation.shape_of_size(operation.default_sizes[0])

    assert sum(
        2 * product.batch * product.m * product.n * product.k for product in operation.products(shape)
    ) == operation.flop_count(shape)


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match="operation 'fft': expected matmul, batched_matmul, linear, matvec"):
        operation_named("fft")
    with pytest.raises(InvalidInput, match="implementation of matmul 'fortran': expected numpy, numba-cpu"):
        operation_named("matmul").implementation_named("fortran")


def test_peak_is_that_of_the_format_that_does_the_arithmetic():
    widened = operation_named("matmul").implementation_named("numba-cpu")

    assert widened.peak(CPU, "bf16") == CPU.peak("fp32", "matrix")
    assert replace(widened, arithmetic={}).peak(CPU, "bf16") is None


def test_rows_that_are_checked_cross_every_tile_and_every_edge():
    import numpy as np

    operation = operation_named("matmul")
    a, b = np.broadcast_to(1.0, (1000, 1200)), np.broadcast_to(1.0, (1200, 900))
    (((rows, columns), (a_rows, whole_b)),) = operation.samples((a, b), np.random.default_rng(1))

    assert {0, 999} <= set(rows.tolist())
    assert set((rows // 32).tolist()) == set(range(-(-1000 // 32)))
    assert columns == slice(None)
    assert a_rows.shape == (len(rows), 1200)
    assert whole_b is b
