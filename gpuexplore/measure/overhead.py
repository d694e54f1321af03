"""What a call costs before any work is done: one element, the same implementation."""

from gpuexplore.measure.group import Group
from gpuexplore.model import Case, Shape
from gpuexplore.statistics import median

CALLS = 20
_known: dict[tuple[str, str, str, str, int | None], float] = {}


def call_overhead_s(case: Case, group: Group) -> float:
    """Return seconds of a call on one element; measured once per implementation, dtype and process."""
    key = (case.operation, case.implementation, case.dtype, case.device, case.options.threads)
    if key not in _known:
        smallest = Shape(tuple((axis, 1) for axis in group.operation.axes))
        candidate = group.build(case, smallest, group.inputs(smallest))
        group.time.quiet()
        candidate.first_call_s(group.time.clock)
        _known[key] = median(candidate.timer.sample(candidate.run, calls=CALLS, flush=None))
    return _known[key]
