"""Device memory and the shared memory of a block, with the threads that used each part since a barrier."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from gpuexplore.kernels.ptx.numbers import LANES, Values


@dataclass
class _AsyncProxy:
    """The asynchronous proxy: its readers of each part of shared memory, and the writes it cannot see yet.

    Tensor cores read through the async proxy of the PTX ISA, while the threads go on. They see what threads
    wrote only after `fence.proxy.async`: of the thread that wrote, or of one that saw it written.

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
        self.unseen[parts] = True
        self.writer[parts] = threads
        self.since[parts] = self.phase

    def fence(self, warp: int, threads: Values) -> None:
        """Note that threads of a warp let the proxy see what they wrote, and what they saw before the last barrier."""
        self.unseen &= ~np.isin(self.writer, threads)
        self.fenced[warp] = self.phase

    def meet(self) -> None:
        """Note that all threads have met at a barrier: a fence of one of them before it holds for all."""
        if self.fenced:
            self.unseen &= self.since >= max(self.fenced.values())
        self.phase += 1

    def unseen_by(self, warp: int, parts: Values) -> np.typing.NDArray[np.bool_]:
        """Return which parts a product of a warp would not see as written."""
        return np.asarray(self.unseen[parts] & (self.since[parts] >= self.fenced.get(warp, 0)))


_NO_THREAD = -1
_SEVERAL = -2
_ATOMIC = -3
AT_ONCE = "threads of a warp write different values to one address at once"  # with equal values any may remain
_Triple = tuple[int, int, int]
_Wrong = dict[str, Values]  # faults, each with the accesses it concerns


@dataclass(frozen=True, slots=True)
class Grid:
    """A launch: blocks, and threads of a block, along x, y and z; dynamic bytes of shared memory."""

    blocks: _Triple
    threads: _Triple
    dynamic_shared_bytes: int = 0

    def special(self, block: _Triple, threads: Values) -> dict[str, Values]:
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
    """Shared memory of a block, and the threads that used it since the last barrier, in parts of the smallest access.

    Attributes:
        part: bytes of such a part: the size of the smallest access of the kernel.
        written: of each part, whether it has ever been written.
        writer: of each part, the thread that wrote it since the last barrier, _ATOMIC, or _NO_THREAD.
        reader: likewise, or _SEVERAL.
        coming: of each part, the thread whose asynchronous copy is on its way there, or _NO_THREAD.
        proxy: what tensor cores read by themselves; None in kernels without `wgmma`.
    """

    def __init__(self, size_bytes: int, part: int, *, with_proxy: bool = False) -> None:
        self.size_bytes = size_bytes
        self.part = part
        self.bytes = np.full(-(-(size_bytes + 1) // 16) * 16, 0xFF, np.uint8)  # NaN in every format: unwritten
        parts = self.bytes.size // part
        self.written = np.zeros(parts, np.bool_)
        self.writer, self.reader, self.coming = (np.full(parts, _NO_THREAD, np.int32) for _ in range(3))
        self.proxy = _AsyncProxy(parts) if with_proxy else None
        self._views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        self._steps = {size: np.arange(max(1, size // part)) for size in (1, 2, 4, 8, 16)}

    def meet(self) -> None:
        """Clear readers and writers: all threads have met at a barrier."""
        self.writer.fill(_NO_THREAD)
        self.reader.fill(_NO_THREAD)
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
        unit = values.dtype.itemsize
        self._views[unit][at[:, None] // unit + np.arange(values.shape[1])] = values

    def read_by(self, at: Values, size_bytes: int, _block: "Block", threads: Values) -> _Wrong:
        """Note which threads of the block read; return what is wrong with it and which accesses it concerns."""
        parts = self.parts(at, size_bytes)
        me = threads[:, None]
        writer = self.writer[parts]
        reader = self.reader[parts]
        first = np.where((reader == _NO_THREAD) | (reader == me), me, _SEVERAL)
        self.reader[parts] = first
        self.reader[parts[self.reader[parts] != first]] = _SEVERAL  # several lanes of this very access
        return _found(
            {
                "memory that was never written is read": ~self.written[parts],
                "memory written by another thread is read without a barrier": (writer != _NO_THREAD) & (writer != me),
                "memory that an asynchronous copy is still writing is read": self.coming[parts] != _NO_THREAD,
            }
        )

    def written_by(self, at: Values, size_bytes: int, _block: "Block", threads: Values) -> _Wrong:
        """Note who writes, as `read_by`; return what is wrong with which accesses, AT_ONCE of any values."""
        parts = self.parts(at, size_bytes)
        me = threads[:, None]
        wrong = self._changed(parts, me, "written")
        self.writer[parts] = me
        wrong[AT_ONCE] = self.writer[parts] != me
        self.written[parts] = True
        if self.proxy:
            self.proxy.write(parts, me)
        return _found(wrong)

    def updated_by(self, at: Values, size_bytes: int, _block: "Block", threads: Values) -> _Wrong:
        """Note who updates atomically, which others may do at once; return what is wrong with which accesses."""
        parts = self.parts(at, size_bytes)
        me = threads[:, None]
        wrong = {
            "memory that was never written is updated": ~self.written[parts],
            **self._changed(parts, me, "updated", but_atomically=True),
        }
        if self.proxy:
            self.proxy.write(parts, me)
        self.writer[parts] = _ATOMIC
        return _found(wrong)

    def copied_by(self, parts: Values, threads: Values) -> _Wrong:
        """Note who starts an asynchronous copy; return what is wrong with it and which accesses it concerns."""
        me = threads[:, None]
        wrong = self._changed(parts, me, "written")
        self.coming[parts] = me
        return _found(wrong)

    def arrive(self, parts: Values, threads: Values) -> None:
        """Note that copies have arrived: from here on other threads see them after a barrier."""
        self.coming[parts] = _NO_THREAD
        self.writer[parts] = threads[:, None]
        self.written[parts] = True
        if self.proxy:
            self.proxy.write(parts, threads[:, None])

    def read_asynchronously(self, parts: Values, warp: int) -> list[str]:
        """Note that a product of a warp, which starts, reads parts; return what is wrong with it."""
        assert self.proxy is not None
        self.proxy.busy[parts] += 1
        self.reader[parts] = _SEVERAL
        wrong = {
            "memory that was never written is read": ~self.written[parts],
            "memory written by threads is read by a product without a barrier": self.writer[parts] != _NO_THREAD,
            "memory that an asynchronous copy is still writing is read": self.coming[parts] != _NO_THREAD,
            "memory written by threads is read by a product without fence.proxy.async": self.proxy.unseen_by(
                warp, parts
            ),
        }
        return [about for about, where in wrong.items() if where.any()]

    def release(self, parts: Values) -> None:
        """Note that a product has read parts, by now at the latest: others write them after a barrier."""
        assert self.proxy is not None
        self.proxy.busy[parts] -= 1
        self.reader[parts] = _SEVERAL

    def _changed(self, parts: Values, me: Values, how: str, *, but_atomically: bool = False) -> _Wrong:
        """Return what is wrong with changing parts; updates of other threads are not, where this is one."""
        writer = self.writer[parts]
        reader = self.reader[parts]
        wrong = {
            f"memory written by another thread is {how} without a barrier": (writer != _NO_THREAD)
            & (writer != me)
            & ~((writer == _ATOMIC) & but_atomically),
            f"memory read by another thread is {how} without a barrier": (reader != _NO_THREAD) & (reader != me),
            f"memory that an asynchronous copy is still writing is {how}": self.coming[parts] != _NO_THREAD,
        }
        if self.proxy:
            wrong[f"memory that a product in flight still reads is {how}"] = self.proxy.busy[parts] > 0
        return wrong


def _found(wrong: dict[str, Values]) -> _Wrong:
    return {about: np.asarray(where.any(1)) for about, where in wrong.items() if where.any()}


class Block:
    """One block.

    Attributes:
        threads: how many.
        first: the launch's number of its first thread.
        phase: the launch's number of the time between two barriers now; phases of later blocks are larger.
    """

    def __init__(self, grid: Grid, index: int, shared: SharedMemory) -> None:
        x, y, _ = grid.blocks
        self.grid = grid
        self.at = (index % x, index // x % y, index // (x * y))
        self.threads = prod(grid.threads)
        self.first = index * self.threads
        self.phase = self.first_phase = index * 2**32  # a block has fewer
        self.shared = shared

    def is_unordered(self, since: Values) -> np.typing.NDArray[np.bool_]:
        """Return whether no barrier lies between then and now: in this phase, or in another block."""
        return np.asarray((since == self.phase) | (since < self.first_phase))

    @property
    def warps(self) -> int:
        """Number of warps of the block."""
        return -(-self.threads // LANES)

    def special_of(self, threads: Values) -> dict[str, Values]:
        """Return the special registers of some of its threads."""
        return self.grid.special(self.at, threads)


DEVICE_BASE = 0x7F00_0000_0000
# where memories lie among generic addresses: device memory high up, the others in windows of their own
WINDOWS = {"global": 0, "const": 0, "param": 0, "shared": 0x1000_0000_0000, "local": 0x2000_0000_0000}
_GUARD_BYTES = 65536  # a row or a tile beyond an array is not yet another array
_ALIGNMENT = 256  # as allocations of the driver
_OFFSETS = np.arange(16)


class DeviceMemory:
    """Arrays in one buffer; outside of them every access is out of bounds.

    Attributes:
        extents: the bytes of each array, from the start of the buffer.
        inside: of each byte, whether it belongs to an array.
        written: of each byte, whether it has been written, by the host too.
        writer: of each byte, the thread of the launch that wrote it, or _NO_THREAD.
        since: of each byte, the phase between barriers it was written in; phases of later blocks are larger.
        reader: of each byte, the thread that read it last, _SEVERAL in one phase, or _NO_THREAD.
        read_since: of each byte, the phase it was read in last.
        watches_reads: whether some bytes of arrays were never written.
    """

    def __init__(self, arrays: Sequence[np.typing.NDArray[Any]], unwritten: Sequence[int]) -> None:
        self.extents = _extents([array.nbytes for array in arrays])
        size = self.extents[-1].stop if self.extents else 0
        size = -(-(size + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
        self.bytes = np.zeros(size, np.uint8)
        self.inside, self.written = (np.zeros(size, np.bool_) for _ in range(2))
        self.writer, self.reader = (np.full(size, _NO_THREAD, np.int64) for _ in range(2))
        self.since, self.read_since = (np.zeros(size, np.int64) for _ in range(2))
        self._views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        for index, (array, extent) in enumerate(zip(arrays, self.extents, strict=True)):
            self.bytes[extent] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            self.inside[extent] = True
            self.written[extent].fill(index not in unwritten)
        self.watches_reads = bool((self.inside & ~self.written).any())

    def address(self, index: int) -> int:
        """Return the address of an array."""
        start: int = self.extents[index].start
        return DEVICE_BASE + start

    def array(self, index: int, like: np.typing.NDArray[Any]) -> np.typing.NDArray[Any]:
        """Return what an array holds."""
        return self.bytes[self.extents[index]].copy().view(like.dtype).reshape(like.shape)

    def unwritten_bytes(self, index: int) -> int:
        """Return how many bytes of an array were never written."""
        return int((~self.written[self.extents[index]]).sum())

    def contains(self, at: Values, size_bytes: int) -> np.typing.NDArray[np.bool_]:
        """Return which accesses are inside of an array: their first and last byte, for a guard is longer."""
        limit = self.bytes.size - size_bytes
        safe = np.minimum(np.maximum(at, 0), limit)
        return np.asarray((safe == at) & self.inside[safe] & self.inside[safe + (size_bytes - 1)])

    def load(self, at: Values, unit: int, count: int) -> Values:
        """Return `count` neighbouring numbers of `unit` bytes at each offset: (lanes, count)."""
        return self._views[unit][at[:, None] // unit + _OFFSETS[:count]]

    def store(self, at: Values, values: Values) -> None:
        """Write (lanes, count) numbers."""
        unit = values.dtype.itemsize
        self._views[unit][at[:, None] // unit + _OFFSETS[: values.shape[1]]] = values

    def read_by(self, at: Values, size_bytes: int, block: "Block", threads: Values) -> _Wrong:
        """Note which threads of the block read; return what is wrong with it and which accesses it concerns."""
        bytes_at = at[:, None] + _OFFSETS[:size_bytes]
        me = block.first + threads[:, None]
        writer = self.writer[bytes_at]
        reader = self.reader[bytes_at]
        wrong = {"memory that was never written is read": ~self.written[bytes_at].all(1)} if self.watches_reads else {}
        raced = (writer >= 0) & (writer != me) & block.is_unordered(self.since[bytes_at])
        shared = (reader != _NO_THREAD) & (reader != me) & block.is_unordered(self.read_since[bytes_at])
        self.reader[bytes_at] = np.where(shared, _SEVERAL, me)
        self.read_since[bytes_at] = block.phase
        self.reader[bytes_at[self.reader[bytes_at] != me]] = _SEVERAL  # lanes that read it together
        return wrong | {"memory written by another thread is read without a barrier": raced.any(1)}

    def written_by(self, at: Values, size_bytes: int, block: "Block", threads: Values) -> _Wrong:
        """Note who writes, as `read_by`; return what is wrong with which accesses, AT_ONCE of any values."""
        bytes_at = at[:, None] + _OFFSETS[:size_bytes]
        me = block.first + threads[:, None]
        writer = self.writer[bytes_at]
        reader = self.reader[bytes_at]
        clash = (writer != _NO_THREAD) & (writer != me) & block.is_unordered(self.since[bytes_at])
        read = (reader != _NO_THREAD) & (reader != me) & block.is_unordered(self.read_since[bytes_at])
        self.writer[bytes_at] = me
        self.since[bytes_at] = block.phase
        self.written[bytes_at] = True
        lost = (self.writer[bytes_at] != me).any(1)
        wrong = {
            "two threads write one address of device memory": clash.any(1),
            "memory read by another thread is written without a barrier": read.any(1),
        }
        return wrong | {AT_ONCE: lost} if lost.any() else wrong

    def updated_by(self, at: Values, size_bytes: int, block: "Block", threads: Values) -> _Wrong:
        """Note who updates atomically, which others may do at once; return what is wrong with which accesses."""
        bytes_at = at[:, None] + _OFFSETS[:size_bytes]
        writer = self.writer[bytes_at]
        unknown = ~self.written[bytes_at].all(1)
        clash = (writer >= 0) & (writer != block.first + threads[:, None]) & block.is_unordered(self.since[bytes_at])
        self.writer[bytes_at] = _ATOMIC
        self.since[bytes_at] = block.phase
        return {
            "memory that was never written is updated": unknown,
            "memory that another thread writes is updated without a barrier": clash.any(1),
        }


def element_at(address: int, arrays: Sequence[np.typing.NDArray[Any]]) -> tuple[int, int] | None:
    """Return which of a launch's arrays lies at an address, and which of its elements; None where none does."""
    for index, (start, array) in enumerate(zip(addresses_of(arrays), arrays, strict=True)):
        if 0 <= address - start < array.nbytes:
            return index, (address - start) // array.itemsize
    return None


def addresses_of(arrays: Sequence[np.typing.NDArray[Any]]) -> list[int]:
    """Return where the arrays of a launch lie."""
    return [DEVICE_BASE + extent.start for extent in _extents([array.nbytes for array in arrays])]


def _extents(sizes_bytes: Sequence[int]) -> list[slice]:
    """Return where arrays lie, in bytes from the start."""
    extents = []
    at = _GUARD_BYTES
    for size_bytes in sizes_bytes:
        extents.append(slice(at, at + size_bytes))
        at = -(-(at + size_bytes + _GUARD_BYTES) // _ALIGNMENT) * _ALIGNMENT
    return extents


def space_of(address: int) -> str:
    """Return the memory that a generic address lies in."""
    spaces = (space for space in ("shared", "local") if 0 <= address - WINDOWS[space] < 2**32)
    return next(spaces, "global")
