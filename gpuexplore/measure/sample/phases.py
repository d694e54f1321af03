"""The phases of a call, forward and backward, timed one by one after the case itself has settled.

With the same timer, flush and stopping rule. The phases one after the other must leave the right output, like the whole
call: phases that do not have no times.
"""

from collections.abc import Iterator
from dataclasses import replace

from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.spot_checks import checked
from gpuexplore.measure.check.untouched import ChangedProcess
from gpuexplore.measure.sample.timing import Sampling, sample_alone
from gpuexplore.model import Phase
from gpuexplore.timed import PhaseName


def take_phases(sampling: Sampling, group: Group) -> tuple[Phase, ...]:
    """Return the phases that the operation names, each with its samples or why it has none."""
    candidate = sampling.candidate
    wanted = tuple(group.operation.phases)
    if not candidate.phases:
        return tuple(
            Phase(name, reason=f"{candidate.case.implementation} has no calls of its phases") for name in wanted
        )
    candidate.run()  # leaves what a later phase begins with
    candidate.poison()
    try:
        timed = tuple(_timed(wanted, sampling, group))
        checked(candidate, group, group.timed_reference)
    except ChangedProcess:
        raise
    except Exception as error:  # the whole call was right, and its samples stand
        return tuple(Phase(name, reason=describe_error(error)) for name in wanted)
    return timed


def _timed(wanted: tuple[PhaseName, ...], sampling: Sampling, group: Group) -> Iterator[Phase]:
    candidate, call_s = sampling.candidate, sampling.call_s / len(wanted)
    for name in wanted:
        alone = replace(candidate, run=candidate.phases[name])
        yield Phase(name, sample_alone(alone, call_s, group.time, sampling.looks))
