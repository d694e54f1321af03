"""One check after the other, within the time there is: what fails, fails alone, and what no longer fits says so."""

import time
from collections.abc import Callable, Iterator, Sequence

from gpuexplore.features.selftest.suite.bench import Bench
from gpuexplore.features.selftest.suite.check import Check
from gpuexplore.features.selftest.suite.contract import FULL_S, INTERRUPTED, QUICK_S, Finding, Outcome, Verdict, skipped
from gpuexplore.features.selftest.suite.private import without_names_in
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.units import format_whole_seconds

RESERVE_S = 8.0  # to end what runs, and to write the report
NOT_QUICK = "not part of the quick test"


def carry_out(
    checks: Sequence[Check], bench: Bench, *, report: Callable[[Outcome], None], total_s: float | None = None
) -> tuple[Outcome, ...]:
    """Return how each check ended on `bench`.

    Args:
        checks: in this order.
        bench: the device.
        report: called with each outcome as it comes.
        total_s: seconds for all of them; None: ten minutes, or two for the quick test.
    """
    limit_s = total_s or (QUICK_S if bench.is_quick else FULL_S)
    outcomes: list[Outcome] = []
    for outcome in _outcomes(checks, bench, limit_s - RESERVE_S):
        outcomes.append(outcome)
        report(outcome)
    return tuple(outcomes)


def _outcomes(checks: Sequence[Check], bench: Bench, limit_s: float) -> Iterator[Outcome]:
    began_s, stopped = time.monotonic(), ""
    for check in checks:
        check_began_s = time.monotonic()
        left_s = limit_s - (check_began_s - began_s)
        reason = _not_for(check, bench) or stopped or _no_time(check, left_s)
        if reason:
            finding = skipped(reason)
        else:
            bench.allow(min(left_s, check.share * limit_s))
            finding, stopped = _found(check, bench)
        finding, lasted_s = without_names_in(finding), time.monotonic() - check_began_s
        yield Outcome(check.name, check.title, finding.verdict, finding.said, finding.figures, lasted_s)


def _not_for(check: Check, bench: Bench) -> str:
    if bench.device.kind not in check.kinds:
        return f"it is about {' and '.join(check.kinds)} devices, and {bench.device.id} is none"
    return NOT_QUICK if bench.is_quick and not check.in_quick else ""


def _no_time(check: Check, left_s: float) -> str:
    if left_s >= check.needs_s:
        return ""
    return f"out of time: it needs {format_whole_seconds(check.needs_s)}, and {max(0.0, left_s):.0f} s are left"


def _found(check: Check, bench: Bench) -> tuple[Finding, str]:
    """Return what a check found, and why no other one is worth a try: an empty text, nearly always."""
    try:
        finding = check.run(bench)
    except KeyboardInterrupt:
        return skipped(INTERRUPTED), INTERRUPTED
    except Exception as error:
        finding = Finding(Verdict.FAIL, (describe_error(error),))
    if lost := bench.lost():
        return Finding(Verdict.FAIL, (lost, *finding.said), finding.figures), f"the GPU was lost: {lost}"
    return finding, ""
