"""A warp: 32 lanes in lockstep while they are at the same instruction, else those furthest behind go first."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpuexplore.kernels.ptx.memory import Block
from gpuexplore.kernels.ptx.numbers import LANES, RegisterFile, Values


class Copy(NamedTuple):
    """A copy that some lanes have started: where to, in bytes and in parts, what, and as which group of the lane."""

    lanes: Values
    at: Values
    parts: Values
    values: Values
    groups: Values

    def of(self, chosen: np.typing.NDArray[np.bool_]) -> "Copy":
        """Return the copies of some of the lanes."""
        return Copy(*(each[chosen] for each in self))


def copies_arrived(
    copies: list[Copy], closed: np.typing.NDArray[np.int64], lanes: np.typing.NDArray[np.bool_], pending: int | None
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


class ProductInFlight(NamedTuple):
    """A product of a warp on its way: what puts its sums into registers, the shared memory it reads, its group."""

    finish: Callable[[], None]
    parts: Values
    group: int


@dataclass
class _PendingProducts:
    """Products of a warp on their way, and the registers that belong to them.

    Attributes:
        closed: how many groups the warp has closed.
        issued_at: index in the code of each product that it has started.
        used: registers that other instructions have used since the last `wgmma.fence`; None: there was none.
    """

    closed: int = 0
    issued_at: list[int] = field(default_factory=list)
    used: set[str] | None = None
    _flying: list[tuple[ProductInFlight, tuple[str, ...], frozenset[str]]] = field(default_factory=list)

    def fence(self) -> None:
        """Order all uses of registers so far before the products that follow."""
        self.used = set()

    def add(self, product: ProductInFlight, registers: tuple[tuple[str, ...], frozenset[str]], pc: int) -> None:
        """Take a product that starts; `registers`: of its sums, and of its first factor."""
        self._flying.append((product, *registers))
        self.issued_at.append(pc)

    def wrong_with(self, sums: tuple[str, ...], factor: frozenset[str]) -> Iterator[str]:
        """Yield what is wrong with starting a product that uses these registers."""
        if self.used is None:
            yield "a product starts without a wgmma.fence before it"
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


EVERY_LANE = np.arange(LANES)
Mask = np.typing.NDArray[np.bool_] | None  # None: all 32 lanes
_NOWHERE = 2**62


class Warp:
    """The state of 32 threads.

    Attributes:
        slots: the registers, as `RegisterFile` lays them out.
        block: the block it belongs to.
        threads: the index of each lane's thread within the block.
        pc: index of the instruction that the active lanes execute next.
        mask: the active lanes.
        waiting: whether it has arrived at a barrier.
        ended: whether all of its lanes have.
        copies: that are on their way.
        copy_groups: how many groups of copies each lane has closed.
        products: that are on their way.
        touched: addresses of the last access to memory, for an observer.
        fetched: where the last asynchronous copy reads, and how many bytes, likewise.
    """

    def __init__(self, block: Block, index: int, registers: RegisterFile) -> None:
        self.block = block
        self.index = index
        self.slots = registers.slots()
        self.threads = index * LANES + EVERY_LANE
        self.special = block.special_of(self.threads)
        self.copies: list[Copy] = []
        self.copy_groups = np.zeros(LANES, np.int64)
        self.products = _PendingProducts()
        self.pc = 0
        self.rejoin = _NOWHERE
        self.waiting = self.ended = False
        self.touched: Values | None = None
        self.fetched: tuple[Values, Values] | None = None
        self._others: dict[int, np.typing.NDArray[np.bool_]] = {}  # by the instruction they are at
        self._gathered: dict[int, np.typing.NDArray[np.bool_]] = {}  # that wait for others there
        self._stack: Values | None = None
        self.alive = self.threads < block.threads
        self.mask: Mask = None
        self._activate(self.alive.copy())

    def active(self, mask: Mask = None) -> np.typing.NDArray[np.bool_]:
        """Return the lanes in `mask`; None: the active ones."""
        chosen = self.mask if mask is None else mask
        return np.ones(LANES, np.bool_) if chosen is None else chosen

    def lanes_of(self, mask: Mask, values: Values) -> Values:
        """Return the values of some lanes."""
        return values if mask is None else values[mask]

    def jump(self, target: int, taken: Mask) -> None:
        """Send the lanes in `taken`, which are active, to another instruction; `pc` is the next already."""
        rest = self.active() & ~taken if taken is not None else None
        if rest is None or not rest.any():
            self.pc = target
        else:
            assert taken is not None
            self._park(target, taken)
            self._activate(rest)
        self.meet()

    def leave(self, mask: Mask) -> None:
        """End the lanes in `mask`."""
        gone = self.active(mask)
        self.alive &= ~gone
        rest = self.active() & ~gone
        if rest.any():
            self._activate(rest)
        elif self._others or self._gathered:
            self._resume()
        else:
            self.ended = True

    def gather(self) -> bool:
        """Let the active lanes wait for the others before an instruction of all; return whether they may execute it.

        The compiler may have put lanes that are less far behind the instruction. Lanes that wait at different
        instructions go on without each other.
        """
        if not self._others and not self._gathered:
            return True
        here = self.active()
        self._gathered[self.pc] = self._gathered[self.pc] | here if self.pc in self._gathered else here
        everybody_waits = not self._others
        self._resume()
        return everybody_waits

    def stack(self, size_bytes: int) -> Values:
        """Return the local memory of its lanes: (32, bytes)."""
        if self._stack is None:
            self._stack = np.zeros((LANES, size_bytes), np.uint8)
        return self._stack

    def meet(self) -> None:
        """Resume the lanes furthest behind, together with all lanes at the same instruction."""
        if self.pc >= self.rejoin:
            self._park(self.pc, self.active())
            self._resume()

    def _park(self, pc: int, lanes: np.typing.NDArray[np.bool_]) -> None:
        self._others[pc] = self._others[pc] | lanes if pc in self._others else lanes
        self.rejoin = min(self._others)

    def _resume(self) -> None:
        if not self._others:
            self._others = self._gathered
            self._gathered = {}
        self.pc = min(self._others)
        self._activate(self._others.pop(self.pc))
        self.rejoin = min(self._others, default=_NOWHERE)

    def _activate(self, lanes: np.typing.NDArray[np.bool_]) -> None:
        self.mask = None if lanes.all() else lanes
