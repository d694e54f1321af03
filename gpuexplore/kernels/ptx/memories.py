"""Accesses of warps to the memories: checked, counted, and blamed on the instruction where something is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.block import AT_ONCE, SharedMemory
from gpuexplore.kernels.ptx.device_memory import DEVICE_BASE, WINDOWS, DeviceMemory, space_of
from gpuexplore.kernels.ptx.registers import LANES, Values
from gpuexplore.kernels.ptx.report import FaultKind, Ledger
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, Warp

BANKS, BANK_BYTES = 32, 4
_PERIOD_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that take part in an access, and where each of them reads or writes, in bytes from a memory's start."""

    warp: Warp
    mask: Mask
    at: Values

    @property
    def numbers(self) -> Values:
        """Which lanes of the warp they are."""
        return EVERY_LANE if self.mask is None else np.flatnonzero(self.mask)

    @property
    def threads(self) -> Values:
        """Which threads of the block they are."""
        return self.warp.lanes_of(self.mask, self.warp.threads)

    def only(self, good: npt.NDArray[np.bool_]) -> "Lanes":
        """Return those for which a condition holds."""
        chosen = self.warp.active().copy() if self.mask is None else self.mask.copy()
        chosen[self.numbers] = good
        return replace(self, mask=chosen, at=self.at[good])


@dataclass
class Memories:
    """The memories of a launch.

    Attributes:
        device: the arrays.
        ledger: where faults and bank conflicts are noted.
        local_bytes: stack of a thread.
        watches_reads: whether reads of unwritten device memory can happen.
    """

    device: DeviceMemory
    ledger: Ledger
    local_bytes: int = 0

    def __post_init__(self) -> None:
        self._wavefronts = remembering_wavefronts()
        self.watches_reads = bool((self.device.inside & ~self.device.written).any())

    def lanes(self, warp: Warp, mask: Mask, addresses: Values, space: str) -> tuple[Lanes, str]:
        """Return the lanes of an access and the memory it goes to."""
        warp.touched = addresses
        at = warp.lanes_of(mask, addresses)
        if space == "generic":
            space = space_of(int(at[0]))
            at = at - WINDOWS[space]
        return Lanes(warp, mask, at - DEVICE_BASE if space == "global" else at), space

    def checked(self, pc: int, lanes: Lanes, space: str, size_bytes: int, *, align: int | None = None) -> Lanes:
        """Return the lanes whose access is aligned, to its size or `align`, and within an array; blame the others."""
        multiple = align or size_bytes
        bad = (lanes.at & (multiple - 1)) != 0
        if bad.any():
            lanes = self._without(pc, lanes, bad, ("misaligned", f"no multiple of {multiple} bytes"))
        inside = self._inside(lanes, space, size_bytes)
        if not inside.all():
            lanes = self._without(pc, lanes, ~inside, ("out of bounds", f"outside of {_NAMES[space]}"))
        return lanes

    def _without(self, pc: int, lanes: Lanes, bad: npt.NDArray[np.bool_], fault: tuple[FaultKind, str]) -> Lanes:
        self.ledger.blame(fault[0], pc, fault[1], lanes.threads[bad])
        return lanes.only(~bad)

    def _inside(self, lanes: Lanes, space: str, size_bytes: int) -> npt.NDArray[np.bool_]:
        if space == "global":
            return self.device.contains(lanes.at, size_bytes)
        limit = lanes.warp.block.shared.size_bytes if space == "shared" else self.local_bytes
        found: npt.NDArray[np.bool_] = (lanes.at >= 0) & (lanes.at + size_bytes <= limit)
        return found

    def load(self, pc: int, lanes: Lanes, space: str, shape: tuple[int, int]) -> Values:
        """Return what checked lanes read: (lanes, count) numbers of so many bytes; `shape`: bytes and count."""
        unit, count = shape
        if space == "global":
            if self.watches_reads and not (known := self.device.known(lanes.at, unit * count)).all():
                self.ledger.blame("uninitialised read", pc, "what was never written is read", lanes.threads[~known])
            threads, phases = lanes.warp.block.first + lanes.threads, lanes.warp.block.phases
            self.note(pc, self.device.read_by(lanes.at, unit * count, threads, phases), lanes.threads)
            return self.device.load(lanes.at, unit, count)
        if space == "shared":
            shared = lanes.warp.block.shared
            self.count_banks(pc, lanes, unit * count)
            self.note(pc, shared.read_by(shared.parts(lanes.at, unit * count), lanes.threads), lanes.threads)
            return shared.load(lanes.at, unit, count)
        columns = lanes.at[:, None] + np.arange(unit * count)
        stack = lanes.warp.stack(self.local_bytes)
        return np.ascontiguousarray(stack[lanes.numbers[:, None], columns]).view(f"u{unit}")

    def store(self, pc: int, lanes: Lanes, space: str, values: Values) -> None:
        """Write (lanes, count) numbers of checked lanes."""
        unit, count = values.dtype.itemsize, values.shape[1]
        size_bytes, block = unit * count, lanes.warp.block
        if space == "local":
            raw = np.ascontiguousarray(values).view(np.uint8)
            lanes.warp.stack(self.local_bytes)[lanes.numbers[:, None], lanes.at[:, None] + np.arange(size_bytes)] = raw
            return
        memory: DeviceMemory | SharedMemory = self.device if space == "global" else block.shared
        if isinstance(memory, DeviceMemory):
            wrong = memory.written_by(lanes.at, size_bytes, block.first + lanes.threads, block.phases)
        else:
            self.count_banks(pc, lanes, size_bytes)
            wrong = memory.written_by(memory.parts(lanes.at, size_bytes), lanes.threads)
        memory.store(lanes.at, values)
        if AT_ONCE in wrong:
            wrong[AT_ONCE] = wrong[AT_ONCE] & (memory.load(lanes.at, unit, count) != values).any(1)
        self.note(pc, wrong, lanes.threads)

    def update(self, pc: int, lanes: Lanes, where: tuple[str, int], change: Callable[[Values, int], Values]) -> Values:
        """Let checked lanes update what they access, one after the other; return what each found.

        Args:
            pc: index of the instruction in the code.
            lanes: that take part.
            where: the memory, and the bytes of each access.
            change: from what a lane finds, and its index among them, to what it leaves; of as many bytes.
        """
        space, size_bytes = where
        if space == "local":
            raise Unsupported("an atomic update of a thread's stack")
        block = lanes.warp.block
        memory: DeviceMemory | SharedMemory = self.device if space == "global" else block.shared
        if isinstance(memory, DeviceMemory):
            wrong = memory.updated_by(lanes.at, size_bytes, block.first + lanes.threads, block.phases)
        else:
            self.count_banks(pc, lanes, size_bytes)
            wrong = memory.updated_by(memory.parts(lanes.at, size_bytes), lanes.threads)
        self.note(pc, wrong, lanes.threads)
        found = np.zeros(lanes.at.size, f"u{size_bytes}")
        for lane in range(found.size):
            at = lanes.at[lane : lane + 1]
            found[lane] = memory.load(at, size_bytes, 1)[0, 0]
            memory.store(at, change(found[lane : lane + 1], lane).reshape(1, 1))
        return found

    def count_banks(self, pc: int, lanes: Lanes, size_bytes: int) -> None:
        """Count the passes of an access to shared memory."""
        if lanes.at.size:
            self.ledger.note_banks(pc, *self._wavefronts(lanes.at, size_bytes, lanes.numbers))

    def note(self, pc: int, wrong: Mapping[str, npt.NDArray[np.bool_]], threads: Values) -> None:
        """Blame an instruction for what was found wrong with some of its accesses."""
        for about, where in wrong.items():
            if where.any():
                kind: FaultKind = "uninitialised read" if "never written" in about else "race"
                self.ledger.blame(kind, pc, about, threads[where])


_NAMES = {"global": "every array", "shared": "shared memory", "local": "the thread's stack"}


# How many passes through the 32 banks of shared memory an access takes.


def wavefronts(addresses: Values, size_bytes: int, lanes: Values) -> tuple[int, int]:
    """Return the passes that an access takes, and how many it would take without conflicts.

    Lanes that together ask for 128 bytes go together: all 32 with 4 bytes or fewer each, half a warp with 8, a
    quarter with 16. Lanes that want the same word of a bank get it in one pass.

    Args:
        addresses: in bytes, of the lanes that take part.
        size_bytes: of each access.
        lanes: the numbers of those lanes.
    """
    parts, words = words_of(addresses, size_bytes, lanes)
    distinct = np.unique(np.stack([parts.ravel(), words.ravel()]), axis=1)
    together = int(parts.max(initial=0)) + 1
    hit = np.bincount(distinct[0] * BANKS + distinct[1] % BANKS, minlength=together * BANKS)
    passes = hit.reshape(-1, BANKS).max(axis=1)
    return int(passes.sum()), int((passes > 0).sum())


def words_of(addresses: Values, size_bytes: int, lanes: Values) -> tuple[Values, Values]:
    """Return for each lane and each 4-byte word it wants which lanes it goes with, by their number, and the word.

    Args:
        addresses: as of `wavefronts`.
        size_bytes: likewise.
        lanes: likewise.
    """
    together = min(LANES, _PERIOD_BYTES // max(size_bytes, BANK_BYTES))
    words = addresses[:, None] // BANK_BYTES + np.arange(max(1, size_bytes // BANK_BYTES))
    return np.broadcast_to((lanes // together)[:, None], words.shape), words


def remembering_wavefronts() -> Callable[[Values, int, Values], tuple[int, int]]:
    """Return what does as `wavefronts` and remembers patterns: all addresses 128 bytes further on change nothing."""
    known: dict[tuple[int, bytes, bytes], tuple[int, int]] = {}

    def count(addresses: Values, size_bytes: int, lanes: Values) -> tuple[int, int]:
        pattern = addresses - addresses.min() // _PERIOD_BYTES * _PERIOD_BYTES
        key = size_bytes, pattern.tobytes(), lanes.tobytes()
        if key not in known:
            known[key] = wavefronts(pattern, size_bytes, lanes)
        return known[key]

    return count
