"""What the very first call of an implementation cost in this process: compilation, loading of libraries and caches.

Noted when that call was one on a single element, as in a worker that warms up, and reported once: with the first case
that uses the implementation afterwards.
"""

from gpuexplore.model import Case

_noted_s: dict[tuple[str, str, str, str], float] = {}


def note(case: Case, first_s: float, next_s: float) -> None:
    """Add how much longer the first call of the implementation of `case` took than the next one."""
    _noted_s[_key(case)] = _noted_s.get(_key(case), 0.0) + max(0.0, first_s - next_s)


def take_s(case: Case) -> float:
    """Return the seconds that are noted for the implementation of `case`, and forget them."""
    return _noted_s.pop(_key(case), 0.0)


def _key(case: Case) -> tuple[str, str, str, str]:
    return (case.operation, case.implementation, case.dtype, case.device)
