"""Seconds of calls in this process, by which a case whose calls take long is left for later.

A first pass makes about ten calls of each case, so that a chart stands within a second; one of two seconds a call, as a
product in fp16 that a processor computes in a loop, would keep the others of a queue waiting for twenty.

Also the cost of the very first call of an implementation, compilation, loading of libraries and caches, where that was
a call on a single element, as in a worker that warms up: it is reported once, with the first case that uses the
implementation afterwards.
"""

from collections.abc import Collection
from math import prod

from gpuexplore.core.model import Case, Result, Status

SHORTEST_S = 1e-3  # shorter calls are not scaled to larger sizes: their fixed cost would be
MOST_KINDS = 1000

_Kind = tuple[str, str, str, str, int | None]
_seen: dict[_Kind, tuple[int, float]] = {}
_first_calls_s: dict[tuple[str, str, str, str], float] = {}


def note(result: Result) -> None:
    """Keep the seconds of a call of the case of `result`, where it has some."""
    if result.status is Status.OK and result.measurement is not None:
        note_call(result.case, result.measurement.median_s)


def note_call(case: Case, call_s: float) -> None:
    """Keep the seconds of a call of `case`, instead of the earlier ones of its implementation."""
    if len(_seen) >= MOST_KINDS:
        _seen.clear()
    _seen[_kind(case)] = (prod(case.shape), call_s)


def are_slow(cases: Collection[Case]) -> bool:
    """Return whether one call of each of `cases` probably takes more than 50 ms together, in proportion to sizes."""
    return sum(map(expected_s, cases)) > 0.05


def expected_s(case: Case) -> float:
    """Return the seconds of a call of `case` by an earlier one of its implementation; 0 for none to go by."""
    size = prod(case.shape)
    seen_size, seen_s = _seen.get(_kind(case), (1, 0.0))
    return seen_s * size / seen_size if size <= seen_size or seen_s >= SHORTEST_S else 0.0


def _kind(case: Case) -> _Kind:
    return (case.operation, case.implementation, case.dtype, case.device, case.options.threads)


def note_first_calls(case: Case, first_s: float, next_s: float) -> None:
    """Add the excess of the first call of the implementation of `case` over the next one."""
    key = (case.operation, case.implementation, case.dtype, case.device)
    _first_calls_s[key] = _first_calls_s.get(key, 0.0) + max(0.0, first_s - next_s)


def take_first_calls_s(case: Case) -> float:
    """Return the seconds noted for the implementation of `case`, and reset them."""
    return _first_calls_s.pop((case.operation, case.implementation, case.dtype, case.device), 0.0)
