"""The cost of one access of a warp: 32-byte sectors of device memory, or passes through the banks of shared memory."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.kernels.ptx import BANK_BYTES, BANKS, Access, TraceStep, wavefronts, words_of
from gpuexplore.measure.check.interpreted import RunArray

SECTOR_BYTES = 32  # of device memory and its caches: less is never moved
ROW_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True, slots=True)
class SectorRequest:
    """The sectors that a warp's access to device memory touches.

    Attributes:
        sectors: how many, each of SECTOR_BYTES.
        useful_bytes: that the lanes asked for; what several ask for counts once.
        fewest_sectors: that would hold as many bytes.
    """

    sectors: int
    useful_bytes: int
    fewest_sectors: int

    @property
    def moved_bytes(self) -> int:
        """Bytes of all sectors."""
        return self.sectors * SECTOR_BYTES

    @property
    def useful_share(self) -> float | None:
        """The useful fraction of what is moved, 0 to 1; None where nothing is."""
        return self.useful_bytes / self.moved_bytes if self.sectors else None


@dataclass(frozen=True, slots=True)
class Word:
    """A 4-byte word of shared memory that lanes want at once.

    Attributes:
        group: of the lanes that go together: all, or halves or quarters of the warp for wider accesses.
        bank: of the 32.
        word: its number, from the start of shared memory.
        lanes: who wants it.
        wavefront: the pass, from 1, that it goes with.
        turn: likewise among the words of its bank that the group wants: 2 and more have to wait.
    """

    group: int
    bank: int
    word: int
    lanes: tuple[int, ...]
    wavefront: int
    turn: int


def request_of(access: Access) -> SectorRequest:
    """Return the sectors of an access to device memory."""
    touched = np.unique(access.addresses[:, None] + np.arange(access.size_bytes))
    return SectorRequest(np.unique(touched // SECTOR_BYTES).size, touched.size, -(-touched.size // SECTOR_BYTES))


def passes_of(access: Access) -> tuple[int, int]:
    """Return the passes through the banks that an access to shared memory takes, and those without a conflict."""
    return wavefronts(access.addresses, access.size_bytes, access.lanes)


def wanted_words(access: Access) -> tuple[Word, ...]:
    """Return the words of shared memory that an access wants: those of a bank take turns, the lowest first."""
    together, wanted = words_of(access.addresses, access.size_bytes, access.lanes)
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, lane in enumerate(access.lanes):
        for group, word in zip(together[row], wanted[row], strict=True):
            lanes[int(group), int(word)].append(int(lane))
    return tuple(_in_turns(lanes))


def collisions(words: Iterable[Word]) -> list[tuple[int, tuple[int, ...]]]:
    """Return each bank of which lanes that go together want different words, and those lanes."""
    found: dict[tuple[int, int], list[Word]] = defaultdict(list)
    for word in words:
        found[word.group, word.bank].append(word)
    return [
        (bank, tuple(sorted({lane for word in words for lane in word.lanes})))
        for (_, bank), words in sorted(found.items())
        if len(words) > 1
    ]


def _in_turns(lanes: Mapping[tuple[int, int], Sequence[int]]) -> list[Word]:
    """Return the words with their wavefronts; `lanes`: by the group of lanes that go together, and the word."""
    found = []
    before = 0
    group_now = None
    turn: dict[int, int] = {}
    for (group, word), who in sorted(lanes.items()):
        if group != group_now:
            before = before + max(turn.values(), default=0)
            turn = {}
            group_now = group
        bank = word % BANKS
        turn[bank] = turn.get(bank, 0) + 1
        found.append(Word(group, bank, word, tuple(dict.fromkeys(who)), before + turn[bank], turn[bank]))
    return found


def elements_of(access: Access, array: RunArray) -> dict[int, tuple[int, ...]]:
    """Return the elements of an array that an access touches, and the lanes that touch each; empty for another's."""
    found: dict[int, list[int]] = defaultdict(list)
    for lane, address in zip(access.lanes, access.addresses, strict=True):
        start = int(address) - array.address
        if 0 <= start < array.size_bytes:
            for at in range(start, start + access.size_bytes, array.item_bytes):
                found[at // array.item_bytes].append(int(lane))
    return {element: tuple(lanes) for element, lanes in sorted(found.items())}


def touched(steps: Iterable[TraceStep], array: RunArray) -> npt.NDArray[np.bool_]:
    """Return of each element of an array whether any of the steps touches it."""
    found = np.zeros(array.size_bytes // array.item_bytes, np.bool_)
    for step in steps:
        for access in step.accesses:
            inside = array.holds(access.addresses)
            if access.memory == "global" and inside.any():
                places = np.arange(0, access.size_bytes, array.item_bytes)
                found[((access.addresses[inside, None] - array.address) + places).ravel() // array.item_bytes] = True
    return found


def sector_elements(access: Access, array: RunArray) -> list[tuple[int, int]]:
    """Return the first and the last element of an array within each sector that an access touches."""
    inside = {element * array.item_bytes for element in elements_of(access, array)}
    sectors = sorted({(array.address + at) // SECTOR_BYTES for at in inside})
    each = SECTOR_BYTES // array.item_bytes
    firsts = [(sector * SECTOR_BYTES - array.address) // array.item_bytes for sector in sectors]
    last = array.size_bytes // array.item_bytes - 1
    return [(max(0, first), min(last, first + each - 1)) for first in firsts]


def unpadded_wavefronts(access: Access) -> tuple[int, int, int] | None:
    """Return how far apart in bytes the rows of an access lie, the whole multiple of 128 below, and its wavefronts.

    None where they do not lie in rows that are longer than such a multiple, or begin elsewhere in each row (swizzled).
    """
    offsets = access.addresses - access.addresses.min()
    positive = np.unique(offsets[offsets >= ROW_BYTES])
    if not positive.size:
        return None
    pitch = int(positive[0])
    shorter = pitch // ROW_BYTES * ROW_BYTES
    rows, within = np.divmod(offsets, pitch)
    begins = [within[rows == row].min() for row in np.unique(rows)]
    if shorter == pitch or any(begins) or int(within.max()) + access.size_bytes > shorter:
        return None
    taken, _ = wavefronts(rows * shorter + within, access.size_bytes, access.lanes)
    return pitch, shorter, taken
