"""One instruction of machine code, and how much it computes and moves."""

import re
from dataclasses import dataclass
from functools import cached_property

from gpuexplore.kernels.geometry import WARP

INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
LOADS = ("LDG", "LDS", "LDSM", "LDL", "LD", "LDGSTS", "UBLKCP")
STORES = ("STG", "STS", "STL", "ST", "STSM")
_ARITHMETIC = re.compile(r"([DFH])(FMA|ADD|MUL)(2?)(?:_?32I)?")  # FFMA, HADD2: of two values in each register
_ORDINARY_UNITS = {"D": "fp64", "F": "fp32", "H": "fp16_vector"}
_ZERO = re.compile(r"-?\|?U?RZ\b.*|[-+]?0(?:\.0*)?")
_ONE = re.compile(r"[-+]?1(?:\.0*)?")
_IMMEDIATE = re.compile(r"[-+]?(?:\d.*|INF|[QS]?NAN)")
_MATRICES = re.compile(r"\.MT?88(?:\.([124]))?(?:\.|$)")  # 8 x 8 of 16 bits: 32 bits of each thread
_ADDRESS = re.compile(r"0x[0-9a-f]+")

SPARSE = ":sparse"  # behind a unit: two of four values are zeros that are left out
_NAME = re.compile(r"(UTC)?([BDHIOQ])(G?)MMA")
_TILE = re.compile(r"\.(8|16)(8)(\d+)(?:\.|$)|\.(\d+)x(\d+)x(\d+)(?:\.|$)")
_UNITS = {"B": "binary_tensor", "D": "fp64_tensor", "I": "int8_tensor_tops", "O": "fp4_tensor", "Q": "fp8_tensor"}
_FACTOR_BITS = {"B": 1, "D": 64, "H": 16, "I": 8, "O": 4, "Q": 8}
_LONGEST = {"H": 16, "I": 32, "O": 64, "Q": 32}  # terms of a tcgen05.mma: 32 bytes of each row
_FORMAT = 7  # lowest of three bits of a descriptor: 2 is tf32 where a factor may have 16 bits


# A product of tensor cores: its tile, its unit and its operands, as the opcode of one instruction says.
#
# Opcodes are those that nvdisasm prints of what ptxas makes of `mma.sync`, `wgmma` and `tcgen05.mma` for compute
# capability 7.0 to 12.1: HMMA.16816.F32.BF16 is 16 x 8 sums of 16 terms, HGMMA.64x128x16 is of four warps together. The
# tile of a `tcgen05.mma` (UTCHMMA) is in a descriptor, which is a constant of the code or known at launch only:
# https://docs.nvidia.com/cuda/parallel-thread-execution/#tcgen05-instruction-descriptor


@dataclass(frozen=True, slots=True)
class _TensorProduct:
    """The computation of one tensor-core instruction.

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


def _product_of(opcode: str, descriptor: int | None = None) -> _TensorProduct | None:
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
        return _TensorProduct(0, _unit(letter, modifiers))
    m, n, k = (int(length) for length in tile.groups() if length)
    is_sparse = "SP" in modifiers
    unit = _unit(letter, modifiers) + (SPARSE if is_sparse else "")
    flops = 2 * m * n * k
    if group:
        return _TensorProduct(flops // 4, unit)  # four warps execute a wgmma together
    if (m, n, k) == (8, 8, 4) and letter == "H":
        # Volta's: each pair of a warp's four quads has a tile of its own; a step does half of the rows, or a quarter
        return _TensorProduct(flops * (2 if modifiers[1] == "F16" else 1), unit)
    bits = 32 if "TF32" in modifiers else 4 if unit.startswith("int4") else _FACTOR_BITS[letter]
    sums = 64 if letter == "D" else 16 if letter in "HQ" and "F16" in modifiers else 32
    parts = (m * k * bits // (2 if is_sparse else 1), k * n * bits, m * n * sums)
    return _TensorProduct(flops, unit, tuple(max(1, part // (32 * 32)) for part in parts))  # type: ignore[arg-type]


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


def _of_tensor_memory(letter: str, modifiers: list[str], descriptor: int | None) -> _TensorProduct:
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
        m = 128  # the largest sums on one multiprocessor
        n = 256
    elif "2CTA" in modifiers:
        m //= 2
    return _TensorProduct(2 * m * n * k, unit + (SPARSE if is_sparse else ""), is_open=is_open)


@dataclass(frozen=True)
class SassInstruction:
    """One instruction, as nvdisasm writes it.

    Attributes:
        address: bytes from the start of the kernel.
        opcode: with its modifiers, e.g. `LDG.E.128`.
        operands: destinations first, e.g. `R4,R2,R3,R4`.
        predicate: under which it acts, e.g. `@!P0`; empty: always.
        descriptor: of a product of tensor memory, e.g. UTCHMMA; None of all others, and where only a launch knows it.
    """

    address: int
    opcode: str
    operands: str = ""
    predicate: str = ""
    descriptor: int | None = None

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.split(".", 1)[0]

    @cached_property
    def target(self) -> int | None:
        """The address a branch goes to; None of all others, and of branches to a computed address.

        None also of those that repeat an instruction for other threads of the warp (`.ANY`): they end no loop of the
        kernel.
        """
        if self.name not in ("BRA", "BRX", "JMP") or self.opcode.endswith(".ANY"):
            return None
        found = _ADDRESS.findall(self.operands)
        return int(found[-1], 16) if found else None

    @cached_property
    def product(self) -> _TensorProduct | None:
        """The tensor-core product; None for instructions of other units."""
        return _product_of(self.opcode, self.descriptor)

    @cached_property
    def flops_of_a_warp(self) -> int:
        """Floating-point operations of a whole warp, or those of integers on tensor cores: a multiply-add is 2.

        What ptxas writes as arithmetic to move a value or to load a constant is none: `HFMA2.MMA R5, -RZ, RZ, 0, 1`.
        """
        if self.product:
            return self.product.flops
        found = _ARITHMETIC.fullmatch(self.name)
        return _operations(found.group(2), self._terms) * _lanes(found) if found else 0

    @property
    def unit(self) -> str | None:
        """The column of the accelerators' rates whose unit computes this, as of `TensorProduct`; None without FLOPs."""
        if not self.flops_of_a_warp:
            return None
        if self.product:
            return self.product.unit
        return "bf16_vector" if "BF16" in self.opcode else _ORDINARY_UNITS[self.name[0]]

    @property
    def capacity_of_a_warp(self) -> int:
        """The FLOPs that its unit does at its peak in the time this takes it: an addition takes that of a multiply-add.

        https://docs.nvidia.com/cuda/cuda-c-programming-guide/#arithmetic-instructions: the same results a clock.
        """
        found = _ARITHMETIC.fullmatch(self.name)
        return 2 * _lanes(found) if found and self.flops_of_a_warp else self.flops_of_a_warp

    @property
    def _terms(self) -> list[str]:
        """The sources; the two halves of an immediate are one."""
        terms: list[str] = []
        for each in map(str.strip, self.operands.split(",")[1:]):
            if self.name.endswith("2") and terms and _IMMEDIATE.fullmatch(terms[-1]) and _IMMEDIATE.fullmatch(each):
                terms[-1] = each if each == terms[-1] else f"{terms[-1]} {each}"
            else:
                terms.append(each)
        return terms

    @property
    def bits(self) -> int | None:
        """Bits that a load or store moves per thread; 32 where its opcode states none, None for other instructions."""
        if self.name not in LOADS + STORES:
            return None
        if matrices := _MATRICES.search(self.opcode):
            return 32 * int(matrices.group(1) or 1)
        found = re.search(r"\.[US]?(8|16|32|64|128|256)(?:\.|$)", self.opcode)
        return int(found.group(1)) if found else 32

    def __str__(self) -> str:
        return f"/*{self.address:04x}*/ {self.predicate:>5} {self.opcode} {self.operands.replace(',', ', ')}".rstrip()


def _lanes(found: re.Match[str]) -> int:
    return 2 * WARP if found.group(3) else WARP


def _operations(kind: str, terms: list[str]) -> int:
    """Return the FLOPs of one result: neither a product with 0 or 1 nor a sum with 0 is one."""
    is_zero = [bool(_ZERO.fullmatch(term)) for term in terms]
    is_one = [bool(_ONE.fullmatch(term)) for term in terms]
    if kind == "ADD":
        return not any(is_zero)
    if any(is_zero[:2]):
        return 0
    adds = kind == "FMA" and not any(is_zero[2:])
    return adds + (not any(is_one[:2]))
