"""Asynchronous copies of a warp on their way: each lane closes groups of them, and waits for groups."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.registers import LANES
from gpuexplore.kernels.ptx.scalars import Values


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that some lanes have started: where to, in bytes and in parts, what, and as which group of the lane."""

    lanes: Values
    at: Values
    parts: Values
    values: Values
    groups: Values

    def of(self, chosen: npt.NDArray[np.bool_]) -> "Copy":
        """Return the copies of some of the lanes."""
        return Copy(*(each[chosen] for each in (self.lanes, self.at, self.parts, self.values, self.groups)))


@dataclass
class PendingCopies:
    """Copies on their way, and how many groups each lane has closed."""

    closed: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(LANES, np.int64))
    copies: list[Copy] = field(default_factory=list)

    def arrived(self, lanes: npt.NDArray[np.bool_], pending: int | None) -> Iterator[Copy]:
        """Take out those that lanes wait for, the oldest first.

        Args:
            lanes: that wait.
            pending: how many groups may stay on their way; None: no copy, in a group or not.
        """
        kept: list[Copy] = []
        for copy in self.copies:
            last = self.closed[copy.lanes] - (pending or 0)
            done = lanes[copy.lanes] & ((copy.groups < last) if pending is not None else True)
            if done.any():
                yield copy.of(done)
            if not done.all():
                kept.append(copy.of(~done))
        self.copies[:] = kept
