"""Asynchronous copies and products of a warp on their way: it closes groups of them, and waits for groups."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

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


def copies_arrived(
    copies: list[Copy], closed: npt.NDArray[np.int64], lanes: npt.NDArray[np.bool_], pending: int | None
) -> Iterator[Copy]:
    """Take out of copies on their way those that lanes wait for, the oldest first.

    Args:
        copies: of a warp.
        closed: how many groups each lane has closed.
        lanes: that wait.
        pending: how many groups may stay on their way; None: no copy, in a group or not.
    """
    kept: list[Copy] = []
    for copy in copies:
        last = closed[copy.lanes] - (pending or 0)
        done = lanes[copy.lanes] & ((copy.groups < last) if pending is not None else True)
        if done.any():
            yield copy.of(done)
        if not done.all():
            kept.append(copy.of(~done))
    copies[:] = kept


@dataclass(frozen=True, slots=True)
class ProductInFlight:
    """A product of a warp on its way: what puts its sums into registers, the shared memory it reads, its group."""

    finish: Callable[[], None]
    parts: Values
    group: int


@dataclass
class PendingProducts:
    """Products of a warp on their way, and the registers that belong to them.

    Attributes:
        closed: how many groups the warp has closed.
        places: of all products that it has started, in the code.
        used: registers that other instructions have used since the last `wgmma.fence`; None: there was none.
    """

    closed: int = 0
    places: list[int] = field(default_factory=list)
    used: set[str] | None = None
    _flying: list[tuple[ProductInFlight, tuple[str, ...], frozenset[str]]] = field(default_factory=list)

    def fence(self) -> None:
        """Order all uses of registers so far before the products that follow."""
        self.used = set()

    def add(self, product: ProductInFlight, registers: tuple[tuple[str, ...], frozenset[str]], place: int) -> None:
        """Take a product that starts; `registers`: of its sums, and of its first factor."""
        self._flying.append((product, *registers))
        self.places.append(place)

    def wrong_with(self, sums: tuple[str, ...], factor: frozenset[str]) -> Iterator[str]:
        """Yield what is wrong with starting a product that uses these registers."""
        if self.used is None:
            yield "a product starts and there was no wgmma.fence"
        elif not self.used.isdisjoint(factor.union(sums)):
            yield "registers of a product were used without a wgmma.fence after that"
        for _, others, read in self._flying:
            if (others != sums and not {*others}.isdisjoint(sums)) or not {*others}.isdisjoint(factor):
                yield "the sums of a product in flight are those of another shape, or a factor"
            if not read.isdisjoint(sums):
                yield "a factor of a product in flight is written by another product"

    def use(self, registers: frozenset[str]) -> bool:
        """Note that another instruction uses registers; return whether a product in flight does as well."""
        if self.used is not None:
            self.used |= registers
        return any(not registers.isdisjoint(read.union(sums)) for _, sums, read in self._flying)

    def arrived(self, pending: int) -> list[ProductInFlight]:
        """Take out those in closed groups, of which so many may stay on their way, the oldest first."""
        last = self.closed - pending
        done = [flying[0] for flying in self._flying if flying[0].group < last]
        self._flying[:] = [flying for flying in self._flying if flying[0].group >= last]
        return done
