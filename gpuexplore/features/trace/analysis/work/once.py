"""The work of each call, counted once where an operation leaves it to another one that was called within it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from gpuexplore.features.trace.analysis.events import Call
from gpuexplore.features.trace.analysis.nesting import Nested
from gpuexplore.features.trace.analysis.work.flops import flop_count
from gpuexplore.features.trace.analysis.work.kinds import kind_of
from gpuexplore.features.trace.analysis.work.moved import byte_count


class Work(NamedTuple):
    """FLOPs and bytes of one call; None where it has none, they are unknown, or they are those of another call."""

    flop_count: int | None
    byte_count: int | None


UNKNOWN = Work(None, None)


def counted_once(calls: Sequence[Call], nested: Nested, own_ns: Sequence[int]) -> list[Work]:
    """Return the work of each call.

    An operation whose work is known again within it counts nothing itself. Products of one whose time went to calls of
    its kind within it, of which no work is known, are theirs: in equal parts where they are alike, else unknown.

    Args:
        calls: of the trace.
        nested: which of them was made within which.
        own_ns: the time that each took itself, without that of calls within.
    """
    known = [Work(flop_count(call), byte_count(call)) for call in calls]
    within = _known_within(calls, nested, known)
    found = [
        UNKNOWN if _leaves_work(call, work, marks) else work
        for call, work, marks in zip(calls, known, within, strict=True)
    ]
    heirs: dict[int, list[int]] = defaultdict(list)
    for index, parent in enumerate(nested.parents):
        if parent is not None and found[index] == UNKNOWN and kind_of(calls[index].name) == kind_of(calls[parent].name):
            heirs[parent].append(index)
    from_outside = sorted(range(len(calls)), key=lambda index: (calls[index].start_ns, -calls[index].end_ns))
    time_ns = list(own_ns)
    for index in reversed(from_outside):
        parent = nested.parents[index]
        if parent is not None:
            time_ns[parent] += time_ns[index]
    for index in from_outside:
        if found[index].flop_count is not None and own_ns[index] < sum(time_ns[heir] for heir in heirs[index]):
            part = _part(calls, found[index], heirs[index])
            for heir in heirs[index]:
                found[heir] = part
            found[index] = UNKNOWN
    return found


def _known_within(calls: Sequence[Call], nested: Nested, known: Sequence[Work]) -> list[set[str]]:
    """Return the kinds of the calls within each whose work is known, and whether FLOPs are."""
    within: list[set[str]] = [set() for _ in calls]
    for index, work in enumerate(known):
        marks = {"FLOPs"} if work.flop_count is not None else set()
        marks |= {kind} if work.byte_count is not None and (kind := kind_of(calls[index].name)) else set()
        parent = nested.parents[index]
        while parent is not None and not marks <= within[parent]:  # else those around it have them, too
            within[parent] |= marks
            parent = nested.parents[parent]
    return within


def _leaves_work(call: Call, work: Work, within: set[str]) -> bool:
    return "FLOPs" in within if work.flop_count is not None else kind_of(call.name) in within


def _part(calls: Sequence[Call], work: Work, heirs: Sequence[int]) -> Work:
    """Return the part of each of `heirs` in the work of the call around them."""
    are_alike = len({(calls[heir].name, _shapes(calls[heir])) for heir in heirs}) == 1
    return Work(*(each and each // len(heirs) for each in work)) if are_alike else UNKNOWN


def _shapes(call: Call) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(argument.dims for argument in call.arguments or ())
