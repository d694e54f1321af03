"""Which call was made within which, and the time each spent on its own, as torch.profiler counts it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.features.trace.analysis.events import Call

WHOLE_US_NS = 1000
SLACK_NS = 2000  # by which a child may outlast its parent where times were cut to whole microseconds


@dataclass(frozen=True, slots=True)
class Nested:
    """Calls with their place among each other, by their index.

    Attributes:
        parents: the call that each was made within; None for the outermost of a thread.
        self_ns: time of each less that of the calls made directly within it.
    """

    parents: tuple[int | None, ...]
    self_ns: tuple[int, ...]


def nest(calls: Sequence[Call]) -> Nested:
    """Return who called whom: a call is within another of its thread when its time is.

    The rule is that of `torch.autograd.profiler_util.EventList`, so self times add up to what `key_averages()` says.
    """
    slack_ns = SLACK_NS if all(call.start_ns % WHOLE_US_NS == 0 for call in calls) else 0
    threads: dict[str, list[int]] = defaultdict(list)
    for index, call in enumerate(calls):
        threads[call.thread].append(index)
    parents: list[int | None] = [None] * len(calls)
    self_ns = [call.end_ns - call.start_ns for call in calls]
    for indices in threads.values():
        _nest_thread(calls, indices, parents, slack_ns=slack_ns)
    for index, parent in enumerate(parents):
        if parent is not None:
            self_ns[parent] -= calls[index].end_ns - calls[index].start_ns
    return Nested(tuple(parents), tuple(max(0, time_ns) for time_ns in self_ns))


def _nest_thread(calls: Sequence[Call], indices: list[int], parents: list[int | None], *, slack_ns: int) -> None:
    indices.sort(key=lambda index: (calls[index].start_ns, -calls[index].end_ns))
    stack: list[int] = []
    for index in indices:
        call = calls[index]
        while stack and not _is_within(call, calls[stack[-1]], slack_ns):
            stack.pop()
        parents[index] = stack[-1] if stack else None
        stack.append(index)


def _is_within(call: Call, other: Call, slack_ns: int) -> bool:
    return call.start_ns < other.end_ns and call.end_ns <= other.end_ns + slack_ns
