"""Device memory: the arrays of a launch with guards between them, and who wrote which byte."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx.block import AT_ONCE, ATOMIC, NO_THREAD, SEVERAL
from gpuexplore.kernels.ptx.registers import Values

DEVICE_BASE = 0x7F00_0000_0000
SHARED_WINDOW = 0x1000_0000_0000
LOCAL_WINDOW = 0x2000_0000_0000
WINDOW_BYTES = 2**32
WINDOWS = {"global": 0, "const": 0, "param": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}

GUARD_BYTES = 65536  # a row or a tile further is still no other array
ALIGNMENT = 256  # as allocations of the driver
_OFFSETS = np.arange(16)

Phase = tuple[int, int]  # the first of a block, and the one of now


class DeviceMemory:
    """Arrays in one buffer; outside of them every access is out of bounds.

    Attributes:
        extents: the bytes of each array, from the start of the buffer.
        inside: of each byte, whether it belongs to an array.
        written: of each byte, whether it has been written, by the host too.
        writer: of each byte, the thread of the launch that wrote it, or NO_THREAD.
        since: of each byte, the phase between barriers it was written in; phases of later blocks are larger.
        reader: of each byte, the thread that read it last, SEVERAL in one phase, or NO_THREAD.
        read_since: of each byte, the phase it was read in last.
    """

    def __init__(self, arrays: Sequence[npt.NDArray[Any]], unwritten: Sequence[int]) -> None:
        self.extents = _extents([array.nbytes for array in arrays])
        size = self.extents[-1].stop if self.extents else 0
        size = -(-(size + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
        self.bytes = np.zeros(size, np.uint8)
        self.inside, self.written = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        self.writer, self.since = np.full(size, NO_THREAD, np.int64), np.zeros(size, np.int64)
        self.reader, self.read_since = np.full(size, NO_THREAD, np.int64), np.zeros(size, np.int64)
        self._views = {size: self.bytes.view(f"u{size}") for size in (1, 2, 4, 8)}
        for index, (array, extent) in enumerate(zip(arrays, self.extents, strict=True)):
            self.bytes[extent] = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
            self.inside[extent] = True
            self.written[extent].fill(index not in unwritten)

    def address(self, index: int) -> int:
        """Return the address of an array."""
        start: int = self.extents[index].start
        return DEVICE_BASE + start

    def array(self, index: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what an array holds."""
        return self.bytes[self.extents[index]].copy().view(like.dtype).reshape(like.shape)

    def unwritten_bytes(self, index: int) -> int:
        """Return how many bytes of an array were never written."""
        return int((~self.written[self.extents[index]]).sum())

    def contains(self, at: Values, size_bytes: int) -> npt.NDArray[np.bool_]:
        """Return which accesses are inside of an array: their first and last byte, for a guard is longer."""
        limit = self.bytes.size - size_bytes
        safe = np.minimum(np.maximum(at, 0), limit)
        return np.asarray((safe == at) & self.inside[safe] & self.inside[safe + (size_bytes - 1)])

    def known(self, at: Values, size_bytes: int) -> npt.NDArray[np.bool_]:
        """Return which accesses read only what has been written."""
        return np.asarray(self.written[at[:, None] + _OFFSETS[:size_bytes]].all(1))

    def load(self, at: Values, unit: int, count: int) -> Values:
        """Return `count` neighbouring numbers of `unit` bytes at each offset: (lanes, count)."""
        return self._views[unit][at[:, None] // unit + _OFFSETS[:count]]

    def store(self, at: Values, values: Values) -> None:
        """Write (lanes, count) numbers."""
        unit, count = values.dtype.itemsize, values.shape[1]
        self._views[unit][at[:, None] // unit + _OFFSETS[:count]] = values

    def read_by(self, at: Values, size_bytes: int, threads: Values, phase: Phase) -> dict[str, Values]:
        """Note who reads; return what is wrong with which accesses.

        Args:
            at: bytes from the start.
            size_bytes: of each access.
            threads: of the launch.
            phase: between barriers.
        """
        bytes_at, me = at[:, None] + _OFFSETS[:size_bytes], threads[:, None]
        writer, reader = self.writer[bytes_at], self.reader[bytes_at]
        written = (writer >= 0) & (writer != me) & _is_unordered(self.since[bytes_at], phase)
        shared = (reader != NO_THREAD) & (reader != me) & _is_unordered(self.read_since[bytes_at], phase)
        self.reader[bytes_at], self.read_since[bytes_at] = np.where(shared, SEVERAL, me), phase[1]
        self.reader[bytes_at[self.reader[bytes_at] != me]] = SEVERAL  # lanes that read it together
        return {"what another thread wrote is read without a barrier": written.any(1)}

    def written_by(self, at: Values, size_bytes: int, threads: Values, phase: Phase) -> dict[str, Values]:
        """Note who writes, arguments as for `read_by`; return which accesses are wrong and how, AT_ONCE of any."""
        bytes_at, me = at[:, None] + _OFFSETS[:size_bytes], threads[:, None]
        writer, reader = self.writer[bytes_at], self.reader[bytes_at]
        clash = (writer != NO_THREAD) & (writer != me) & _is_unordered(self.since[bytes_at], phase)
        read = (reader != NO_THREAD) & (reader != me) & _is_unordered(self.read_since[bytes_at], phase)
        self.writer[bytes_at], self.since[bytes_at] = me, phase[1]
        self.written[bytes_at] = True
        lost = (self.writer[bytes_at] != me).any(1)
        wrong = {
            "two threads write one address of device memory": clash.any(1),
            "what another thread read is written without a barrier": read.any(1),
        }
        return wrong | {AT_ONCE: lost} if lost.any() else wrong

    def updated_by(self, at: Values, size_bytes: int, threads: Values, phase: Phase) -> dict[str, Values]:
        """Note who updates atomically, arguments as for `read_by`; return what is wrong with which accesses."""
        bytes_at = at[:, None] + _OFFSETS[:size_bytes]
        writer, unknown = self.writer[bytes_at], ~self.written[bytes_at].all(1)
        clash = (writer >= 0) & (writer != threads[:, None]) & _is_unordered(self.since[bytes_at], phase)
        self.writer[bytes_at], self.since[bytes_at] = ATOMIC, phase[1]
        return {
            "what was never written is updated": unknown,
            "what another thread writes is updated without a barrier": clash.any(1),
        }


def _is_unordered(since: Values, phase: Phase) -> npt.NDArray[np.bool_]:
    """Return whether no barrier lies between then and now: in this phase, or in another block."""
    return np.asarray((since == phase[1]) | (since < phase[0]))


def element_at(address: int, arrays: Sequence[npt.NDArray[Any]]) -> tuple[int, int] | None:
    """Return which of a launch's arrays lies at an address, and which of its elements; None where none does."""
    for index, (start, array) in enumerate(zip(addresses_of(arrays), arrays, strict=True)):
        if 0 <= address - start < array.nbytes:
            return index, (address - start) // array.itemsize
    return None


def addresses_of(arrays: Sequence[npt.NDArray[Any]]) -> list[int]:
    """Return where the arrays of a launch lie."""
    return [DEVICE_BASE + extent.start for extent in _extents([array.nbytes for array in arrays])]


def _extents(sizes_bytes: Sequence[int]) -> list[slice]:
    """Return where arrays lie, in bytes from the start."""
    extents, at = [], GUARD_BYTES
    for size_bytes in sizes_bytes:
        extents.append(slice(at, at + size_bytes))
        at = -(-(at + size_bytes + GUARD_BYTES) // ALIGNMENT) * ALIGNMENT
    return extents


# Where memories lie among generic addresses: device memory high up, the others in windows of their own.


def space_of(address: int) -> str:
    """Return the memory that a generic address lies in."""
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        return "shared"
    return "local" if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES else "global"
