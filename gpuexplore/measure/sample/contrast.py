"""The same call under other conditions: with the caches in the other state, and without launches.

Taken after the case itself has settled, with the same timer and the same stopping rule.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, new_flush
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.guard import array_bytes
from gpuexplore.measure.check.untouched import ChangedProcess
from gpuexplore.measure.sample.timing import Sampling, sample_alone
from gpuexplore.model import CacheState, Contrast

GRAPH_CALLS = 20  # replayed at once: the launch of the graph itself is shared by all of them
SHORT_CALL_S = 1e-3  # a launch of some microseconds does not show in longer calls


def take_contrasts(sampling: Sampling, group: Group) -> tuple[Contrast, ...]:
    """Return the contrasts this case asks for, or is small enough to get without asking."""
    return tuple(_contrasts(sampling, group))


def _contrasts(sampling: Sampling, group: Group) -> Iterator[Contrast]:
    candidate = sampling.candidate
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
