"""How many results have no time, and why: one sentence for charts, summaries and pages."""

from collections import Counter
from collections.abc import Sequence

from gpuexplore.model import Result, Status


def missing_counts(results: Sequence[Result]) -> Counter[str]:
    """Return how many results have no time, by status in words."""
    return Counter(result.status.value.replace("_", " ") for result in results if result.status is not Status.OK)


def counted(counts: Counter[str], total: int) -> str:
    """Return ``8 of 216 cancelled``, or ``5 of 36 without a time (3 skipped, 2 incorrect)``."""
    if len(counts) == 1:
        ((what, count),) = counts.items()
        return f"{count} of {total} {what}"
    listed = ", ".join(f"{count} {what}" for what, count in counts.most_common())
    return f"{counts.total()} of {total} without a time ({listed})"


def missing_sentence(results: Sequence[Result]) -> str | None:
    """Return how many results have no time, with the commonest reason; None when all have one."""
    counts = missing_counts(results)
    if not counts:
        return None
    reasons = Counter((result.reason or "").rstrip(".") for result in results if result.status is not Status.OK)
    reason, times = reasons.most_common(1)[0]
    prefix = "" if times == counts.total() else "mostly: " if times > 1 else "one of them: "
    return f"{counted(counts, len(results))}: {prefix}{reason}."
