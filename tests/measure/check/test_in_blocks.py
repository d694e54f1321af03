"""Large cases of every operation that can be cut: made and checked on their device, block by block."""

import re
import tracemalloc
from types import MappingProxyType

import numpy as np
import pytest
import torch

from gpuexplore.backends import load_backend
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Shape, Status
from gpuexplore.measure.arrays import device_arrays, large
from gpuexplore.measure.arrays.device_arrays import DeviceFloat64, DeviceOutput
from gpuexplore.measure.arrays.large import drawn, layout
from gpuexplore.measure.check import group, inputs
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import BlockedReference, make_inputs
from gpuexplore.measure.conditions import environment
from gpuexplore.operations import OPERATIONS, sampling
from tests.measure.fakes import case
from tests.measure.gpu_on_host import measured_there, peak_bytes

pytestmark = pytest.mark.long

FP32 = DTYPES["fp32"]
BY_AXES = {1: (Shape.of(n=4_001),), 2: (Shape.of(m=37, n=129), Shape.of(m=3, n=2500))}  # here a row is over a block
BATCHED = (
    Shape.of(outer=5, inner=4, m=9, k=10, n=11, right=20),  # several a block
    Shape.of(outer=5, inner=3, m=9, k=10, n=11, right=1),
    Shape.of(outer=2, inner=2, m=70, k=30, n=45, right=4),  # products by rows and columns
    Shape.of(outer=2, inner=2, m=70, k=30, n=45, right=1),
)
SHAPES = {
    name: BATCHED if name == "batched_matmul" else BY_AXES[len(operation.axes)]
    for name, operation in OPERATIONS.items()
    if operation.cut and name not in {"matmul", "linear"}  # which are one product
}
CASES = [
    pytest.param(OPERATIONS[name], shape, DTYPES[dtype], id=f"{name}-{number}-{dtype}")
    for name, shapes in SHAPES.items()
    for number, shape in enumerate(shapes)
    for dtype in OPERATIONS[name].dtypes
]
EACH_CASE = pytest.mark.parametrize(("operation", "shape", "dtype"), CASES)
EACH_SHAPE = pytest.mark.parametrize(
    ("operation", "shape"),
    [
        pytest.param(OPERATIONS[name], shape, id=f"{name}-{number}")
        for name, shapes in SHAPES.items()
        for number, shape in enumerate(shapes)
    ],
)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Have several blocks of a small case, the last one shorter."""
    monkeypatch.setattr(large, "BLOCK_ELEMENTS", 1_000)
    monkeypatch.setattr(large, "PRODUCT_ELEMENTS", 1_000)
    monkeypatch.setattr(sampling, "CHECK_WHOLE_UP_TO", 2_000)


def made(operation, shape, dtype, data="normal"):
    """Return the reference, and an output that was rounded once to the dtype."""
    inputs = tuple(
        drawn(lengths, dtype, data, seed=3, number=number) for number, lengths in enumerate(operation.inputs(shape))
    )
    whole = operation.reference(*(dtype.widen(on_host(source)) for source in inputs))
    return BlockedReference(operation, shape, dtype, inputs, 3, "cpu"), dtype.round(whole)


def on_host(source):
    return source.at(np.arange(source.size)).reshape(source.shape)


def there(out, dtype):
    return DeviceOutput(load_backend("torch").to_device(out, dtype, "cpu"), dtype)


def judged(out, reference):
    return judge(there(out, reference.dtype), reference, reference.shape)


def test_operations_that_are_made_on_the_host_are_few():
    whole = {name for name, operation in OPERATIONS.items() if operation.cut is None}

    assert {"attention", "conv2d"} <= whole
    assert whole - {"attention", "conv2d"} == {name for name in OPERATIONS if name.endswith("_step")}


@EACH_SHAPE
def test_cut_is_along_axes_that_inputs_and_output_share(operation, shape):
    cut = operation.cut(shape)
    axes = max(cut.leading)

    assert set(cut.leading) <= {0, axes}
    for lengths, leading in zip(operation.inputs(shape), cut.leading, strict=True):
        assert lengths[:leading] == operation.output(shape)[:leading]
    assert operation.quantities is None
    assert operation.across_kinks is None
    arrays = tuple(map(np.ones, operation.inputs(shape)))
    assert operation.prepared(arrays) is arrays  # drawn numbers are not prepared


@EACH_SHAPE
def test_blocks_cover_every_place_once_and_the_last_is_shorter(operation, shape):
    cut = layout(operation, shape)
    blocks = list(cut.blocks())

    assert [place for block in blocks for place in range(block.start, block.stop)] == list(range(cut.count))
    assert len(blocks) > 2
    lengths = [block.stop - block.start for block in blocks]
    assert lengths[-1] < lengths[0] or set(lengths) == {1}


@EACH_CASE
def test_blocks_expect_what_the_host_computes_from_the_same_numbers(operation, shape, dtype):
    reference, _ = made(operation, shape, dtype)
    inputs = tuple(dtype.widen(on_host(source)) for source in reference.inputs)
    right = operation.reference(*inputs)
    scale = np.broadcast_to(operation.scale(right, *inputs), right.shape)
    cut, named = layout(operation, shape), []

    for places, (_, of_block, in_output, _) in zip(
        cut.blocks(), reference.blocks(there(dtype.round(right), dtype)), strict=True
    ):
        here = [array.reshape(-1, *cut.output)[places.start if cut.by_lines else places] for array in (right, scale)]
        for (index, expected), scales in zip(of_block.parts, of_block.scales, strict=True):
            np.testing.assert_allclose(numbers(expected), here[0][index], atol=1e-11)
            np.testing.assert_allclose(np.broadcast_to(numbers(scales), expected.shape), here[1][index], rtol=1e-5)
        named.append(in_output([length - 1 for length in here[0].shape]))

    flat = [np.ravel_multi_index(place, right.shape) for place in named]
    assert flat == [places.stop * right[0].size * len(right) // cut.count - 1 for places in cut.blocks()]


def numbers(values):
    return values.tensor.numpy() if isinstance(values, DeviceFloat64) else np.asarray(values)


@EACH_SHAPE
@pytest.mark.parametrize("data", ["zeros", "ones"])
def test_right_output_of_other_data_is_accepted(operation, shape, data):
    reference, out = made(operation, shape, FP32, data)
    accuracy = judged(out, reference)

    assert accuracy.within
    assert accuracy.worst.share <= 1


@EACH_CASE
def test_right_output_is_accepted_and_a_wrong_last_element_is_found_and_named(operation, shape, dtype):
    reference, out = made(operation, shape, dtype)
    right = judged(out, reference)
    assert right.within
    assert right.worst.share <= 1
    changed = dtype.widen(out)
    last = tuple(length - 1 for length in changed.shape)
    changed[last] += 2 * float(np.sqrt(np.mean(np.square(changed))))

    accuracy = judged(dtype.round(changed), reference)

    assert not accuracy.within
    named = "|".join((re.escape(str(list(last))), re.escape(str(list(last[:-1]))[:-1]) + r", \d+ to \d+\]"))
    assert re.search(named, accuracy.worst.where), accuracy.worst.where


@pytest.mark.parametrize("function", [each for each in device_arrays.BY_TORCH if isinstance(each, np.ufunc)], ids=str)
def test_function_on_a_device_is_that_of_numpy(function):
    values = [np.linspace(0.1, 2, 12).reshape(3, 4)[:, :3], np.linspace(0.5, 1, 9).reshape(3, 3)][: function.nin]

    found = function(*(DeviceFloat64(torch.from_numpy(each.copy())) for each in values))

    np.testing.assert_allclose(found.tensor.numpy(), function(*values), rtol=1e-14)


@EACH_SHAPE
def test_what_is_not_finite_or_stale_in_the_last_block_is_found(operation, shape):
    reference, out = made(operation, shape, FP32)
    for value in (np.nan, np.inf):
        changed = out.copy()
        changed.reshape(-1)[-2] = value
        accuracy = judged(changed, reference)
        assert (accuracy.relative_error, accuracy.within) == (None, False)

    blocks = list(layout(operation, shape).blocks())
    places = out.reshape(-1, *layout(operation, shape).output)
    places[blocks[-1]] = places[blocks[0]][: blocks[-1].stop - blocks[-1].start]
    assert not judged(out, reference).within


@EACH_SHAPE
def test_device_that_computes_or_draws_wrongly_is_not_believed(monkeypatch, operation, shape):
    reference, out = made(operation, shape, FP32)
    with monkeypatch.context() as patch:
        patch.setattr(device_arrays, "quantile_at", lambda indices, *_: indices % 65536)
        with pytest.raises(GpuExploreError, match="differs from the host's result for the same inputs"):
            judged(out, reference)
    wrong = {
        function: lambda *of, by_torch=by_torch, **named: by_torch(*of, **named) * (1 + 1e-9)
        for function, by_torch in device_arrays.BY_TORCH.items()
        if (isinstance(function, np.ufunc) and function is not np.less) or function is np.sum
    }
    monkeypatch.setattr(device_arrays, "BY_TORCH", MappingProxyType({**device_arrays.BY_TORCH, **wrong}))
    monkeypatch.setattr(device_arrays, "matmul", lambda a, b: torch.matmul(a, b) * (1 + 1e-9))

    with pytest.raises(GpuExploreError, match=f"float64 {operation.name} on cpu differs from the host's result"):
        judged(out, reference)


def test_torchs_functions_are_bound_before_a_kernel_can_replace_them(monkeypatch):
    reference, out = made(OPERATIONS["softmax"], Shape.of(m=37, n=129), FP32)
    for name in ("add", "subtract", "divide", "exp", "einsum", "absolute", "isfinite", "arange", "where"):
        monkeypatch.setattr(torch, name, None)

    assert judged(out, reference).within
    out[-1] = 0
    assert not judged(out, reference).within


def test_places_that_the_host_proves_change_and_hold_the_last():
    reference, _ = made(OPERATIONS["vector_add"], Shape.of(n=4_001), FP32)
    chosen = [reference._chosen(range(4_001)) for _ in range(20)]

    assert all(places[-1] == 4_000 for places in chosen)
    assert len({place for places in chosen for place in places}) > 50


def test_numbers_stay_on_their_device_and_an_unknown_function_is_named():
    numbers_there = DeviceFloat64(torch.ones(3, dtype=torch.float64))

    with pytest.raises(TypeError, match="are not converted to host arrays"):
        np.asarray(numbers_there)
    with pytest.raises(TypeError, match="arctan of NumPy is not supported on a device"):
        np.arctan(numbers_there)
    with pytest.raises(TypeError, match="median of NumPy is not supported on a device"):
        np.median(numbers_there)


@pytest.mark.parametrize("dtype", [DTYPES[name] for name in ("fp64", "fp32", "bf16", "fp16")], ids=str)
def test_inputs_on_a_device_are_distributed_as_on_the_host(dtype):
    operation, shape = OPERATIONS["softmax"], Shape.of(m=400, n=1000)
    (host,) = make_inputs(operation, shape, dtype, "normal", seed=3)
    (source,) = (drawn(lengths, dtype, "normal", seed=3, number=0) for lengths in operation.inputs(shape))
    both = np.sort(dtype.widen(host).ravel()), np.sort(dtype.widen(on_host(source)).ravel())

    assert on_host(source).dtype == host.dtype
    middle = slice(400, -400)  # the outermost thousandth is noisier
    np.testing.assert_allclose(both[1][middle], both[0][middle], atol=0.06)
    assert both[1].mean() == pytest.approx(both[0].mean(), abs=0.01)
    assert both[1].std() == pytest.approx(both[0].std(), abs=0.01)


@pytest.mark.parametrize(
    ("name", "shape", "before_gib"),
    [
        ("vector_add", Shape.of(n=2**28), 27),
        ("copy", Shape.of(n=2**29), 36),
        ("softmax", Shape.of(m=32768, n=32768), 72),
        ("batched_matmul", OPERATIONS["batched_matmul"].shape_of_size(8192), 108),
    ],
)
def test_large_sizes_need_little_of_the_host(monkeypatch, name, shape, before_gib):
    monkeypatch.undo()

    assert group.host_bytes(OPERATIONS[name], shape, 4) == before_gib * 2**30
    assert group.host_bytes_of_large(OPERATIONS[name], shape) < 2 * 2**30


@EACH_SHAPE
def test_what_device_and_host_hold_for_a_check_is_no_more_than_the_guard_counts(monkeypatch, operation, shape):
    for dtype in (DTYPES["bf16"], FP32):
        reference, out = made(operation, shape, dtype)
        output = there(out, dtype)
        judge(output, reference, shape)  # draws the table of quantiles
        held_bytes = peak_bytes(lambda: judge(output, reference, shape))  # noqa: B023 called at once
        assert 0 < held_bytes <= group._reference_bytes(operation, shape), dtype

    fixed_bytes = 2**15  # of Python itself: what no size changes
    monkeypatch.setattr(inputs, "PROVED_POSITIONS", 1)
    monkeypatch.setattr(group, "PROVED_POSITIONS", 1)

    tracemalloc.start()
    try:
        judge(output, reference, shape)
        _, held_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held_bytes <= group.host_bytes_of_large(operation, shape) + fixed_bytes


LARGE_CASES = pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        ("vector_add", Shape.of(n=20_001), "fp32"),
        ("softmax", Shape.of(m=130, n=301), "bf16"),
        ("batched_matmul", Shape.of(outer=1, inner=5, m=70, k=60, n=90, right=5), "fp32"),
        ("batched_matmul", Shape.of(outer=300, inner=3, m=5, k=6, n=7, right=1), "fp16"),
    ],
)


@LARGE_CASES
def test_large_case_is_measured_without_its_arrays_on_the_host(gpu, monkeypatch, name, shape, dtype):
    def small(array, *of):
        assert array.size < 10_000  # of a probe
        return array.copy()

    monkeypatch.setattr(large, "BLOCK_ELEMENTS", 8_000)
    monkeypatch.setattr(numpy_backend, "to_device", small)
    monkeypatch.setattr(numpy_backend, "stored", small)

    result = measured_there(case("numpy", operation=name, dtype=dtype, shape=shape, device=gpu.id), gpu)

    assert result.status is Status.OK, result.reason
    assert result.accuracy.within
    assert result.accuracy.worst.share <= 1
    assert result.environment.settings["inputs"] == "made on cuda:0"


def test_case_that_the_host_makes_does_not_say_otherwise(gpu):
    asked = case("numpy", operation="softmax", shape=Shape.of(m=30, n=30), device=gpu.id)

    assert "inputs" not in measured_there(asked, gpu).environment.settings


def test_large_case_ends_for_want_of_memory_only_where_the_host_makes_it(gpu, monkeypatch):
    asked = case("numpy", operation="vector_add", shape=Shape.of(n=20_001), device=gpu.id)
    monkeypatch.setattr(environment, "free_host_bytes", lambda: 1_000_000)
    assert measured_there(asked, gpu).status is Status.OK

    monkeypatch.setattr(device_arrays, "torch_device_of", lambda device: None)
    result = measured_there(asked, gpu)
    assert (result.status, result.reason) == (Status.OUT_OF_MEMORY, "needs 2.06 MiB, cpu has 879 KiB free")


@pytest.mark.parametrize("name", ["wrong", "stale-tail", "keeping", "zeros", "nan"])
def test_large_case_that_is_wrong_is_incorrect(gpu, name):
    result = measured_there(case(name, operation="vector_add", shape=Shape.of(n=20_001), device=gpu.id), gpu)

    assert result.status is Status.INCORRECT, result.reason
