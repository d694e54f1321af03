"""What measures a group of cases, here or elsewhere: one interface for the supervisor."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gpuexplore.activity import Activity, ActivityReport
from gpuexplore.model import Case, Device, Result


class Engine(Protocol):
    """A place where groups are measured.

    Attributes:
        side_by_side: whether devices share no host, so that each can be measured on at the same time; otherwise one
            group is measured at a time.
    """

    side_by_side: bool

    def warm(self, device: Device) -> Device:
        """Load what measuring on `device` needs; return it with the ceilings measured there.

        Raises:
            GpuExploreError: the device cannot be used; the text says why.
        """
        ...

    def measure(
        self, cases: Sequence[Case], on_event: Callable[[Case | Result], None], cancelled: Callable[[], bool]
    ) -> None:
        """Measure cases of one group.

        Args:
            on_event: gets a case when work on it starts, and exactly one result for every case; what it raises ends
                the measurement (see `crash_limit`).
            cancelled: asked all the while; once true, what has no result ends CANCELLED.

        Raises:
            GpuExploreError: the engine itself is broken; a failing case only gets a failing result.
        """
        ...

    def perform(
        self, activity: Activity, on_observation: Callable[[ActivityReport], None], cancelled: Callable[[], bool]
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
