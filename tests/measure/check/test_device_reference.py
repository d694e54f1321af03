"""What is too large for the host is made and checked on its device: torch on the CPU stands for one."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch._C._dynamo import eval_frame

from gpuexplore.backends import load_backend
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import GpuExploreError
from gpuexplore.core.model import Shape, Status
from gpuexplore.measure.arrays import device_arrays, large
from gpuexplore.measure.arrays.device_arrays import DeviceOutput
from gpuexplore.measure.arrays.large import drawn, is_large
from gpuexplore.measure.candidates.candidate import torch_device_for
from gpuexplore.measure.check import group
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.inputs import DeviceReference, Reference
from gpuexplore.measure.check.process_snapshot import ChangedProcess, ProcessSnapshot
from gpuexplore.measure.conditions import environment
from gpuexplore.operations import OPERATIONS, sampling
from tests.measure.fakes import CPU, GPU, case
from tests.measure.gpu_on_host import measured_there, peak_bytes

pytestmark = pytest.mark.long

MATMUL = OPERATIONS["matmul"]
SHAPE = Shape.of(m=110, k=100, n=141)  # a last sum of 13 columns
EACH_DTYPE = pytest.mark.parametrize("dtype", [DTYPES[name] for name in ("fp64", "fp32", "bf16", "fp16")])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Have several blocks of a small case, the last one shorter, and compare it in part."""
    monkeypatch.setattr(large, "BLOCK_ELEMENTS", 4_000)
    monkeypatch.setattr(sampling, "CHECK_WHOLE_UP_TO", 10_000)


def inputs_of(dtype, shape=SHAPE, seed=3, data="normal"):
    return tuple(
        drawn(lengths, dtype, data, seed=seed, number=number) for number, lengths in enumerate(MATMUL.inputs(shape))
    )


def on_host(source):
    return source.at(np.arange(source.size)).reshape(source.shape)


def made(dtype, seed=3):
    """Return the reference, and an output that was rounded once to the dtype."""
    inputs = inputs_of(dtype, seed=seed)
    wide = [dtype.widen(on_host(source)) for source in inputs]
    return DeviceReference(MATMUL, dtype, inputs, seed, "cpu"), dtype.round(wide[0] @ wide[1])


def there(out, dtype):
    return DeviceOutput(load_backend("torch").to_device(out, dtype, "cpu"), dtype)


def judged(out, reference):
    return judge(there(out, reference.dtype), reference, SHAPE)


@EACH_DTYPE
@pytest.mark.parametrize("data", ["normal", "zeros", "ones"])
def test_device_and_host_draw_the_same_bits(dtype, data):
    (source, _) = inputs_of(dtype, data=data)
    for backend in (load_backend("torch"), numpy_backend):
        array = backend.empty(source.shape, dtype, "cpu")
        device_arrays.fill(array, source)

        assert backend.stored(array, dtype).tobytes() == on_host(source).tobytes()
        assert device_arrays.holds(array, source)


@pytest.mark.parametrize("leading", [(), (3,)])
def test_a_matrix_is_drawn_by_columns_where_it_lies(monkeypatch, leading):
    monkeypatch.setattr(large, "BLOCK_ELEMENTS", 64)
    dtype = DTYPES["fp32"]
    (source, _) = inputs_of(dtype)
    source = replace(source, shape=(*leading, 11, 7))
    array = numpy_backend.empty((*leading, 7, 11), dtype, "cpu")
    device_arrays.fill(array, source, by_columns=True)

    np.testing.assert_array_equal(array.swapaxes(-1, -2), on_host(source))
    assert device_arrays.holds(array, source, by_columns=True)
    assert not device_arrays.holds(array, source)


def test_drawing_takes_no_more_memory_once_torch_compiler_evaluates_frames():
    """A caller keeps its arguments until a call returns then: `fill` held a block more in a process that compiled."""
    dtype = DTYPES["fp32"]
    (source, _) = inputs_of(dtype)
    array = numpy_backend.empty(source.shape, dtype, "cpu")
    device_arrays.fill(array, source)
    before = eval_frame.set_eval_frame(False)
    try:
        compiled_bytes = peak_bytes(lambda: device_arrays.fill(array, source))
    finally:
        eval_frame.set_eval_frame(before)

    assert compiled_bytes == peak_bytes(lambda: device_arrays.fill(array, source))


@EACH_DTYPE
def test_one_other_bit_is_another_input(dtype):
    (source, other) = inputs_of(dtype)
    array = load_backend("numpy").empty(source.shape, dtype, "cpu")
    device_arrays.fill(array, source)

    assert not device_arrays.holds(array, replace(other, shape=source.shape))
    array.view(f"u{dtype.itemsize_bytes}")[-1, -1] ^= 1
    assert not device_arrays.holds(array, source)


def test_drawn_numbers_look_normal_and_differ_by_place_input_and_seed():
    dtype = DTYPES["fp64"]
    square = Shape.of(m=500, k=500, n=500)
    a, b = map(on_host, inputs_of(dtype, square))
    (other, _) = inputs_of(dtype, square, seed=4)

    assert abs(a.mean()) < 0.01
    assert a.std() == pytest.approx(1.0, abs=0.01)
    assert np.mean(np.abs(a) > 2) == pytest.approx(0.0455, abs=0.003)
    for lag in (1, 2, 100, 1024):
        assert abs(np.mean(a.ravel()[:-lag] * a.ravel()[lag:])) < 0.01
    assert abs(np.mean(a * b)) < 0.01
    assert np.mean(a == on_host(other)) < 1e-3


@EACH_DTYPE
def test_reference_is_that_of_the_host_for_the_same_numbers(dtype):
    reference, _ = made(dtype)
    host = Reference(MATMUL, dtype, tuple(map(on_host, reference.inputs)), reference.seed)
    ((index, expected),), ((host_index, right),) = reference.parts, host.parts

    np.testing.assert_array_equal(index[0], host_index[0])
    np.testing.assert_allclose(expected, right, atol=1e-11)
    np.testing.assert_allclose(reference.scales[0], host.scales[0], rtol=1e-6)
    np.testing.assert_array_equal(reference.sums.signs, host.sums.signs)
    np.testing.assert_allclose(reference.sums.expected, host.sums.expected, atol=1e-10)
    np.testing.assert_allclose(reference.sums.scale, host.sums.scale)


@EACH_DTYPE
def test_output_that_stays_is_judged_as_on_the_host(dtype):
    reference, out = made(dtype)
    host = Reference(MATMUL, dtype, tuple(map(on_host, reference.inputs)), reference.seed)
    away, here = judged(out, reference), judge(dtype.widen(out), host, SHAPE)

    assert away.within
    assert away.relative_error == pytest.approx(here.relative_error, abs=1e-15)
    if dtype.name != "fp64":  # whose errors are no larger than those of the references
        assert away.worst.share == pytest.approx(here.worst.share, rel=1e-3)


def root_mean_square(out):
    return float(np.sqrt(np.mean(np.square(out))))


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(lambda out: out.__setitem__((-1, -1), 0), id="last element"),
        pytest.param(lambda out: out.__setitem__((slice(None), -1), out[:, 0]), id="stale last column"),
        pytest.param(lambda out: out.__setitem__((51, slice(None)), 0), id="a row"),
        pytest.param(lambda out: out.__setitem__((slice(104, None), slice(136, None)), 1.0), id="last partial tile"),
        pytest.param(lambda out: np.add.at(out, (51, 33), 0.5 * root_mean_square(out)), id="0.5 rms"),
        pytest.param(lambda out: out.__setitem__((70, 3), np.nan), id="NaN"),
        pytest.param(lambda out: out.__setitem__((70, 3), np.inf), id="infinity"),
    ],
)
@pytest.mark.parametrize("dtype", [DTYPES["fp32"], DTYPES["bf16"]], ids=["fp32", "bf16"])
def test_what_is_wrong_in_an_output_that_stays_is_seen(plant, dtype):
    reference, out = made(dtype)
    wide = dtype.widen(out)
    plant(wide)

    assert not judged(dtype.round(wide), reference).within


@pytest.mark.parametrize("shape", [Shape.of(m=1, k=300, n=200), Shape.of(m=300, k=200, n=1)], ids=str)
def test_thin_products_are_checked_too(shape):
    dtype = DTYPES["fp32"]
    inputs = inputs_of(dtype, shape)
    reference = DeviceReference(MATMUL, dtype, inputs, 3, "cpu")
    out = dtype.round(np.matmul(*(dtype.widen(on_host(source)) for source in inputs)))

    assert judge(there(out, dtype), reference, shape).within
    for place in range(out.size):
        wrong = out.copy()
        wrong.reshape(-1)[place] *= 1.01
        assert not judge(there(wrong, dtype), reference, shape).within


@pytest.mark.parametrize("what", ["rows", "sums"])
def test_device_that_computes_wrongly_is_not_believed(monkeypatch, what):
    reference, _ = made(DTYPES["fp32"])
    honest = torch.matmul
    monkeypatch.setattr(device_arrays, "matmul", lambda a, b: honest(a, b) * (1 + 1e-9))

    with pytest.raises(GpuExploreError, match="differs from the host's result for the same inputs"):
        reference.parts if what == "rows" else reference.sums  # noqa: B018


def test_inputs_that_the_device_draws_wrongly_are_not_believed(monkeypatch):
    reference, _ = made(DTYPES["fp32"])
    monkeypatch.setattr(device_arrays, "quantile_at", lambda indices, *_: indices % 65536)

    with pytest.raises(GpuExploreError, match="differs from the host's result for the same inputs"):
        _ = reference.parts


@pytest.mark.parametrize(
    ("operation", "shape", "large"),
    [
        ("matmul", Shape.of(m=32768, k=32768, n=32768), True),
        ("linear", Shape.of(b=16384, d=32768, k=8192), True),
        ("matmul", Shape.of(m=2048, k=2048, n=2048), True),
        ("matmul", Shape.of(m=1024, k=1024, n=1024), False),
        ("vector_add", Shape.of(n=2**21), True),
        ("vector_add", Shape.of(n=2**20), False),
        ("batched_matmul", OPERATIONS["batched_matmul"].shape_of_size(8192), True),
        ("attention", Shape.of(b=64, h=16, s=2048, d=64), False),
    ],
)
def test_large_cases_that_can_be_cut_stay_on_a_gpu(monkeypatch, operation, shape, large):
    monkeypatch.setattr(device_arrays, "torch_device_of", lambda device: "cuda:0")

    assert is_large(OPERATIONS[operation], shape) == large
    assert torch_device_for(OPERATIONS[operation], shape, GPU) == ("cuda:0" if large else None)
    assert torch_device_for(OPERATIONS[operation], shape, CPU) is None


def measured(device, name, dtype="fp32"):
    return measured_there(case(name, operation="matmul", dtype=dtype, shape=SHAPE, device=device.id), device)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_large_product_is_measured_without_an_input_or_an_output_on_the_host(gpu, monkeypatch, dtype):
    def small(array, *of):
        assert array.size < SHAPE["m"] * SHAPE["k"]
        return array.copy()

    monkeypatch.setattr(numpy_backend, "to_device", small)
    monkeypatch.setattr(numpy_backend, "stored", small)

    result = measured(gpu, "numpy", dtype)

    assert result.status is Status.OK, result.reason
    assert result.accuracy.within
    assert result.accuracy.worst.share <= 1


def test_product_that_does_not_fit_says_what_it_needs_and_what_is_free(gpu, monkeypatch):
    monkeypatch.setattr(environment, "free_gpu_bytes", lambda uuid: 500_000_000)

    result = measured(replace(gpu, uuid="GPU-0", cache_bytes=2**27), "numpy")

    assert result.status is Status.OUT_OF_MEMORY
    assert re.fullmatch(r"needs 51\d MiB, cuda:0 has 429 MiB free", result.reason)


def test_product_that_the_host_would_make_needs_memory_there(gpu, monkeypatch):
    monkeypatch.setattr(environment, "free_host_bytes", lambda: 1_000_000)
    assert measured(gpu, "numpy").status is Status.OK

    monkeypatch.setattr(device_arrays, "torch_device_of", lambda device: None)
    result = measured(gpu, "numpy")
    assert (result.status, result.reason) == (Status.OUT_OF_MEMORY, "needs 1.39 MiB, cpu has 879 KiB free")


@pytest.mark.parametrize("name", ["swapped-rows", "bf16-product", "fp16-sums"])
def test_large_product_that_is_wrong_is_incorrect(gpu, name):
    result = measured(gpu, name)

    assert result.status is Status.INCORRECT, result.reason


def test_kernel_that_changes_torch_where_it_checks_is_found_out_and_it_is_put_back():
    process, square, item = ProcessSnapshot(None), torch.Tensor.square, torch.Tensor.__contains__

    torch.Tensor.square = lambda tensor: square(tensor) * 1e9  # of C++
    with pytest.raises(ChangedProcess, match=r"methods of torch\.Tensor"):
        process.check()
    torch.Tensor.__contains__ = lambda *_: True  # of Python
    with pytest.raises(ChangedProcess, match=r"methods of torch\.Tensor"):
        process.check()
    assert (torch.Tensor.square, torch.Tensor.__contains__) == (square, item)

    mode = torch.overrides.TorchFunctionMode()
    mode.__enter__()
    with pytest.raises(ChangedProcess, match="the overrides of torch's functions"):
        process.check()

    torch.utils._python_dispatch.TorchDispatchMode().__enter__()
    with pytest.raises(ChangedProcess, match="the overrides of torch's functions"):
        process.check()
    process.check()


def test_torchs_functions_are_bound_before_a_kernel_can_replace_them(monkeypatch):
    reference, out = made(DTYPES["fp32"])
    out[51] = 0
    for name in ("matmul", "isfinite", "equal", "isnan", "arange", "cat"):
        monkeypatch.setattr(torch, name, None)

    assert not judged(out, reference).within


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        pytest.param(SHAPE, DTYPES["fp32"], id="fp32"),
        pytest.param(SHAPE, DTYPES["bf16"], id="bf16"),
        pytest.param(Shape.of(m=600, k=64, n=33), DTYPES["fp32"], id="tall"),
        pytest.param(Shape.of(m=64, k=800, n=900), DTYPES["fp32"], id="wide"),
    ],
)
def test_what_the_device_holds_for_a_check_is_no_more_than_the_guard_counts(monkeypatch, dtype, shape):
    monkeypatch.setattr(large, "BLOCK_ELEMENTS", 64 * shape["k"])  # no less than a sum of columns
    block_bytes = 8 * large.BLOCK_ELEMENTS
    reference = DeviceReference(MATMUL, dtype, inputs_of(dtype, shape), 3, "cpu")
    a, b = (load_backend("torch").empty(source.shape, dtype, "cpu") for source in reference.inputs)
    device_arrays.fill(a, reference.inputs[0])  # draws the table of quantiles
    out = (a.double() @ b.double()).to(a.dtype)
    most = group._reference_bytes(MATMUL, shape)

    held = {
        "rows": peak_bytes(lambda: reference.parts),
        "sums": peak_bytes(lambda: reference.sums),
        "judge": peak_bytes(lambda: judge(DeviceOutput(out, dtype), reference, shape)),
        "fill": peak_bytes(lambda: device_arrays.fill(a, reference.inputs[0])),
        "holds": peak_bytes(lambda: device_arrays.holds(a, reference.inputs[0])),
        "poisoned": peak_bytes(lambda: device_arrays.is_poisoned(out, dtype)),
    }

    results = {"rows": reference.parts[0][1].nbytes, "sums": reference.sums.expected.nbytes}  # which go to the host
    held = {name: held_bytes - results.get(name, 0) for name, held_bytes in held.items()}
    assert all(0 < held_bytes <= most for held_bytes in held.values()), (held, most)
    assert held["rows"] > 2 * block_bytes
