"""The tables are complete: what is listed exists, what exists is listed, and the costs are the formulas'."""

from dataclasses import replace
from pathlib import Path

import pytest

import gpuexplore.operations
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.dtypes import DTYPES
from gpuexplore.errors import InvalidInput
from gpuexplore.measure.support import support_matrix
from gpuexplore.model import Shape
from gpuexplore.operations import OPERATIONS, implementation_names, load_build, operation_named
from tests.measure.fakes import CPU, GPU
from tests.operations.shapes import AWKWARD, SIMULATED

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
    """Return the modules that have a file or a line in `implementations=`, but not both."""
    found = {path.stem for path in folder.glob("*.py")} - {"__init__", "geometry"}
    return found ^ {implementation.module for implementation in operation.implementations}


def test_every_operation_has_a_folder_and_is_listed():
    assert forgotten_operations(FOLDER, OPERATIONS) == set()


def test_a_folder_that_is_not_listed_is_noticed(tmp_path):
    for name in ("matmul", "softmax"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()

    assert forgotten_operations(tmp_path, ["matmul"]) == {"softmax"}
    assert forgotten_operations(tmp_path, ["matmul", "softmax", "gone"]) == {"gone"}


@EACH
def test_every_implementation_has_a_file_and_is_declared(operation):
    assert forgotten_implementations(FOLDER / operation.name, operation) == set()


def test_a_file_that_is_not_declared_is_noticed(tmp_path):
    operation = OPERATIONS["matmul"]
    for name in (
        "__init__",
        "triton_tiles",
        *(implementation.module for implementation in operation.implementations[1:]),
    ):
        (tmp_path / f"{name}.py").touch()

    assert forgotten_implementations(tmp_path, operation) == {"triton_tiles", operation.implementations[0].module}


@EACH_IMPLEMENTATION
def test_implementation_has_a_backend_and_a_builder(operation, implementation):
    assert implementation.backend in BACKENDS
    assert implementation.module.startswith(implementation.backend)
    assert set(implementation.arithmetic.items()) <= {("bf16", "fp32"), ("fp16", "fp32")}
    assert set(implementation.native) <= set(implementation.arithmetic)
    assert (implementation.geometry is not None) == (implementation.backend == "numba_cuda")
    assert implementation.about
    if load_backend(implementation.backend).is_available():
        assert callable(load_build(operation, implementation))
    else:
        assert implementation.optional, f"{implementation.backend} is in requirements.txt"


@EACH
def test_optional_implementations_come_last(operation):
    optional = [implementation.optional for implementation in operation.implementations]

    assert optional == sorted(optional)


@EACH
def test_names_are_unique_and_the_baseline_comes_first(operation):
    names = [implementation.name for implementation in operation.implementations]

    assert len(set(names)) == len(names)
    assert names[0] == "numpy"


def test_implementation_names_are_listed_once():
    names = implementation_names()

    assert len(set(names)) == len(names)
    assert names[0] == "numpy"
    assert {name.split("-")[0] for name in names} <= {"numpy", "numba", "torch", "triton", "cupy"}


def test_every_operation_is_checked_at_shapes_of_its_own():
    assert set(AWKWARD) == set(SIMULATED) == set(OPERATIONS)


@pytest.mark.parametrize(
    ("name", "shape", "flop_count", "fp32_bytes"),
    [
        ("matmul", Shape.of(m=2, k=3, n=5), 2 * 2 * 3 * 5, 4 * (2 * 3 + 3 * 5 + 2 * 5)),
        ("matmul", Shape.of(m=1, k=1, n=1), 2, 12),
        ("matvec", Shape.of(m=2, n=3), 12, 4 * (6 + 3 + 2)),
        ("batched_matmul", Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=1), 6 * 770, 4 * (6 * 35 + 77 + 6 * 55)),
        ("batched_matmul", Shape.of(outer=2, inner=3, m=5, k=7, n=11, right=6), 6 * 770, 4 * 6 * (35 + 77 + 55)),
        ("linear", Shape.of(b=2, d=3, k=5), 60, 4 * (6 + 15 + 10)),
        ("attention", Shape.of(b=2, h=3, s=5, d=7), 4 * 2 * 3 * 25 * 7, 4 * 4 * 2 * 3 * 5 * 7),
        ("conv2d", Shape.of(b=2, c=3, h=5, w=7, o=11, r=3), 2 * 2 * 11 * 35 * 27, 4 * (2 * 105 + 11 * 27 + 2 * 385)),
        ("vector_add", Shape.of(n=7), 7, 4 * 21),
        ("multiply", Shape.of(m=2, n=3), 6, 4 * 18),
        ("triad", Shape.of(n=7), 14, 4 * 21),
        ("copy", Shape.of(n=7), 0, 4 * 14),
        ("reduce_sum", Shape.of(m=2, n=3), 6, 4 * (6 + 2)),
        ("softmax", Shape.of(m=2, n=3), 5 * 6, 4 * 12),
        ("layer_norm", Shape.of(m=2, n=3), 8 * 6, 4 * (6 + 3 + 3 + 6)),
        ("matmul", Shape.of(m=65536, k=65536, n=65536), 2 * 2**48, 3 * 4 * 2**32),
    ],
)
def test_costs_equal_those_of_a_hand_computed_size(name, shape, flop_count, fp32_bytes):
    operation = operation_named(name)

    assert operation.flop_count(shape) == flop_count
    assert operation.byte_count(shape, DTYPES["fp32"]) == fp32_bytes
    assert operation.byte_count(shape, DTYPES["fp64"]) == 2 * fp32_bytes
    assert operation.byte_count(shape, DTYPES["bf16"]) == fp32_bytes // 2


@pytest.mark.parametrize(
    ("name", "length"),
    [
        ("matmul", 3),
        ("matvec", 5),
        ("vector_add", 1),
        ("multiply", 1),
        ("triad", 2),
        ("copy", 1),
        ("reduce_sum", 5),
        ("softmax", 5),
        ("layer_norm", 5),
    ],
)
def test_terms_of_a_sum_are_those_of_the_shape(name, length):
    operation = operation_named(name)
    shape = Shape(tuple(zip(operation.axes, (2, 3, 5) if name == "matmul" else (2, 5), strict=False)))

    assert operation.reduction_length(shape) == length


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
    with pytest.raises(InvalidInput, match="operation 'fft': accepted are matmul, batched_matmul, linear, matvec"):
        operation_named("fft")
    with pytest.raises(InvalidInput, match="implementation of matmul 'jax': accepted are numpy, numba-cpu"):
        operation_named("matmul").implementation_named("jax")


def test_peak_is_that_of_the_format_that_does_the_arithmetic():
    widened = operation_named("matmul").implementation_named("numba-cpu")

    assert widened.peak(CPU, "bf16") == CPU.peak("fp32", "matrix")
    assert replace(widened, arithmetic={}).peak(CPU, "bf16") is None


def test_rows_and_columns_that_are_checked_cross_every_tile_and_every_edge():
    import numpy as np

    operation = operation_named("matmul")
    a, b = np.broadcast_to(1.0, (1000, 700)), np.broadcast_to(1.0, (700, 900))
    (rows, (a_rows, _)), (columns, (_, b_columns)) = operation.samples((a, b), np.random.default_rng(1))

    for lines, length in ((rows[0], 1000), (columns[1], 900)):
        assert {0, length - 1} <= set(lines.tolist())
        assert set((lines // 32).tolist()) == set(range(-(-length // 32)))
    assert a_rows.shape == (len(rows[0]), 700)
    assert b_columns.shape == (700, len(columns[1]))
