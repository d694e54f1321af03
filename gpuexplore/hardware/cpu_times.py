"""The use of the CPU between two moments: by this process, or by others.

Time is lost to others where the CPUs were neither idle nor at work for this process. Idle time is what Linux accounts
finest: on a kernel without ticks on idle CPUs it is exact when it is read, and /proc/stat rounds it to 10 ms, whereas
busy time is sampled by ticks of 1 to 10 ms. The own time is exact, in µs, by `getrusage`.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import monotonic

from gpuexplore.core.units import format_seconds
from gpuexplore.hardware.cpu import ROOT, affinity, read_line

UNREADABLE = "/proc/stat, which accounts for CPU use, cannot be read"


@dataclass(frozen=True, slots=True)
class Account:
    """Seconds since boot of some CPUs together; `idle_s` with waits for disks.

    Attributes:
        cpus: how many.
        counted_s: of all kinds of time.
        tick_s: the step in which idle time advances.
    """

    cpus: int
    idle_s: float
    stolen_s: float
    counted_s: float
    tick_s: float


@dataclass(frozen=True, slots=True)
class CpuTimes:
    """The accounts at one moment.

    Attributes:
        at_s: the moment, by the monotonic clock.
        accounts: of all CPUs, and of those this process may use where these are fewer.
        own_s: CPU seconds of this process, and of its children that ended.
        waits_s: by thread of this process, how long it was ready to run and had no core.
        preempted: how often a thread of this process was taken off its core.
        children_s: CPU seconds of the children that still run.
    """

    at_s: float
    accounts: tuple[Account, ...]
    own_s: float
    waits_s: Mapping[int, float] = field(default_factory=dict)
    preempted: int = 0
    children_s: float = 0.0


@dataclass(frozen=True, slots=True)
class CpuLoss:
    """CPU time that other processes used in a time window.

    Attributes:
        share: of the CPU time, what went to other processes and to other guests of the host; None is unknown.
        step: the step in which `share` can be known.
        waited_share: how long threads of this process waited for a core that others had, over the window.
        preempted: how often such a thread was taken off its core.
        reason: why the share is unknown.
    """

    share: float | None = None
    step: float = 0.0
    waited_share: float = 0.0
    preempted: int = 0
    reason: str | None = None


def read_cpu_times(root: Path = ROOT) -> CpuTimes | None:
    """Return the accounts now; None where there is no /proc/stat."""
    lines = _cpu_lines(root)
    if "cpu" not in lines:
        return None
    own_s, preempted = _own()
    everywhere = _account([lines["cpu"]], len(lines) - 1 or 1)
    usable = [line for number in affinity() if (line := lines.get(f"cpu{number}"))]
    accounts = (everywhere, _account(usable, len(usable))) if 0 < len(usable) < len(lines) - 1 else (everywhere,)
    return CpuTimes(monotonic(), accounts, own_s, thread_waits(root), preempted, _children_s(root, "self"))


def _cpu_lines(root: Path) -> dict[str, list[float]]:
    """Return seconds by kind of each CPU in /proc/stat, and of all together as `cpu`."""
    found = {}
    for line in (read_line(root / "proc/stat") or "").splitlines():
        name, *fields = line.split()
        if not name.startswith("cpu"):
            break
        if len(fields) >= 8 and all(map(str.isdigit, fields[:8])):
            found[name] = [int(text) / os.sysconf("SC_CLK_TCK") for text in fields[:8]]
    return found


def _account(lines: Sequence[Sequence[float]], cpus: int) -> Account:
    _, _, _, idle_s, waiting_s, _, _, stolen_s = map(sum, zip(*lines, strict=True))
    counted_s = sum(map(sum, lines))
    return Account(cpus, idle_s + waiting_s, stolen_s, counted_s, len(lines) / os.sysconf("SC_CLK_TCK"))


def _own() -> tuple[float, int]:
    """Return the CPU seconds of this process and its children that ended, and how often a thread was preempted."""
    try:
        from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
    except ImportError:  # not on Windows
        return sum(os.times()[:4]), 0
    own = getrusage(RUSAGE_SELF)
    children = getrusage(RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime, own.ru_nivcsw


def _children_s(root: Path, process: str) -> float:
    """Return CPU seconds of the children that still run, and theirs, e.g. compilers; 0 where the kernel hides them."""
    lists = [read_line(path) or "" for path in (root / "proc" / process / "task").glob("[0-9]*/children")]
    return sum(_used_s(root, child) + _children_s(root, child) for text in lists for child in text.split())


def _used_s(root: Path, process: str) -> float:
    """Return CPU seconds of a process and of its children that ended; 0 when it has ended itself."""
    fields = (read_line(root / "proc" / process / "stat") or "").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # utime, stime, cutime, cstime: proc_pid_stat(5)


def thread_waits(root: Path = ROOT) -> dict[int, float]:
    """Return how long each thread of this process has waited for a core: the second number of its schedstat, ns.

    Empty where the kernel does not count it.
    """
    return _of_threads(root, 1)


def thread_runs(root: Path = ROOT) -> dict[int, float]:
    """Return for how many seconds each thread of this process had a core; empty where the kernel does not count it."""
    return _of_threads(root, 0)


def _of_threads(root: Path, index: int) -> dict[int, float]:
    found = {}
    for path in (root / "proc/self/task").glob("[0-9]*/schedstat"):
        fields = (read_line(path) or "").split()
        if len(fields) == 3:
            found[int(path.parent.name)] = int(fields[index]) * 1e-9
    return found


def cpu_loss(before: CpuTimes | None, after: CpuTimes | None, *, with_children: bool = True) -> CpuLoss:
    """Return the CPU use of others between two readings, of all CPUs or of this process's CPUs, whichever is larger.

    Args:
        before: the first one; None where nothing could be read.
        after: the second one.
        with_children: whether children that still run work for this process, as compilers do; or are others.
    """
    if before is None or after is None:
        return CpuLoss(reason=UNREADABLE)
    pairs = [pair for pair in zip(before.accounts, after.accounts, strict=False) if pair[0].cpus == pair[1].cpus]
    gone = CpuLoss(reason="CPUs were added or removed during the measurement")
    own_s = after.own_s - before.own_s + (after.children_s - before.children_s if with_children else 0.0)
    worst = max(
        (_loss((old, new), before, after, own_s) for old, new in pairs),
        key=lambda loss: -1.0 if loss.share is None else max(loss.share, loss.waited_share),
        default=gone,
    )
    return replace(worst, preempted=after.preempted - before.preempted)


def _loss(accounts: tuple[Account, Account], before: CpuTimes, after: CpuTimes, own_s: float) -> CpuLoss:
    old, new = accounts
    window_s = after.at_s - before.at_s
    capacity_s = old.cpus * window_s
    counted_s = new.counted_s - old.counted_s
    if old.tick_s > 0.25 * capacity_s:
        return CpuLoss(reason=f"{format_seconds(window_s)} are too short to see what used the CPU")
    # In some sandboxes accounts advance by less than the time that passed.
    if counted_s < 0.5 * capacity_s - 2 * old.tick_s:
        return CpuLoss(reason="the counters in /proc/stat do not advance")
    stolen_s = new.stolen_s - old.stolen_s  # of time in which this process ran, where the kernel counts it to both
    lost_s = min(capacity_s, max(capacity_s - (new.idle_s - old.idle_s) - own_s, stolen_s, 0.0))
    threads = before.waits_s.keys() & after.waits_s.keys()
    waited_s = sum(max(0.0, after.waits_s[thread] - before.waits_s[thread]) for thread in threads)
    waited_s = min(waited_s, max(0.0, lost_s - old.tick_s))  # own threads also wait for each other
    return CpuLoss(lost_s / capacity_s, old.tick_s / capacity_s, waited_s / window_s)


def cpu_lost_share(before: CpuTimes | None, after: CpuTimes | None) -> float | None:
    """Return the share of the CPU time between two readings that went to others; None when it is unknown."""
    return cpu_loss(before, after).share
