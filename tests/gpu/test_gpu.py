"""What only a real GPU can show: right answers, honest events, a device with peaks and their source."""

from itertools import product

import pytest

from gpuexplore.backends import load_backend
from gpuexplore.cli import EXIT_OK, main
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Options, Result, Shape, Status
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.conditions.environment import git_commit
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.runner import measure_group
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded import validate
from tests.operations.shapes import awkward_shapes

pytestmark = pytest.mark.gpu
CUDA = [
    pytest.param(operation, implementation, dtype, id=f"{operation.name}-{implementation.name}-{dtype.name}")
    for operation in OPERATIONS.values()
    for implementation, dtype in product(operation.implementations, DTYPES.values())
    if "cuda" in load_backend(implementation.backend).DEVICE_KINDS
]


def measured(case, device):
    events = []
    measure_group([case], device, progress=ProgressHooks(events.append))
    (result,) = (event for event in events if isinstance(event, Result))
    return result


def case_of(operation, implementation, dtype, device, *, shape, **options):
    return Case(operation.name, shape, dtype.name, implementation.name, device.id, Options(**options))


@pytest.mark.parametrize(("operation", "implementation", "dtype"), CUDA)
def test_implementation_agrees_with_the_reference_and_is_timed(gpu, needs, operation, implementation, dtype):
    needs(implementation.backend)
    unable = unsupported(operation, implementation, dtype, gpu)

    for shape in awkward_shapes(operation):
        reason = unable or implementation.lacks_flags(operation.flags_of(shape))
        result = measured(case_of(operation, implementation, dtype, gpu, shape=shape, budget_s=0.01), gpu)
        if reason:
            assert (result.status, result.reason) == (Status.UNSUPPORTED, reason)
        else:
            assert result.status is Status.OK, result.reason
            assert result.accuracy.within


@pytest.mark.parametrize("dtype", [row for row in DTYPES.values() if row.name != "fp64"], ids=lambda row: row.name)
def test_large_product_is_timed_to_its_end_and_not_to_its_launch(gpu, needs, dtype):
    """A launch takes microseconds: without waiting for the device the rate would be far above every peak."""
    needs("torch")
    operation = OPERATIONS["matmul"]
    implementation, shape = operation.implementation_named("torch"), operation.shape_of_size(4096)
    result = measured(case_of(operation, implementation, dtype, gpu, shape=shape), gpu)
    if result.status is Status.UNSUPPORTED:
        pytest.skip(result.reason)
    peak = implementation.peak(gpu, dtype.name)

    assert result.status is Status.OK, result.reason
    if peak is None:
        pytest.skip(f"no {dtype.name} peak is known for {gpu.name}")
    assert operation.flop_count(shape) / result.measurement.median_s < 1.2 * peak.flop_per_s


@pytest.mark.parametrize("backend", ["torch", "numba_cuda"])
def test_event_times_are_positive_and_one_a_call(gpu, needs, backend):
    needs(backend)
    operation = OPERATIONS["vector_add"]
    implementation = next(one for one in operation.implementations if one.backend == backend)
    result = measured(case_of(operation, implementation, DTYPES["fp32"], gpu, shape=Shape.of(n=10**6)), gpu)

    assert result.status is Status.OK, result.reason
    assert len(result.measurement.samples_s) >= 10
    assert all(sample_s > 0 for sample_s in result.measurement.samples_s)
    assert "cold" in {flag.name for flag in result.flags}


def test_small_case_shows_warm_caches_and_the_time_without_launches(gpu, needs):
    needs("torch")
    implementation = next(one for one in OPERATIONS["matmul"].implementations if one.backend == "torch")
    shape = Shape.of(m=256, k=256, n=256)
    result = measured(case_of(OPERATIONS["matmul"], implementation, DTYPES["fp32"], gpu, shape=shape), gpu)
    found = {contrast.condition: contrast for contrast in result.measurement.contrasts}

    assert set(found) == {"warm", "graph"}
    assert all(one.reason is None for one in found.values())
    assert found["graph"].median_s < 1.2 * found["warm"].median_s


def test_discovery_finds_the_device_with_its_peaks_and_their_source(gpu):
    assert gpu.memory_bytes
    assert gpu.compute_capability
    assert gpu.uuid
    if not gpu.peaks:
        pytest.skip(f"{gpu.name} is in no table and states no clock")
    assert all(peak.flop_per_s > 0 and peak.source for peak in gpu.peaks)
    assert gpu.bandwidth is not None


def test_record_writes_results_of_the_gpu(gpu, needs, tmp_path):
    needs("torch")
    path = tmp_path / "gpu.jsonl"
    words = ["record", "matmul", "--size", "64", "--dtype", "fp32", "--impl", "torch", "--device", gpu.id]
    words += ["--budget", "0.01", "--by", "a tester", "--out", str(path)]

    assert main([*words, "--commit", git_commit() or "0123456789ab"]) == EXIT_OK

    recording = validate(path)
    assert [(device.id, device.driver) for device in recording.provenance.devices] == [(gpu.id, gpu.driver)]
    (result,) = recording.results
    assert result.status is Status.OK
    assert result.environment.device.name == gpu.name
