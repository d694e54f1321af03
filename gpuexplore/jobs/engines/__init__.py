"""The interface of what measures cases, here or elsewhere, and the limits of a worker.

`local.py` is the engine of this machine: one warm process a device, one device at a time. `worker_process.py` starts
such a process, follows the journal of its task, and ends it where it hangs, fails or takes too much memory. A feature
may declare another engine.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final, Literal, Protocol

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Case, Device, Result
from gpuexplore.core.units import read_bytes, read_seconds
from gpuexplore.measure.check.guard import MAX_BUDGET_MULTIPLE

PREEMPT: Final = "leave off"  # other runs go first: what has a provisional result is finished another time
IsCancelled = Callable[[], bool | Literal["leave off"]]


class Engine(Protocol):
    """An engine: measures cases on devices.

    Attributes:
        side_by_side: whether devices share no host, so that each can be measured on at the same time; otherwise one
            device is measured on at a time.
    """

    side_by_side: bool

    def warm(self, device: Device) -> Device:
        """Load what measuring on `device` needs; return it with the ceilings measured there.

        Raises:
            GpuExploreError: the device cannot be used; the text says why.
        """
        ...

    def measure(self, cases: Sequence[Case], on_event: Callable[[Case | Result], None], cancelled: IsCancelled) -> None:
        """Measure cases of one device.

        Args:
            on_event: gets a case when work on it starts, provisional results as they come, and exactly one final
                result for every case; what it raises ends the measurement.
            cancelled: asked all the while; once true, what was measured is final, and what was not ends CANCELLED;
                once PREEMPT, what was measured may end CANCELLED too, where it has a provisional result.

        Raises:
            GpuExploreError: the engine itself is broken; a failing case only gets a failing result.
        """
        ...

    def perform(
        self, activity: Activity, on_observation: Callable[[ActivityReport], None], cancelled: IsCancelled
    ) -> None:
        """Do what no sweep of an operation is, until it ends or is cancelled.

        Args:
            on_observation: gets what it reports.
            cancelled: asked all the while; once true, it ends soon.

        Raises:
            GpuExploreError: it failed; the text says why.
        """
        ...

    def close(self) -> None:
        """End every process this engine started."""
        ...


def batches_of(cases: Iterable[Case]) -> list[tuple[Case, ...]]:
    """Return `cases` as an engine takes them: all of a device at once, so that a first pass meets every one of them.

    Where fresh processes are asked for, group by group: a case has no result before the last process has ended.
    """
    by_device: dict[str, list[Case]] = {}
    for case in cases:
        by_device.setdefault(case.device, []).append(case)
    batches: list[tuple[Case, ...]] = []
    for found in by_device.values():
        if found[0].options.repeat == 1:
            batches.append(tuple(found))
        else:
            batches += (tuple(group) for _, group in groupby(found, key=lambda case: case.group))
    return batches


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Limits of a worker, in seconds.

    Attributes:
        start_s: until its process takes up a task, and then until it takes up a case.
        build_s: to build a case and to call it once.
        per_budget: for the calls of a case, as multiple of its sampling budget.
        round_s: for a round of samples, whatever it is expected to take,
        per_round: and for each second that it is expected to take.
        grace_s: after a cancellation, until the process is killed.
        memory_bytes: that a worker may use; None: a share of what is free when it begins, less with code of users.
    """

    start_s: float = 180.0
    build_s: float = 60.0
    per_budget: float = MAX_BUDGET_MULTIPLE
    round_s: float = 5.0
    per_round: float = 10.0
    grace_s: float = 3.0
    memory_bytes: int | None = None

    def of_case(self, case: Case, expected_s: float | None) -> float:
        """Return the seconds that `case` may be at work before another one is taken up."""
        if expected_s is not None:
            return self.round_s + self.per_round * expected_s
        return self.build_s + self.per_budget * case.options.budget_s


def limits_typed(memory: str, time: str) -> WorkerLimits:
    """Return the limits of a worker as they were typed, e.g. ``4GB`` and ``10s``; empty: the default.

    Args:
        memory: of its process.
        time: until a case is built and was called once.

    Raises:
        InvalidInput: one of them is no size, or no time.
    """
    most, build_s = read_bytes(memory), read_seconds(time)
    if memory and not most:
        raise InvalidInput.of("memory limit", memory, "sizes like 500MB, 4GB or 8GiB")
    if time and not build_s:
        raise InvalidInput.of("time limit", time, "times like 500ms, 10s or 90s")
    limits = WorkerLimits(memory_bytes=most)
    return replace(limits, build_s=build_s) if build_s else limits
