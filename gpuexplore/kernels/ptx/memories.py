"""Accesses of warps to the memories, checked and counted, and the report of a run: faults, counts, bank conflicts."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.memory import AT_ONCE, DEVICE_BASE, WINDOWS, DeviceMemory, SharedMemory, space_of
from gpuexplore.kernels.ptx.numbers import LANES, Values
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, Warp

FaultKind = Literal["out of bounds", "misaligned", "uninitialised read", "race", "barrier"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a kernel, at its first occurrence in an instruction.

    Attributes:
        kind: which rule was broken.
        line: of the PTX; 0 where no instruction is to blame.
        text: of the instruction.
        block: index of the block along x, y, z.
        threads: the first few threads of the block that did it.
        about: what happened, a sentence.
    """

    kind: FaultKind
    line: int
    text: str
    block: tuple[int, int, int]
    threads: tuple[int, ...]
    about: str

    def __str__(self) -> str:
        who = ", ".join(map(str, self.threads))
        return f"{self.kind}: {self.about} (line {self.line}: {self.text[:80]}; block {self.block}, threads {who})"


@dataclass(frozen=True, slots=True)
class BankUse:
    """Bank conflicts of one instruction's accesses to shared memory.

    Attributes:
        accesses: times that a warp executed it.
        wavefronts: passes through the banks that took.
        fewest: passes without any conflict.
    """

    accesses: int
    wavefronts: int
    fewest: int


@dataclass(frozen=True, slots=True)
class LaunchReport:
    """The outcome of a run of a kernel.

    Attributes:
        faults: the first of each kind that each instruction committed, in the order found.
        executed: by opcode with modifiers, how often a warp executed it.
        banks: by line of the PTX, of instructions that access shared memory.
        arrays: contents afterwards, in the order of the arguments.
        unwritten: for each array, how many of its bytes have never been written.
    """

    faults: tuple[Fault, ...]
    executed: Mapping[str, int]
    banks: Mapping[int, BankUse]
    arrays: tuple[np.typing.NDArray[Any], ...]
    unwritten: tuple[int, ...]

    @property
    def warp_instructions(self) -> int:
        """Instructions that warps executed."""
        return sum(self.executed.values())


@dataclass
class Ledger:
    """The counters and faults collected for the report while the kernel runs."""

    code: Sequence[Instruction]
    counts: list[int] = field(init=False)
    faults: dict[tuple[FaultKind, int, str], Fault] = field(default_factory=dict)
    banks: dict[int, list[int]] = field(default_factory=dict)
    block: tuple[int, int, int] = (0, 0, 0)

    def __post_init__(self) -> None:
        self.counts = [0] * len(self.code)

    def blame(self, kind: FaultKind, pc: int, about: str, threads: Sequence[int] | np.typing.NDArray[Any] = ()) -> None:
        """Note a fault of the instruction at index `pc` of the code, unless it is known already."""
        if (kind, pc, about) in self.faults:
            return
        instruction = self.code[pc]
        first = tuple(map(int, np.unique(np.asarray(threads, np.int64))[:8]))
        self.faults[kind, pc, about] = Fault(kind, instruction.line, instruction.text, self.block, first, about)

    def note_banks(self, pc: int, wavefronts: int, fewest: int) -> None:
        """Add one access to shared memory."""
        seen = self.banks.setdefault(pc, [0, 0, 0])
        seen[0] += 1
        seen[1] += wavefronts
        seen[2] += fewest

    def executed(self) -> dict[str, int]:
        """Return executed warp instructions by name, the most frequent first."""
        total: Counter[str] = Counter()
        for instruction, count in zip(self.code, self.counts, strict=True):
            if count:
                total[instruction.name] += count
        return dict(total.most_common())

    def bank_use(self) -> dict[int, BankUse]:
        """Return the use of the banks by line of the PTX."""
        return {self.code[pc].line: BankUse(*seen) for pc, seen in sorted(self.banks.items())}


BANKS = 32
BANK_BYTES = 4
_PERIOD_BYTES = BANKS * BANK_BYTES
_NAMES = {"global": "every array", "shared": "shared memory", "local": "the thread's stack"}


@dataclass(frozen=True, slots=True)
class Lanes:
    """The lanes that take part in an access, and where each of them reads or writes, in bytes from a memory's start."""

    warp: Warp
    mask: Mask
    at: Values

    @property
    def numbers(self) -> Values:
        """Numbers of the lanes within the warp."""
        return EVERY_LANE if self.mask is None else np.flatnonzero(self.mask)

    @property
    def threads(self) -> Values:
        """Numbers of the threads within the block."""
        return self.warp.lanes_of(self.mask, self.warp.threads)

    def only(self, good: np.typing.NDArray[np.bool_]) -> "Lanes":
        """Return the lanes for which a condition holds."""
        chosen = self.warp.active(self.mask).copy()
        chosen[self.numbers] = good
        return replace(self, mask=chosen, at=self.at[good])


@dataclass
class Memories:
    """The memories of a launch.

    Attributes:
        device: the arrays.
        ledger: where faults and bank conflicts are noted.
        local_bytes: stack of a thread.
    """

    device: DeviceMemory
    ledger: Ledger
    local_bytes: int = 0

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
        aligned = (lanes.at & (multiple - 1)) == 0
        if not aligned.all():
            self.ledger.blame("misaligned", pc, f"no multiple of {multiple} bytes", lanes.threads[~aligned])
            lanes = lanes.only(aligned)
        inside = self._inside(lanes, space, size_bytes)
        if not inside.all():
            self.ledger.blame("out of bounds", pc, f"outside of {_NAMES[space]}", lanes.threads[~inside])
            lanes = lanes.only(inside)
        return lanes

    def _inside(self, lanes: Lanes, space: str, size_bytes: int) -> np.typing.NDArray[np.bool_]:
        if space == "global":
            return self.device.contains(lanes.at, size_bytes)
        limit = lanes.warp.block.shared.size_bytes if space == "shared" else self.local_bytes
        return (lanes.at >= 0) & (lanes.at + size_bytes <= limit)

    def load(self, pc: int, lanes: Lanes, space: str, shape: tuple[int, int]) -> Values:
        """Return what checked lanes read: (lanes, count) numbers of so many bytes; `shape`: bytes and count."""
        unit, count = shape
        size_bytes = unit * count
        if space == "local":
            stack = lanes.warp.stack(self.local_bytes)
            found = stack[lanes.numbers[:, None], lanes.at[:, None] + np.arange(size_bytes)]
            return np.ascontiguousarray(found).view(f"u{unit}")
        memory = self._counted(pc, lanes, space, size_bytes)
        self.note(pc, memory.read_by(lanes.at, size_bytes, lanes.warp.block, lanes.threads), lanes.threads)
        return memory.load(lanes.at, unit, count)

    def _counted(self, pc: int, lanes: Lanes, space: str, size_bytes: int) -> DeviceMemory | SharedMemory:
        """Return device or shared memory; count the passes of an access to the latter."""
        if space == "global":
            return self.device
        self.count_banks(pc, lanes, size_bytes)
        return lanes.warp.block.shared

    def store(self, pc: int, lanes: Lanes, space: str, values: Values) -> None:
        """Write (lanes, count) numbers of checked lanes."""
        unit = values.dtype.itemsize
        count = values.shape[1]
        size_bytes = unit * count
        if space == "local":
            raw = np.ascontiguousarray(values).view(np.uint8)
            lanes.warp.stack(self.local_bytes)[lanes.numbers[:, None], lanes.at[:, None] + np.arange(size_bytes)] = raw
            return
        memory = self._counted(pc, lanes, space, size_bytes)
        wrong = memory.written_by(lanes.at, size_bytes, lanes.warp.block, lanes.threads)
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
        memory = self._counted(pc, lanes, space, size_bytes)
        self.note(pc, memory.updated_by(lanes.at, size_bytes, lanes.warp.block, lanes.threads), lanes.threads)
        found = np.zeros(lanes.at.size, f"u{size_bytes}")
        for lane in range(found.size):
            at = lanes.at[lane : lane + 1]
            found[lane] = memory.load(at, size_bytes, 1)[0, 0]
            memory.store(at, change(found[lane : lane + 1], lane).reshape(1, 1))
        return found

    def count_banks(self, pc: int, lanes: Lanes, size_bytes: int) -> None:
        """Count the passes of an access to shared memory."""
        if lanes.at.size:
            self.ledger.note_banks(pc, *wavefronts(lanes.at, size_bytes, lanes.numbers))

    def note(self, pc: int, wrong: Mapping[str, np.typing.NDArray[np.bool_]], threads: Values) -> None:
        """Record a fault of some of an instruction's accesses."""
        for about, where in wrong.items():
            if where.any():
                kind: FaultKind = "uninitialised read" if "never written" in about else "race"
                self.ledger.blame(kind, pc, about, threads[where])


def wavefronts(addresses: Values, size_bytes: int, lanes: Values) -> tuple[int, int]:
    """Return the passes that an access takes, and how many it would take without conflicts.

    Lanes that together ask for 128 bytes go together: all 32 with 4 bytes or fewer each, half a warp with 8, a
    quarter with 16. Lanes that want the same word of a bank get it in one pass.

    Args:
        addresses: in bytes, of the lanes that take part.
        size_bytes: of each access.
        lanes: the numbers of those lanes.
    """
    pattern = (
        addresses - addresses.min(initial=2**62) // _PERIOD_BYTES * _PERIOD_BYTES
    )  # 128 bytes further on change nothing
    return _wavefronts_of(size_bytes, pattern.astype(np.int64).tobytes(), lanes.astype(np.int64).tobytes())


@lru_cache(maxsize=4096)
def _wavefronts_of(size_bytes: int, pattern: bytes, lanes: bytes) -> tuple[int, int]:
    parts, words = words_of(np.frombuffer(pattern, np.int64), size_bytes, np.frombuffer(lanes, np.int64))
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
