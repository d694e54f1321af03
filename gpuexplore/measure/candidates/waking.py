"""Calls without timing, until a pause before them does not show in the next one any more.

After a pause threads sleep, caches hold the data of others and the clock of a core rises for milliseconds: torch's
addition of 10^5 numbers took 1.6 times as long after 0.2 ms of such calls as in a loop, 1.15 times after 4 ms
(benchmarks/README.md). So calls go on until a millisecond of them is no faster than the one before.
"""

from math import ceil

from gpuexplore.backends.timer import Clock
from gpuexplore.measure.candidates.candidate import Candidate

WINDOW_S = 1e-3  # of calls that are compared with those before
NO_FASTER = 0.98  # of the time of the window before: noise moves it by less
LEAST_S = 3e-3
MOST_S = 10e-3
BRIEFLY_S = 200e-6
WAKING_CALL_S = 40e-3  # waking threads, 2 ms, does not show in calls of this length


def wake(candidate: Candidate, call_s: float, clock: Clock) -> None:
    """Call without timing until the calls do not get faster any more, for 3 ms at least and about 10 ms at most.

    Args:
        candidate: built and warm; one whose caches are flushed between calls is called once, as it is timed.
        call_s: about how long a call takes.
        clock: in nanoseconds.
    """
    if call_s >= WAKING_CALL_S:
        return
    if candidate.flush is not None:
        candidate.timer.sample(candidate.run, calls=1, flush=candidate.flush)
        return
    calls, began_ns, before_ns = max(1, ceil(WINDOW_S / max(call_s, 1e-9))), clock(), 0
    while True:
        window_ns, now_ns = _window_ns(candidate, calls, clock), clock()
        lasted_s = (now_ns - began_ns) * 1e-9
        is_steady = before_ns and window_ns >= NO_FASTER * before_ns
        if lasted_s + window_ns * 1e-9 > MOST_S or (is_steady and lasted_s >= LEAST_S):
            return
        before_ns = window_ns


def wake_briefly(candidate: Candidate, call_s: float) -> None:
    """Call without timing for about 0.2 ms: what is timed next is compared by factors."""
    if call_s < WAKING_CALL_S:
        for _ in range(max(1, ceil(BRIEFLY_S / max(call_s, 1e-9)))):
            candidate.run()
        candidate.backend.synchronize(candidate.case.device)


def _window_ns(candidate: Candidate, calls: int, clock: Clock) -> int:
    start_ns = clock()
    for _ in range(calls):
        candidate.run()
    candidate.backend.synchronize(candidate.case.device)
    return clock() - start_ns
