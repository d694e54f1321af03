"""Every preset is computed rightly by whatever is fast enough for it here; what is not says so."""

import pytest

from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Case, Options, Result, Status
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.conditions.isolation import ProgressHooks
from gpuexplore.measure.runner import measure_group
from gpuexplore.operations import OPERATIONS

CPU = cpu_device()
DTYPE = DTYPES["fp32"]
PRESETS = [
    pytest.param(operation, preset, id=f"{operation.name}-{preset.name}")
    for operation in OPERATIONS.values()
    for preset in operation.presets
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
@pytest.mark.parametrize(("operation", "preset"), PRESETS)
def test_preset_is_right_or_refused_as_too_slow(operation, preset):
    results = measured(operation, preset)

    assert {result.case.implementation for result in results} >= {operation.vendor_library.name}
    for result in results:
        assert result.status in {Status.OK, Status.SKIPPED, Status.OUT_OF_MEMORY}, result.reason
        assert result.status is not Status.OK or result.accuracy.within


def test_presets_have_names_of_their_own_and_shapes_with_a_meaning():
    for operation in OPERATIONS.values():
        names = [preset.name for preset in operation.presets]
        assert len(set(names)) == len(names)
        for preset in operation.presets:
            assert operation.problem(preset.shape) is None
            axes = (*operation.axes, *operation.flags_of(preset.shape))
            assert tuple(axis for axis, _ in preset.shape.axes) == axes
            assert all(preset.shape[axis] <= operation.limits[axis] for axis in operation.axes)
