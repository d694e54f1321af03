"""Whether others used the device while something was measured on it: seen, not seen, or not to be known."""

from collections.abc import Sequence

from gpuexplore.devices import CpuLoss
from gpuexplore.model import Environment, Flag
from gpuexplore.units import format_percent

CONTENDED_ABOVE = 0.05  # of the CPU time; benchmarks/README.md has what it finds, and on how much a quiet machine does
# how far medians were off beside a busy loop, in 960 results of eight processes (benchmarks/README.md)
SHARED_CACHES = 0.1  # of what others take of the CPU: they use its caches, memory and clocks all the same
WAITS = 0.08
MOST_WAITED = 0.99
WAITED_ABOVE = 0.05  # of a window, in which threads of ours waited for cores that others had


def contention(environment: Environment, losses: Sequence[CpuLoss], waited_share: float | None = None) -> Flag | None:
    """Return the flag of what others did, or of what cannot be known of them; None where they did nothing.

    Args:
        losses: of windows in which it was measured; any of them can tell.
        waited_share: of its own rounds, in which it waited for a core that others had: that is the size of what they
            did to it, whatever they took of other cores. None is unknown: then what they took is.
    """
    others = environment.after.foreign_processes
    if others:
        return Flag("contended", f"{others} other process{'es' if others > 1 else ''} used {environment.device.id}")
    known = [loss for loss in losses if loss.share is not None]
    lost = [found for loss in known if (found := _lost(loss))]
    if lost:
        worst = max(lost, key=lambda flag: flag.size or 0.0)
        return worst if waited_share is None else _felt(worst, waited_share)
    reasons = [] if known else [loss.reason or "nobody looked" for loss in losses[:1]] or ["nobody looked"]
    if environment.device.kind != "cpu" and others is None:
        reasons.append(f"the driver does not tell which other processes use {environment.device.id}")
    return Flag("contention_unknown", "; ".join(reasons)) if reasons else None


def is_contended(share: float | None, step: float = 0.0) -> bool:
    """Return whether others took so much of the CPU that times cannot be trusted.

    Args:
        share: of the CPU time; None is unknown.
        step: the step in which the share is known, so that what rounding makes of nothing does not count.
    """
    return share is not None and share > CONTENDED_ABOVE + step


def _lost(loss: CpuLoss) -> Flag | None:
    """Return the flag of others that disturbed; None where they did not."""
    if is_contended(loss.share, loss.step):
        taken = f"other work took {format_percent(loss.share)} of the CPU meanwhile"
        return Flag("contended", f"{taken}{_preemptions(loss)}", loss.share)
    if loss.waited_share > WAITED_ABOVE:
        waited = f"threads waited {format_percent(loss.waited_share)} of the time for cores that other work had"
        return Flag("contended", f"{waited}{_preemptions(loss)}", min(loss.waited_share, 1.0))
    return None


def _felt(flag: Flag, waited_share: float) -> Flag:
    """Return the flag with the size of what the rounds of a case felt: shared caches and clocks, and waits for cores.

    A median hardly feels how long its threads waited, as fewer than half of the samples do; but whether they did tells.
    From half of the time on every sample may have: then it is as many times as long as the rounds had no core.
    """
    waited = f"; its own rounds waited {format_percent(waited_share)} of their time for a core"
    longer = waited_share / (1 - min(waited_share, MOST_WAITED))
    size = SHARED_CACHES * (flag.size or 0.0) + WAITS * min(1.0, waited_share / WAITED_ABOVE) + max(0.0, longer - 1)
    return Flag(flag.name, f"{flag.evidence}{waited}", size)


def _preemptions(loss: CpuLoss) -> str:
    if not loss.preempted:
        return ""
    return f", and interrupted this process {loss.preempted:,} time{'s'[: loss.preempted > 1]}"
