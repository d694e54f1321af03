"""Matrices in shared memory as `wgmma` finds them: by a descriptor of 64 bits.

The layouts are those of the PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format": rows of 8 chunks
of 16 bytes are shifted by swizzling, which flips bits 4 to 6 of an address by its bits 7 to 9.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.errors import Unsupported

CHUNK_BYTES = 16
_CORE_ROWS = 8  # of a core matrix, which has a chunk in each
_TERMS = 16  # of 16 bits
_WIDTHS = {0: 1, 3: 2, 2: 4, 1: 8}  # chunks that a pattern of swizzling spans, by the two highest bits
_PERIOD_SHIFT = 7  # 128 bytes
Addresses = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """Where a matrix lies in shared memory, in bytes.

    Attributes:
        start: of its first chunk.
        leading: between the two chunks of a row of 8, without swizzling; with it between patterns along rows or
            columns, where those are contiguous in memory.
        stride: between groups of 8 rows, of 8 terms where rows or columns are contiguous.
        width: chunks that the pattern of swizzling spans; 1: none.
    """

    start: int
    leading: int
    stride: int
    width: int

    @classmethod
    def of(cls, bits: int) -> "Descriptor":
        """Return what the 64 bits of a descriptor say.

        Raises:
            Unsupported: it has a base offset, which patterns need that begin between their multiples.
        """
        if base := bits >> 49 & 7:
            raise Unsupported(f"a matrix descriptor with the base offset {base}: 0 is known here")
        start, leading, stride = ((bits >> shift & 0x3FFF) * CHUNK_BYTES for shift in (0, 16, 32))
        return cls(start, leading, stride, _WIDTHS[bits >> 62 & 3])

    @property
    def pattern_bytes(self) -> int:
        """Bytes of a pattern of swizzling, at a multiple of which it begins."""
        return self._line_bytes * _CORE_ROWS

    @property
    def is_aligned(self) -> bool:
        """Whether its pattern begins where a base offset of 0 says; a start within the rows of a pattern is allowed."""
        return (self.start >> _PERIOD_SHIFT) & (self.width - 1) == 0

    def chunks(self, rows: range, *, transposed: bool) -> Addresses:
        """Return the addresses of the chunks of some rows, which are columns of a second factor, with all their terms.

        Args:
            rows: of the matrix.
            transposed: whether a chunk holds neighbouring rows, of 16 bits each; else neighbouring terms.

        Returns:
            (rows, 2) addresses, or (terms, chunks along the rows).
        """
        logical = self.start + (self._across(rows) if transposed else self._along(rows))
        return np.asarray(logical ^ ((logical >> _PERIOD_SHIFT & (self.width - 1)) * CHUNK_BYTES))

    def _along(self, rows: range) -> Addresses:
        """Return bytes from the start to the two chunks of each row, before swizzling."""
        row, chunk = np.arange(rows.start, rows.stop)[:, None], np.arange(2)
        beside = self.leading if self.width == 1 else CHUNK_BYTES
        return row % _CORE_ROWS * self._line_bytes + row // _CORE_ROWS * self.stride + chunk * beside

    def _across(self, rows: range) -> Addresses:
        """Return likewise bytes to the chunks of each term, along the rows."""
        term, chunk = np.arange(_TERMS)[:, None], np.arange(rows.start // _CORE_ROWS, rows.stop // _CORE_ROWS)
        beside, down = (self.stride, self.leading) if self.width == 1 else (self.leading, self.stride)
        terms = term % _CORE_ROWS * self._line_bytes + term // _CORE_ROWS * down
        return terms + chunk % self.width * CHUNK_BYTES + chunk // self.width * beside

    @property
    def _line_bytes(self) -> int:
        return self.width * CHUNK_BYTES
