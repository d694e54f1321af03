"""What a call costs by library: a vector addition of one element, which is launch and nothing else.

On a GPU two figures: launches one after another with a wait at the end, and a launch with its own wait.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuexplore.backends.timer import Call, Clock, HostTimer
from gpuexplore.dtypes import dtype_named
from gpuexplore.features.transfer.measure.contract import DTYPE, Reading
from gpuexplore.features.transfer.measure.way import BUDGET_S, Way
from gpuexplore.measure.candidates.candidate import Candidate, build_candidate, unsupported
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.model import Case, Device, Options, Shape
from gpuexplore.operations import operation_named

OPERATION = "vector_add"
IN_A_ROW = 100  # launches; a GPU's queue takes about a thousand before a launch has to wait


def calls(device: Device, clock: Clock) -> Iterator[Way]:
    """Yield the call of each library that runs here on one element; on a GPU in a row and alone."""
    operation, dtype = operation_named(OPERATION), dtype_named(DTYPE)
    shape = Shape.of(n=1)
    inputs = make_inputs(operation, shape, dtype, "normal")
    expected = sum(float(array[0]) for array in inputs)
    for implementation in operation.usual:
        if unsupported(operation, implementation, dtype, device):
            continue
        name = implementation.name
        case = Case(OPERATION, shape, DTYPE, name, device.id, Options(cache="warm", budget_s=BUDGET_S))
        candidate = build_candidate(case, operation, device, inputs=inputs, clock=clock)
        for spoken, count in _counts(device):
            yield _way(f"{name} {spoken}", candidate, expected, count=count, clock=clock)


def _counts(device: Device) -> tuple[tuple[str, int], ...]:
    if device.kind == "cpu":
        return (("call", 1),)
    return (f"launch, {IN_A_ROW} in a row", IN_A_ROW), ("launch and wait", 1)


def _way(name: str, candidate: Candidate, expected: float, *, count: int, clock: Clock) -> Way:
    library = candidate.case.implementation
    timed = replace(
        candidate,
        case=replace(candidate.case, implementation=name),
        run=candidate.run if candidate.device.kind == "cpu" else _awaited(candidate, count),
        timer=HostTimer(clock),
        flush=None,
    )
    return Way(Reading(name, library), timed, lambda: bool(np.isclose(candidate.output()[0], expected)), count)


def _awaited(candidate: Candidate, count: int) -> Call:
    """Return a call that launches `count` times and waits for the device."""
    run, synchronize, device = candidate.run, candidate.backend.synchronize, candidate.case.device

    def launch() -> None:
        for _ in range(count):
            run()
        synchronize(device)

    return launch
