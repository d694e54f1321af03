"""A product of tensor cores: its tile, its unit and its operands, as the opcode of one instruction says.

Opcodes are those that nvdisasm prints of what ptxas makes of `mma.sync`, `wgmma` and `tcgen05.mma` for compute
capability 7.0 to 12.1: HMMA.16816.F32.BF16 is 16 x 8 sums of 16 terms, HGMMA.64x128x16 is of four warps together. The
tile of a `tcgen05.mma` (UTCHMMA) is in a descriptor, which is a constant of the code or known at launch only:
https://docs.nvidia.com/cuda/parallel-thread-execution/#tcgen05-instruction-descriptor
"""

import re
from dataclasses import dataclass

SPARSE = ":sparse"  # behind a unit: two of four values are zeros that are left out
WARPS_OF_A_GROUP = 4  # which execute a wgmma together
LARGEST_TILE = (128, 256)  # sums of a tcgen05.mma on one multiprocessor
_NAME = re.compile(r"(UTC)?([BDHIOQ])(G?)MMA")
_TILE = re.compile(r"\.(8|16)(8)(\d+)(?:\.|$)|\.(\d+)x(\d+)x(\d+)(?:\.|$)")
_UNITS = {"B": "binary_tensor", "D": "fp64_tensor", "I": "int8_tensor_tops", "O": "fp4_tensor", "Q": "fp8_tensor"}
_BITS = {"B": 1, "D": 64, "H": 16, "I": 8, "O": 4, "Q": 8}
_LONGEST = {"H": 16, "I": 32, "O": 64, "Q": 32}  # terms of a tcgen05.mma: 32 bytes of each row
_FORMAT = 7  # lowest of three bits of a descriptor: 2 is tf32 where a factor may have 16 bits
_QUADS = 4  # of a warp's threads, each pair with a tile of its own in an HMMA.884


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """What one instruction computes.

    Attributes:
        flops: a multiply-add counted as 2, the zeros that sparsity leaves out among them; a warp's part of a wgmma, and
            a multiprocessor's part of a tcgen05.mma of two.
        unit: a column of the accelerators' rates, or of none there: `int4_tensor`, `binary_tensor`.
        registers: of a thread for each factor and for the sums; 0 where they are elsewhere, or not waited for.
        is_open: whether the tile is known at launch only, so that the largest is counted.
    """

    flops: int
    unit: str
    registers: tuple[int, int, int] = (0, 0, 0)
    is_open: bool = False


def product_of(opcode: str, descriptor: int | None = None) -> TensorProduct | None:
    """Return what an instruction computes on tensor cores; None where it is another.

    Args:
        descriptor: of a tcgen05.mma; None: known at launch only.
    """
    name, *modifiers = opcode.split(".")
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    memory, letter, group = found.groups()
    if memory:
        return _of_tensor_memory(letter, modifiers, descriptor)
    tile = _TILE.search(opcode)
    if tile is None:
        return TensorProduct(0, _unit(letter, modifiers))
    m, n, k = (int(length) for length in tile.groups() if length)
    is_sparse = "SP" in modifiers
    unit = _unit(letter, modifiers) + (SPARSE if is_sparse else "")
    flops = 2 * m * n * k
    if group:
        return TensorProduct(flops // WARPS_OF_A_GROUP, unit)
    if (m, n, k) == (8, 8, 4) and letter == "H":  # Volta's: a quarter of the rows, or half of them, in each step
        return TensorProduct(flops * _QUADS // (2 if modifiers[1] == "F16" else 4), unit)
    bits = 32 if "TF32" in modifiers else 4 if unit.startswith("int4") else _BITS[letter]
    sums = 64 if letter == "D" else 16 if letter in "HQ" and "F16" in modifiers else 32
    parts = (m * k * bits // (2 if is_sparse else 1), k * n * bits, m * n * sums)
    return TensorProduct(flops, unit, tuple(max(1, part // (32 * 32)) for part in parts))  # type: ignore[arg-type]


def as_tf32(descriptor: int | None) -> int:
    """Return a descriptor whose factors are tf32: PTX says so where the machine code's own is not known."""
    return (descriptor or 0) & ~(7 << _FORMAT) | 2 << _FORMAT


def _unit(letter: str, modifiers: list[str]) -> str:
    if letter == "H":
        wide = next((dtype for dtype in ("TF32", "BF16") if dtype in modifiers), None)
        return f"{wide.lower()}_tensor" if wide else "fp16_tensor" + ("_fp16acc" if "F16" in modifiers else "")
    if letter == "Q" and ("SF" in modifiers or "F16" in modifiers):
        return "fp8_tensor_fp16acc_or_mx"
    if letter == "I" and {"S4", "U4"} & set(modifiers) and not {"S8", "U8"} & set(modifiers):
        return "int4_tensor"
    return _UNITS[letter]


def _of_tensor_memory(letter: str, modifiers: list[str], descriptor: int | None) -> TensorProduct:
    """Return what a tcgen05.mma computes: format of the first factor in bits 7 to 9, 2 of 16 and 32 bits are tf32."""
    bits = descriptor or 0
    formats = ("fp16_tensor", "bf16_tensor", "tf32_tensor")
    unit = formats[min(bits >> _FORMAT & 7, 2)] if letter == "H" else _UNITS[letter]
    is_sparse = bool(bits >> 2 & 1)
    k = _LONGEST[letter] // (2 if unit == "tf32_tensor" else 1) * (2 if is_sparse else 1)
    if letter == "O" and bits >> 31 & 1:
        k = 96
    m = (bits >> 24 & 31) << 4
    n = (bits >> 17 & 63) << 3
    is_open = not (m and n)
    if is_open:
        m, n = LARGEST_TILE
    elif "2CTA" in modifiers:
        m //= 2
    return TensorProduct(2 * m * n * k, unit + (SPARSE if is_sparse else ""), is_open=is_open)
