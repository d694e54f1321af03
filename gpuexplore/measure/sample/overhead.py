"""The fixed cost of a call: the same implementation on one element.

It is sampled like any case: a single batch, taken while another library's threads spin, took a hundred times too long.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.untouched import ChangedProcess
from gpuexplore.measure.conditions.core_speeds import is_slow
from gpuexplore.measure.sample.timing import sample_alone, warm_up
from gpuexplore.model import Case, Shape
from gpuexplore.statistics import median

LOG = logging.getLogger(__name__)
EXPECTED_S = 2.0  # with what may have to be compiled again
BUDGET_S = 2e-3  # of microseconds a call: some ten samples, for a figure that others are compared with by factors
_known: dict[tuple[str, str, str, str, int | None], float | None] = {}


def call_overhead_s(case: Case, group: Group, *, before: Callable[[], object] = lambda: None) -> float | None:
    """Return seconds of a call on one element; measured once per implementation, dtype and process.

    None where one element has no meaning, as for a network that pools, or cannot be called: the case itself was right.

    Args:
        before: called when it has to be measured: who is called on one element may never come back.
    """
    key = (case.operation, case.implementation, case.dtype, case.device, case.options.threads)
    if key not in _known:
        before()
        group.time.begin_turn(case, EXPECTED_S)
        try:
            looks: list[float] = []
            overhead_s = _measured_s(case, group, looks)
            if any(map(is_slow, looks)):
                return overhead_s  # the next case measures it again
            _known[key] = overhead_s
        except ChangedProcess:
            raise
        except Exception as error:
            LOG.info("%s of %s cannot be called on one element: %s", case.implementation, case.operation, error)
            _known[key] = None
    return _known[key]


def _measured_s(case: Case, group: Group, looks: list[float]) -> float:
    smallest = Shape(tuple((axis, 1) for axis in group.operation.axes))
    brief = replace(case, options=replace(case.options, budget_s=min(BUDGET_S, case.options.budget_s)))
    candidate = replace(group.build(brief, smallest, group.inputs(smallest)), flush=None)
    group.time.wait_for_idle_threads()
    with group.time.isolate_core():
        call_s, _ = warm_up(candidate, group.time.clock, BUDGET_S)  # its library and its core are warm already
    return median(sample_alone(candidate, call_s, group.time, looks))
