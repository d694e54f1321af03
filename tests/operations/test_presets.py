"""The largest preset of each operation is computed rightly by what is fast enough here; presets have a meaning."""

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Options, Result, Status
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.runner import measure_group
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import Request, resolve

CPU = cpu_device()
DTYPE = DTYPES["fp32"]
LARGEST = [  # smaller ones take the path of the awkward sizes of `test_agreement`
    pytest.param(operation, preset, id=f"{operation.name}-{preset.name}")
    for operation in OPERATIONS.values()
    for preset in sorted(operation.presets, key=lambda preset: operation.flop_count(preset.shape))[-1:]
]
BUDGET_S = 0.01  # calls above some 0.08 s are refused


def chosen(operation):
    """Return the vendor's library and the loop of our own: `test_agreement` has all of them, in every dtype."""
    return [
        implementation
        for implementation in operation.implementations
        if (implementation.vendor_library or implementation.backend == "numba_cpu")
        and not (implementation.rung or implementation.optional)
        and unsupported(operation, implementation, DTYPE, CPU) is None
    ]


def measured(operation, preset):
    events = []
    options = Options(budget_s=BUDGET_S)
    cases = [Case(operation.name, preset.shape, DTYPE.name, each.name, CPU.id, options) for each in chosen(operation)]
    measure_group(cases, CPU, progress=ProgressHooks(events.append))
    return [event for event in events if isinstance(event, Result)]


@pytest.mark.long
@pytest.mark.parametrize(("operation", "preset"), LARGEST)
def test_preset_is_right_or_refused_as_too_slow(operation, preset):
    results = measured(operation, preset)

    assert {result.case.implementation for result in results} >= {operation.vendor_library.name}
    for result in results:
        assert result.status in {Status.OK, Status.SKIPPED, Status.OUT_OF_MEMORY}, result.reason
        assert result.status is not Status.OK or result.accuracy.within


@pytest.mark.parametrize(
    ("operation", "preset", "shape"),
    [
        ("matmul", "notebook-1000", "m=1000,k=1000,n=1000"),
        ("matmul", "notebook-2000", "m=2000,k=2000,n=2000"),
        ("matmul", "notebook-500-200", "m=1000,k=500,n=200"),
        ("matmul", "notebook-32-2", "m=16,k=32,n=2"),
        ("vector_add", "notebook-5466", "n=5466"),
        ("vector_add", "notebook-100000", "n=100000"),
        ("matvec", "notebook-matvec", "m=100000,n=100"),
        ("multiply", "notebook-1000", "m=1000,n=1000"),
        ("batched_matmul", "notebook-batched", "outer=4,inner=8,m=16,k=32,n=2,right=1"),
        ("linear", "notebook-linear", "b=16384,d=32768,k=8192"),
        ("linear", "notebook-linear-cpu", "b=1024,d=256,k=64"),
        ("conv2d", "notebook-conv", "b=1,c=3,h=224,w=224,o=64,r=3"),
        ("attention", "gpt2-small", "b=1,h=12,s=1024,d=64"),
        ("attention", "gpt2-small-causal", "b=1,h=12,s=1024,d=64,causal=1"),
    ],
)
def test_preset_stands_for_its_shape(operation, preset, shape):
    (found,) = resolve(Request(operation, shapes=preset), ["cpu"]).shapes

    assert str(found) == shape


def test_presets_have_names_of_their_own_and_shapes_with_a_meaning():
    for operation in OPERATIONS.values():
        names = [preset.name for preset in operation.presets]
        assert len(set(names)) == len(names)
        for preset in operation.presets:
            assert operation.problem(preset.shape) is None
            axes = (*operation.axes, *operation.flags_of(preset.shape))
            assert tuple(axis for axis, _ in preset.shape.axes) == axes
            assert all(preset.shape[axis] <= operation.limits[axis] for axis in operation.axes)
