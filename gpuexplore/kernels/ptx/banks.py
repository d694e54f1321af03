"""How many passes through the 32 banks of shared memory an access takes."""

from collections.abc import Callable

import numpy as np

from gpuexplore.kernels.ptx.registers import LANES
from gpuexplore.kernels.ptx.scalars import Values

BANKS, BANK_BYTES = 32, 4
_PERIOD_BYTES = BANKS * BANK_BYTES


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
