"""What measures cases, here or elsewhere: one interface for the supervisor."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final, Literal, Protocol

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.core.model import Case, Device, Result

LEAVE_OFF: Final = "leave off"  # others go first: what has a provisional result is finished another time
IsCancelled = Callable[[], bool | Literal["leave off"]]


class Engine(Protocol):
    """A place where cases are measured.

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
                result for every case; what it raises ends the measurement (see `crash_limit`).
            cancelled: asked all the while; once true, what was measured is final, and what was not ends CANCELLED;
                once LEAVE_OFF, what was measured may end CANCELLED too, where it has a provisional result.

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
    return [batch for found in by_device.values() for batch in _batches_of_device(found)]


def _batches_of_device(cases: Sequence[Case]) -> list[tuple[Case, ...]]:
    if cases[0].options.repeat == 1:
        return [tuple(cases)]
    return [tuple(group) for _, group in groupby(cases, key=lambda case: case.group)]
