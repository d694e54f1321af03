"""The tile of a matrix product that stays in a CPU's vector registers, chosen by the features Numba compiles for.

A multiply-add takes 4 cycles and up to two start in each, so at least 8 sums must be in flight; the more
of them there are, the fewer loads each one costs. 32 registers hold 8 rows of 3 vectors, 16 hold 6 rows of 2,
with room for the factors.
"""

from dataclasses import dataclass
from functools import cache
from platform import machine

import numpy as np

ELEMENTS = {"float64": ("double", "f64", 8), "float32": ("float", "f32", 4), "uint32": ("float", "f32", 4)}
PAIRS = np.dtype(np.uint32)  # two bf16 of neighbouring terms: what one dot-product instruction takes for a sum


@dataclass(frozen=True, slots=True)
class Tile:
    """Sums of a product that stay in registers.

    Attributes:
        rows: rows of the tile.
        vectors: vector registers in each row.
        lanes: sums in a register.
        element: LLVM type of a sum.
        instruction: LLVM function that multiplies and adds.
        terms: terms that one packed operand holds.
    """

    rows: int
    vectors: int
    lanes: int
    element: str
    instruction: str
    terms: int = 1

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes


@cache
def features() -> frozenset[str]:
    """Return LLVM's names of the features Numba compiles for."""
    from numba.core.registry import cpu_target

    listed = cpu_target.target_context.codegen().magic_tuple()[2]
    return frozenset(word[1:] for word in listed.split(",") if word.startswith("+"))


def packed_dtype(stored: np.dtype, having: frozenset[str] | None = None) -> np.dtype:
    """Return what an array of `stored` elements is packed as: itself, pairs of bf16, or fp32.

    The integers name the 16-bit formats, see `gpuexplore.kernels.formats.numba_cpu`.
    """
    if stored.kind == "f":
        return stored
    dots = _dot_product(features() if having is None else having)
    return PAIRS if stored.kind == "u" and dots else np.dtype(np.float32)


def tile_for(packed: np.dtype, having: frozenset[str] | None = None) -> Tile:
    """Return the tile for operands packed as `packed`."""
    found = features() if having is None else having
    element, suffix, size_bytes = ELEMENTS[packed.name]
    lanes = _register_bytes(found) // size_bytes
    rows, vectors = (8, 3) if "avx512f" in found or _is_arm(found) else (6, 2)
    if packed == PAIRS:
        return Tile(rows, vectors, lanes, element, _dot_product(found) or "", terms=2)
    # fmuladd is one instruction where the host has it, else a multiply and an add: never a library call.
    return Tile(rows, vectors, lanes, element, f"llvm.fmuladd.v{lanes}{suffix}")


def _register_bytes(having: frozenset[str]) -> int:
    return 64 if "avx512f" in having else 32 if "avx" in having else 16


def _dot_product(having: frozenset[str]) -> str | None:
    if "avx512bf16" in having:
        return "llvm.x86.avx512bf16.dpbf16ps.512"
    return "llvm.aarch64.neon.bfdot.v4f32.v8bf16" if _is_arm(having) and "bf16" in having else None


def _is_arm(having: frozenset[str]) -> bool:
    return "neon" in having or (not having and machine() in ("aarch64", "arm64"))
