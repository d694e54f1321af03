"""Every preset is computed rightly by whatever is fast enough for it here; what is not says so."""

from itertools import product

import pytest

from gpuexplore.devices.cpu import cpu_device
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.candidates.candidate import unsupported
from gpuexplore.measure.runner import measure_group
from gpuexplore.model import Case, Options, Result, Status
from gpuexplore.operations import OPERATIONS

CPU = cpu_device()
PRESETS = [
    pytest.param(operation, preset, dtype, id=f"{operation.name}-{preset.name}-{dtype}")
    for operation in OPERATIONS.values()
    for preset, dtype in product(operation.presets, ("fp32", "bf16", "fp16"))
]
BUDGET_S = 0.01  # calls above some 0.08 s are refused


def measured(operation, preset, dtype):
    usual = [
        implementation
        for implementation in operation.implementations
        if not (implementation.rung or implementation.optional)
    ]
    names = [
        implementation.name
        for implementation in usual
        if unsupported(operation, implementation, DTYPES[dtype], CPU) is None
    ]
    events = []
    options = Options(budget_s=BUDGET_S)
    cases = [Case(operation.name, preset.shape, dtype, name, CPU.id, options) for name in names]
    measure_group(cases, CPU, report=events.append)
    return [event for event in events if isinstance(event, Result)]


@pytest.mark.long
@pytest.mark.parametrize(("operation", "preset", "dtype"), PRESETS)
def test_preset_is_right_or_refused_as_too_slow(operation, preset, dtype):
    results = measured(operation, preset, dtype)

    assert len(results) >= 3
    for result in results:
        assert result.status in {Status.OK, Status.SKIPPED, Status.OUT_OF_MEMORY}, result.reason
        assert result.status is not Status.OK or result.accuracy.within


def test_presets_have_names_of_their_own_and_shapes_with_a_meaning():
    for operation in OPERATIONS.values():
        names = [preset.name for preset in operation.presets]
        assert len(set(names)) == len(names)
        for preset in operation.presets:
            assert operation.problem(preset.shape) is None
            assert tuple(axis for axis, _ in preset.shape.axes) == operation.axes
            assert all(length <= operation.limits[axis] for axis, length in preset.shape.axes)
