"""The fixed cost of a call: the same implementation on one element.

It is sampled like any case: a single batch, taken while another library's threads spin, took a hundred times too long.
"""

from dataclasses import replace

from gpuexplore.measure.group import Group
from gpuexplore.measure.timing import WARM_UP_S, sample_alone, warm_up
from gpuexplore.model import Case, Shape
from gpuexplore.statistics import median

_known: dict[tuple[str, str, str, str, int | None], float] = {}


def call_overhead_s(case: Case, group: Group) -> float:
    """Return seconds of a call on one element; measured once per implementation, dtype and process."""
    key = (case.operation, case.implementation, case.dtype, case.device, case.options.threads)
    if key not in _known:
        _known[key] = _measured_s(case, group)
    return _known[key]


def _measured_s(case: Case, group: Group) -> float:
    smallest = Shape(tuple((axis, 1) for axis in group.operation.axes))
    candidate = replace(group.build(case, smallest, group.inputs(smallest)), flush=None)
    group.time.wait_for_idle_threads()
    with group.time.isolate_core():
        call_s, _ = warm_up(candidate, group.time.clock, WARM_UP_S)
    return median(sample_alone(candidate, call_s, group.time))
