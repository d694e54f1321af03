"""Tensor cores: `ldmatrix` and `mma.sync`, whose matrices lie across the lanes of a warp.

Which lane holds which element: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and its
neighbours. Sums of products are exact in float64 and rounded once; the hardware keeps fewer bits.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decoder, Step, items
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.registers import LANES, Values, scalar, widened
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, Warp

# Matrices in shared memory as `wgmma` finds them: by a descriptor of 64 bits.
#
# The layouts are those of the PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format": rows of 8 chunks
# of 16 bytes are shifted by swizzling, which flips bits 4 to 6 of an address by its bits 7 to 9.


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
        chunk_stride = self.leading if self.width == 1 else CHUNK_BYTES
        return row % _CORE_ROWS * self._line_bytes + row // _CORE_ROWS * self.stride + chunk * chunk_stride

    def _across(self, rows: range) -> Addresses:
        """Return likewise bytes to the chunks of each term, along the rows."""
        term, chunk = np.arange(_TERMS)[:, None], np.arange(rows.start // _CORE_ROWS, rows.stop // _CORE_ROWS)
        chunk_stride, term_stride = (self.stride, self.leading) if self.width == 1 else (self.leading, self.stride)
        terms = term % _CORE_ROWS * self._line_bytes + term // _CORE_ROWS * term_stride
        return terms + chunk % self.width * CHUNK_BYTES + chunk // self.width * chunk_stride

    @property
    def _line_bytes(self) -> int:
        return self.width * CHUNK_BYTES


ROWS = 8  # of a matrix that ldmatrix loads, of 8 numbers of 16 bits each
_ROW_BYTES = 16
_WORD, _HALF = scalar("b32"), scalar("b16")
_OPERANDS = ("tf32", "bf16", "f16")
_KEPT_OF_TF32 = np.uint32(0xFFFFE000)
_GROUP, _WITHIN = np.divmod(EVERY_LANE, 4)
# which of the 16 x 8 sums each of 4 registers holds in each lane
_SUMS = np.array([(_GROUP + i // 2 * 8) * 8 + _WITHIN * 2 + i % 2 for i in range(4)])


def factor_indices(depth: int, per_register: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return where the factors of a product of (16, k) and (k, 8) lie, counted along registers, lanes and halves.

    Args:
        depth: terms of the product.
        per_register: numbers in a register.
    """
    a, b = np.zeros((16, depth), np.intp), np.zeros((depth, 8), np.intp)
    for chunk in range(depth // (4 * per_register)):
        for half in range(per_register):
            term = chunk * 4 * per_register + _WITHIN * per_register + half
            b[term, _GROUP] = (chunk * LANES + EVERY_LANE) * per_register + half
            for lower in range(2):
                register = chunk * 2 + lower
                a[_GROUP + 8 * lower, term] = (register * LANES + EVERY_LANE) * per_register + half
    return a, b


def _mma(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    depth, name = _form(instruction)
    left_indices, right_indices = factor_indices(depth, 1 if name == "tf32" else 2)
    target, *sources = instruction.operands
    single = scalar("f32")
    puts = [decoder.write(item, single) for item in items(target)]
    a, b, c = (
        [decoder.read(item, kind) for item in items(source)]
        for source, kind in zip(sources, (_WORD, _WORD, single), strict=True)
    )
    pc = decoder.pc

    def step(warp: Warp, mask: Mask) -> None:
        expect_all(memories, pc, warp, mask)
        left = numbers(name, [get(warp) for get in a])[left_indices]
        right = numbers(name, [get(warp) for get in b])[right_indices]
        products = (left @ right).ravel()[_SUMS]
        for put, get, product in zip(puts, c, products, strict=True):
            put(warp, mask, (product + get(warp)).astype(np.float32))

    return step


def _form(instruction: Instruction) -> tuple[int, str]:
    """Return the terms of a product and the type of the factors."""
    shape = re.search(r"\.m16n8k(\d+)\.row\.col\.f32\.(\w+)\.(\w+)\.f32$", instruction.name)
    if shape is None or shape.group(2) != shape.group(3) or shape.group(2) not in _OPERANDS:
        raise Unsupported(instruction.name)
    return int(shape.group(1)), shape.group(2)


def numbers(name: str, registers: list[Values]) -> npt.NDArray[np.float64]:
    """Return the numbers in registers, along registers, lanes and halves."""
    words = np.concatenate(registers)
    if name == "tf32":
        return (words & _KEPT_OF_TF32).view(np.float32).astype(np.float64)
    kind = scalar(name)
    return widened(kind, words.view(kind.dtype))


def expect_all(memories: Memories, pc: int, warp: Warp, mask: Mask) -> None:
    """Blame an instruction that some lanes of a warp do not execute."""
    if mask is not None:
        memories.ledger.blame("barrier", pc, "not every lane of the warp takes part", warp.threads[~mask])


def _ldmatrix(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    """Decode the load of 1, 2 or 4 matrices; lane i points to row i % 8 of matrix i // 8."""
    if "b16" not in instruction.modifiers or "m8n8" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    target, source = instruction.operands
    puts = [decoder.write(item, _WORD) for item in items(target)]
    address, pc, transposes = decoder.address(source), decoder.pc, "trans" in instruction.modifiers
    pointing = ROWS * len(puts) > EVERY_LANE
    pointing_mask: Mask = None if pointing.all() else pointing

    def step(warp: Warp, mask: Mask) -> None:
        expect_all(memories, pc, warp, mask)
        lanes, space = memories.lanes(warp, pointing_mask, address(warp), "shared")
        lanes = memories.checked(pc, lanes, space, _ROW_BYTES)
        rows = np.zeros((LANES, ROWS), np.uint16)
        if lanes.at.size:
            rows[lanes.numbers] = memories.load(pc, lanes, space, (2, ROWS))
        for i, put in enumerate(puts):
            matrix = rows[ROWS * i : ROWS * (i + 1)]
            put(warp, mask, (matrix.T.copy() if transposes else matrix).view(np.uint32).ravel())

    return step


TENSOR_CORES: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {"mma": _mma, "ldmatrix": _ldmatrix}
