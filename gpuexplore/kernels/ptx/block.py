"""A block of threads: its indices, its shared memory, and who has used each part of that since a barrier."""

from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.registers import LANES, Values

# What tensor cores read of shared memory by themselves, while the threads go on: the async proxy of the PTX ISA.
#
# They see what threads wrote only after `fence.proxy.async`: of the thread that wrote, or of one that saw it written.


Parts = npt.NDArray[np.intp]


@dataclass
class AsyncProxy:
    """Who reads each part of shared memory asynchronously, and which parts it would not see as written.

    Attributes:
        parts: of shared memory.
        busy: of each part, how many products in flight read it.
        unseen: of each part, whether it was written without a fence after it.
        writer: of each part, the thread that wrote it last.
        since: of each part, the phase between barriers it was written in.
    """

    parts: int
    phase: int = 0
    fenced: dict[int, int] = field(default_factory=dict)  # by warp, the phase before which it saw all that was written

    def __post_init__(self) -> None:
        self.busy, self.writer, self.since = (np.zeros(self.parts, np.int32) for _ in range(3))
        self.unseen = np.zeros(self.parts, np.bool_)

    def write(self, parts: Values, threads: Values) -> None:
        """Note that threads, a column, have written parts."""
        self.unseen[parts], self.writer[parts], self.since[parts] = True, threads, self.phase

    def fence(self, warp: int, threads: Values) -> None:
        """Note that threads of a warp let the proxy see what they wrote, and what they saw before the last barrier."""
        self.unseen &= ~np.isin(self.writer, threads)
        self.fenced[warp] = self.phase

    def meet(self) -> None:
        """Note that all threads have met at a barrier: a fence of one of them before it holds for all."""
        if self.fenced:
            self.unseen &= self.since >= max(self.fenced.values())
        self.phase += 1

    def unseen_by(self, warp: int, parts: Parts) -> npt.NDArray[np.bool_]:
        """Return which parts a product of a warp would not see as written."""
        return np.asarray(self.unseen[parts] & (self.since[parts] >= self.fenced.get(warp, 0)))


NO_THREAD, SEVERAL, ATOMIC = -1, -2, -3
AT_ONCE = "threads of a warp write different values to one address at once"  # of equal values any may stay
MOST_PHASES = 2**32  # of a block
_UNKNOWN = 0xFF  # NaN in every format: what was never written shows
Triple = tuple[int, int, int]
Wrong = dict[str, Values]  # what is wrong, and of which accesses


@dataclass(frozen=True, slots=True)
class Grid:
    """A launch: blocks, and threads of a block, along x, y and z; dynamic bytes of shared memory."""

    blocks: Triple
    threads: Triple
    dynamic_shared_bytes: int = 0

    def special(self, block: Triple, threads: Values) -> dict[str, Values]:
        """Return the special registers of threads of a block, by name."""
        x, y, _ = self.threads
        thread_indices = {"tid": (threads % x, threads // x % y, threads // (x * y))}
        sizes = {"ntid": self.threads, "ctaid": block, "nctaid": self.blocks}
        everywhere = {name: tuple(np.full(LANES, size) for size in three) for name, three in sizes.items()}
        found = {
            f"%{name}.{axis}": values.astype(np.uint32)
            for name, three in (thread_indices | everywhere).items()
            for axis, values in zip("xyz", three, strict=True)
        }
        lanes = threads % LANES
        return found | {
            "%dynamic_smem_size": np.full(LANES, self.dynamic_shared_bytes, np.uint32),
            "%laneid": lanes.astype(np.uint32),
            "%warpid": (threads // LANES).astype(np.uint32),
            "%lanemask_eq": (1 << lanes).astype(np.uint32),
            "%lanemask_lt": ((1 << lanes) - 1).astype(np.uint32),
        }


class SharedMemory:
    """Shared memory of a block, and who has used it since the last barrier, in parts that every access is made of.

    Attributes:
        part: bytes of such a part: the size of the smallest access of the kernel.
        written: of each part, whether it has ever been written.
        writer: of each part, the thread that wrote it since the last barrier, ATOMIC, or NO_THREAD.
        reader: likewise, or SEVERAL.
        coming: of each part, the thread whose asynchronous copy is on its way there, or NO_THREAD.
        proxy: what tensor cores read by themselves; None in kernels without `wgmma`.
    """

    def __init__(self, size_bytes: int, part: int, *, with_proxy: bool = False) -> None:
        self.size_bytes, self.part = size_bytes, part
        self.bytes = np.full(-(-(size_bytes + 1) // 16) * 16, _UNKNOWN, np.uint8)
        parts = self.bytes.size // part
        self.written = np.zeros(parts, np.bool_)
        self.writer, self.reader, self.coming = (np.full(parts, NO_THREAD, np.int32) for _ in range(3))
        self.proxy = AsyncProxy(parts) if with_proxy else None
        self._views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        self._steps = {size: np.arange(max(1, size // part)) for size in (1, 2, 4, 8, 16)}

    def meet(self) -> None:
        """Forget who read and wrote: all threads have met at a barrier."""
        self.writer.fill(NO_THREAD)
        self.reader.fill(NO_THREAD)
        if self.proxy:
            self.proxy.meet()

    def parts(self, at: Values, size_bytes: int) -> Values:
        """Return the parts that accesses touch: (lanes, parts)."""
        return at[:, None] // self.part + self._steps[size_bytes]

    def load(self, at: Values, unit: int, count: int) -> Values:
        """Return `count` neighbouring numbers of `unit` bytes at each offset: (lanes, count)."""
        return self._views[unit][at[:, None] // unit + np.arange(count)]

    def store(self, at: Values, values: Values) -> None:
        """Write (lanes, count) numbers."""
        unit, count = values.dtype.itemsize, values.shape[1]
        self._views[unit][at[:, None] // unit + np.arange(count)] = values

    def read_by(self, parts: Values, threads: Values) -> Wrong:
        """Note who reads; return what is wrong with it and which accesses it concerns."""
        me, writer, reader = threads[:, None], self.writer[parts], self.reader[parts]
        first = np.where((reader == NO_THREAD) | (reader == me), me, SEVERAL)
        self.reader[parts] = first
        self.reader[parts[self.reader[parts] != first]] = SEVERAL  # several lanes of this very access
        return _found(
            {
                "what was never written is read": ~self.written[parts],
                "what another thread wrote is read without a barrier": (writer != NO_THREAD) & (writer != me),
                "what an asynchronous copy is still writing is read": self.coming[parts] != NO_THREAD,
            }
        )

    def written_by(self, parts: Values, threads: Values) -> Wrong:
        """Note who writes; return what is wrong with it and which accesses it concerns, AT_ONCE of any values."""
        me = threads[:, None]
        wrong = self._overwritten(parts, me)
        self.writer[parts] = me
        wrong[AT_ONCE] = self.writer[parts] != me
        self.written[parts] = True
        if self.proxy:
            self.proxy.write(parts, me)
        return _found(wrong)

    def updated_by(self, parts: Values, threads: Values) -> Wrong:
        """Note who updates atomically, which others may do at once; return what is wrong with which accesses."""
        me = threads[:, None]
        writer, reader = self.writer[parts], self.reader[parts]
        wrong = {
            "what was never written is updated": ~self.written[parts],
            "what another thread wrote is updated without a barrier": (writer >= 0) & (writer != me),
            "what another thread read is updated without a barrier": (reader != NO_THREAD) & (reader != me),
            "what an asynchronous copy is still writing is updated": self.coming[parts] != NO_THREAD,
        }
        if self.proxy:
            wrong["what a product in flight still reads is updated"] = self.proxy.busy[parts] > 0
            self.proxy.write(parts, me)
        self.writer[parts] = ATOMIC
        return _found(wrong)

    def copied_by(self, parts: Values, threads: Values) -> Wrong:
        """Note who starts an asynchronous copy; return what is wrong with it and which accesses it concerns."""
        me = threads[:, None]
        wrong = self._overwritten(parts, me)
        self.coming[parts] = me
        return _found(wrong)

    def arrive(self, parts: Values, threads: Values) -> None:
        """Note that copies have arrived: from here on other threads see them after a barrier."""
        self.coming[parts] = NO_THREAD
        self.writer[parts] = threads[:, None]
        self.written[parts] = True
        if self.proxy:
            self.proxy.write(parts, threads[:, None])

    def read_asynchronously(self, parts: Values, warp: int) -> list[str]:
        """Note that a product of a warp, which starts, reads parts; return what is wrong with it."""
        assert self.proxy is not None
        self.proxy.busy[parts] += 1
        self.reader[parts] = SEVERAL
        wrong = {
            "what was never written is read": ~self.written[parts],
            "what threads wrote is read by a product without a barrier": self.writer[parts] != NO_THREAD,
            "what an asynchronous copy is still writing is read": self.coming[parts] != NO_THREAD,
            "what threads wrote is read by a product without fence.proxy.async": self.proxy.unseen_by(warp, parts),
        }
        return [about for about, where in wrong.items() if where.any()]

    def release(self, parts: Values) -> None:
        """Note that a product has read parts, by now at the latest: others write them after a barrier."""
        assert self.proxy is not None
        self.proxy.busy[parts] -= 1
        self.reader[parts] = SEVERAL

    def _overwritten(self, parts: Values, me: Values) -> Wrong:
        writer, reader = self.writer[parts], self.reader[parts]
        wrong = {
            "what another thread wrote is written without a barrier": (writer != NO_THREAD) & (writer != me),
            "what another thread read is written without a barrier": (reader != NO_THREAD) & (reader != me),
            "what an asynchronous copy is still writing is written": self.coming[parts] != NO_THREAD,
        }
        if self.proxy:
            wrong["what a product in flight still reads is written"] = self.proxy.busy[parts] > 0
        return wrong


def _found(wrong: dict[str, Values]) -> Wrong:
    return {about: np.asarray(where.any(1)) for about, where in wrong.items() if where.any()}


class Block:
    """One block.

    Attributes:
        threads: how many.
        first: the launch's number of its first thread.
        phases: the launch's numbers of the time before its first barrier, and of that between two barriers now.
    """

    def __init__(self, grid: Grid, index: int, shared: SharedMemory) -> None:
        x, y, _ = grid.blocks
        self.grid, self.at = grid, (index % x, index // x % y, index // (x * y))
        self.threads = prod(grid.threads)
        self.first, self.phases = index * self.threads, (index * MOST_PHASES, index * MOST_PHASES)
        self.shared = shared

    def pass_barrier(self) -> None:
        """Begin the time behind a barrier."""
        first, now = self.phases
        self.phases = first, now + 1

    @property
    def warps(self) -> int:
        """How many warps its threads make."""
        return -(-self.threads // LANES)

    def special_of(self, threads: Values) -> dict[str, Values]:
        """Return the special registers of some of its threads."""
        return self.grid.special(self.at, threads)
