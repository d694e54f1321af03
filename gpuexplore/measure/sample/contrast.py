"""The same call under other conditions, its phases, and its fixed cost, timed once the case itself has settled.

With the same timer and the same stopping rule. The other conditions are the caches in the other state, no launches, and
other addresses of the arrays: timed in rounds with the case itself, and reported where they make a difference.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import log

from gpuexplore.core import Alignment, CacheState, Case, Contrast, Phase, Shape, interval_of_few, median, paired_ratios
from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, new_flush
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.check import Group, array_bytes
from gpuexplore.measure.check.process_snapshot import ChangedProcess
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.measure.conditions.isolation import ProgressHooks, is_slow
from gpuexplore.measure.sample.timing import Sampling, observe_cores, plan_rounds, warm_up

LOG = logging.getLogger(__name__)
_known: dict[tuple[str, str, str, str, int | None], float | None] = {}

GRAPH_CALLS = 20  # calls per graph, which share the launch of the graph itself
SHORT_CALL_S = 1e-3  # a launch of some microseconds does not show in longer calls
PLACED_CALL_S = 300e-6  # longer calls did not depend on the addresses of arrays


def take_contrasts(sampling: Sampling, group: Group, progress: ProgressHooks) -> Iterator[Contrast]:
    """Yield the contrasts this case asks for, or is small enough to get without asking."""
    candidate = sampling.candidate
    if candidate.device.kind == "cpu" and candidate.flush is None and sampling.call_s <= PLACED_CALL_S:
        yield from _aligned(sampling, group, progress)
    other = _other_cache(candidate, group)
    if other:
        flush = new_flush(other, candidate.device, candidate.backend)
        yield Contrast(other, _samples_of(sampling, replace(candidate, flush=flush), group, progress))
    if sampling.call_s < SHORT_CALL_S:
        try:
            graph = candidate.backend.capture(candidate.run, candidate.case.device, GRAPH_CALLS)
        except ChangedProcess:
            raise
        except Exception as error:  # some calls cannot be captured: the case's own samples stand
            yield Contrast("graph", reason=describe_error(error))
            return
        if graph is not None:
            launch = replace(candidate, run=graph, flush=None)
            replayed = _samples_of(sampling, launch, group, progress, call_s=sampling.call_s * GRAPH_CALLS)
            yield Contrast("graph", tuple(sample_s / GRAPH_CALLS for sample_s in replayed))


def _aligned(sampling: Sampling, group: Group, progress: ProgressHooks) -> Iterator[Contrast]:
    """Yield the samples of the call with its arrays at other addresses, if they differ."""
    differs_above = 0.04  # natural logarithm of the ratio: smaller differences also occur between processes
    case = sampling.candidate.case
    align: Alignment = "pages" if case.options.align == "library" else "library"
    moved = replace(case, options=replace(case.options, align=align))
    candidate = replace(group.build(moved, case.shape, group.timed_reference.inputs), case=case)
    usual, other = (Sampling(each, sampling.call_s, first_call_s=0.0) for each in (sampling.candidate, candidate))
    plan_rounds([usual, other])
    for _ in range(2):
        usual.take_round(group.clock, group.isolation, progress)
        other.take_round(group.clock, group.isolation, progress)
        if abs(log(median(other.samples_s) / median(usual.samples_s))) < differs_above:
            break
    checked(candidate, group, group.timed_reference)
    ends = interval_of_few(paired_ratios(other.samples_s, usual.samples_s, (other.per_round, usual.per_round)))
    if ends and (log(ends[0]) >= differs_above or log(ends[1]) <= -differs_above):
        yield Contrast(align, tuple(other.samples_s))


def _other_cache(candidate: Candidate, group: Group) -> CacheState | None:
    """Return the state of the caches to measure as well: when both are asked for, and on a GPU for small cases."""
    case = candidate.case
    device = candidate.device
    asked = case.options.cache
    needed = array_bytes(group.operation, case.shape, group.dtype.itemsize_bytes)
    is_small = asked is None and device.kind != "cpu" and needed <= (device.cache_bytes or 0)
    if not (asked == "both" or is_small):
        return None
    return "warm" if cache_mode(case, device) == "cold" else "cold"


# The phases of a call, forward and backward, one by one: one after the other they must leave the right output, like the
# whole call. Phases that do not have no times.


def take_phases(sampling: Sampling, group: Group, progress: ProgressHooks) -> tuple[Phase, ...]:
    """Return the phases that the operation names, each with its samples or why it has none."""
    candidate = sampling.candidate
    wanted = tuple(group.operation.phases)
    if not candidate.phases:
        return tuple(
            Phase(name, reason=f"{candidate.case.implementation} has no calls of its phases") for name in wanted
        )
    candidate.run()  # produces the input of a later phase
    candidate.poison()
    try:
        timed = []
        for name in wanted:
            phase = replace(candidate, run=candidate.phases[name])
            samples_s = _samples_of(sampling, phase, group, progress, call_s=sampling.call_s / len(wanted))
            timed.append(Phase(name, samples_s))
        checked(candidate, group, group.timed_reference)
    except ChangedProcess:
        raise
    except Exception as error:  # the whole call was right, and its samples stand
        return tuple(Phase(name, reason=describe_error(error)) for name in wanted)
    return tuple(timed)


def _samples_of(
    sampling: Sampling, candidate: Candidate, group: Group, progress: ProgressHooks, *, call_s: float | None = None
) -> tuple[float, ...]:
    """Return seconds per call of a candidate that is not the one of `sampling`, which keeps the core speeds.

    A call takes about `call_s`; None: as long as one of `sampling`.
    """
    alone = _sampled(candidate, call_s or sampling.call_s, group, progress)
    sampling.core_speeds += alone.core_speeds
    return tuple(alone.samples_s)


def _sampled(candidate: Candidate, call_s: float, group: Group, progress: ProgressHooks) -> Sampling:
    """Return a candidate sampled by itself, by the rounds and the stopping rule of all others."""
    alone = Sampling(candidate, call_s, first_call_s=0.0)
    plan_rounds([alone])
    while not alone.settled():
        alone.take_round(group.clock, group.isolation, progress)
    observe_cores([alone], group.isolation)
    return alone


# The fixed cost of a call, of the same implementation on one element, sampled like any case: a single batch, taken
# while another library's threads spin, took a hundred times too long.


def call_overhead_s(
    case: Case, group: Group, progress: ProgressHooks, *, before: Callable[[], object] = lambda: None
) -> float | None:
    """Return seconds of a call on one element; measured once per implementation, dtype and process.

    None where one element has no meaning, as for a network that pools, or cannot be called: the case itself was right.

    Args:
        case: whose implementation.
        group: of the case.
        progress: of the run.
        before: called when it has to be measured: a call on one element may never return.
    """
    key = (case.operation, case.implementation, case.dtype, case.device, case.options.threads)
    if key not in _known:
        before()
        progress.running(case, 2.0)  # with what may have to be compiled again
        try:
            alone = _on_one_element(case, group, progress)
            if any(map(is_slow, alone.core_speeds)):
                return median(alone.samples_s)  # the next case measures it again
            _known[key] = median(alone.samples_s)
        except ChangedProcess:
            raise
        except Exception as error:
            LOG.info("%s of %s cannot be called on one element: %s", case.implementation, case.operation, error)
            _known[key] = None
    return _known[key]


def _on_one_element(case: Case, group: Group, progress: ProgressHooks) -> Sampling:
    budget_s = 2e-3  # of microseconds a call: some ten samples, for a figure that others are compared with by factors
    smallest = Shape(tuple((axis, 1) for axis in group.operation.axes))
    brief = replace(case, options=replace(case.options, budget_s=min(budget_s, case.options.budget_s)))
    candidate = replace(group.build(brief, smallest, group.inputs(smallest)), flush=None)
    group.isolation.wait_for_idle_threads()
    with group.isolation.isolate_core():
        call_s, _ = warm_up(candidate, group.clock, budget_s)  # its library and its core are already warm
    return _sampled(candidate, call_s, group, progress)
