"""The same call under other conditions: with the caches in the other state, without launches, on other addresses.

Taken after the case itself has settled, with the same timer and the same stopping rule; where arrays lie, in turns with
the case itself, and told where it makes a difference.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import log

from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, new_flush
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.guard import array_bytes
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.measure.check.untouched import ChangedProcess
from gpuexplore.measure.sample.timing import Sampling, plan_rounds, sample_alone
from gpuexplore.model import CacheState, Contrast
from gpuexplore.statistics import interval_of_few, median, ratios_of_turns
from gpuexplore.timed import Alignment

GRAPH_CALLS = 20  # replayed at once: the launch of the graph itself is shared by all of them
SHORT_CALL_S = 1e-3  # a launch of some microseconds does not show in longer calls
PLACED_CALL_S = 300e-6  # in longer calls it did not show where arrays lie
ALIGNED_ROUNDS = 2  # of each, where the first ones differ
DIFFERS_ABOVE = 0.04  # natural logarithm of the ratio: less is what processes differ by


def take_contrasts(sampling: Sampling, group: Group) -> tuple[Contrast, ...]:
    """Return the contrasts this case asks for, or is small enough to get without asking."""
    return tuple(_contrasts(sampling, group))


def _contrasts(sampling: Sampling, group: Group) -> Iterator[Contrast]:
    candidate = sampling.candidate
    if candidate.device.kind == "cpu" and candidate.flush is None and sampling.call_s <= PLACED_CALL_S:
        yield from _aligned(sampling, group)
    other = other_cache(candidate, group)
    if other:
        flush = new_flush(other, candidate.device, candidate.backend)
        yield Contrast(
            other, sample_alone(replace(candidate, flush=flush), sampling.call_s, group.time, sampling.looks)
        )
    if sampling.call_s < SHORT_CALL_S:
        try:
            graph = candidate.backend.capture(candidate.run, candidate.case.device, GRAPH_CALLS)
        except ChangedProcess:
            raise
        except Exception as error:  # some calls cannot be captured: the case's own samples stand
            yield Contrast("graph", reason=describe_error(error))
            return
        if graph is not None:
            replayed = sample_alone(
                replace(candidate, run=graph, flush=None), sampling.call_s * GRAPH_CALLS, group.time, sampling.looks
            )
            yield Contrast("graph", tuple(sample_s / GRAPH_CALLS for sample_s in replayed))


def _aligned(sampling: Sampling, group: Group) -> Iterator[Contrast]:
    """Yield how long the call takes with its arrays at other addresses, if that is another time."""
    case = sampling.candidate.case
    align: Alignment = "pages" if case.options.align == "library" else "library"
    moved = replace(case, options=replace(case.options, align=align))
    candidate = replace(group.build(moved, case.shape, group.timed_reference.inputs), case=case)
    here, there = (Sampling(each, sampling.call_s, first_call_s=0.0) for each in (sampling.candidate, candidate))
    plan_rounds([here, there])
    for _ in range(ALIGNED_ROUNDS):
        here.take_round(group.time)
        there.take_round(group.time)
        if abs(log(median(there.samples_s) / median(here.samples_s))) < DIFFERS_ABOVE:
            break
    checked(candidate, group, group.timed_reference)
    ends = interval_of_few(ratios_of_turns(there.samples_s, here.samples_s, (there.per_round, here.per_round)))
    if ends and (log(ends[0]) >= DIFFERS_ABOVE or log(ends[1]) <= -DIFFERS_ABOVE):
        yield Contrast(align, tuple(there.samples_s))


def other_cache(candidate: Candidate, group: Group) -> CacheState | None:
    """Return the state of the caches to measure as well: when both are asked for, and on a GPU for small cases."""
    case, device = candidate.case, candidate.device
    asked = case.options.cache
    small = asked is None and device.kind != "cpu" and _fits_cache(candidate, group)
    if not (asked == "both" or small):
        return None
    return "warm" if cache_mode(case, device) == "cold" else "cold"


def _fits_cache(candidate: Candidate, group: Group) -> bool:
    device = candidate.device
    needed = array_bytes(group.operation, candidate.case.shape, group.dtype.itemsize_bytes)
    return device.cache_bytes is not None and needed <= device.cache_bytes
