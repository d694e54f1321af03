"""One instruction of machine code, and how much it computes and moves."""

import re
from dataclasses import dataclass
from functools import cached_property

from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.sass.tensor import TensorProduct, product_of

INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
LOADS = ("LDG", "LDS", "LDSM", "LDL", "LD", "LDGSTS", "UBLKCP")
STORES = ("STG", "STS", "STL", "ST", "STSM")
_ARITHMETIC = re.compile(r"([DFH])(FMA|ADD|MUL)(2?)(?:_?32I)?")  # FFMA, HADD2: of two values in each register
_ORDINARY_UNITS = {"D": "fp64", "F": "fp32", "H": "fp16_vector"}
_ZERO = re.compile(r"-?\|?U?RZ\b.*|[-+]?0(?:\.0*)?")
_ONE = re.compile(r"[-+]?1(?:\.0*)?")
_IMMEDIATE = re.compile(r"[-+]?(?:\d.*|INF|[QS]?NAN)")
_BITS = re.compile(r"\.[US]?(8|16|32|64|128|256)(?:\.|$)")
_MATRICES = re.compile(r"\.MT?88(?:\.([124]))?(?:\.|$)")  # 8 x 8 of 16 bits: 32 bits of each thread
_ADDRESS = re.compile(r"0x[0-9a-f]+")


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
    def product(self) -> TensorProduct | None:
        """What tensor cores compute; None where others execute it."""
        return product_of(self.opcode, self.descriptor)

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
        """What a load or store moves for each thread; 32 where its opcode says nothing, None of all others."""
        if self.name not in LOADS + STORES:
            return None
        if matrices := _MATRICES.search(self.opcode):
            return 32 * int(matrices.group(1) or 1)
        found = _BITS.search(self.opcode)
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
