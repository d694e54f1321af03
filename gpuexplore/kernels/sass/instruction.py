"""One instruction of machine code, and how much it computes and moves."""

import re
from dataclasses import dataclass
from functools import cached_property

from gpuexplore.kernels.geometry import WARP
from gpuexplore.kernels.sass.tensor import Product, product_of

INSTRUCTION_BYTES = 16  # from compute capability 7.0 on
LOADS = ("LDG", "LDS", "LDSM", "LDL", "LD", "LDGSTS", "UBLKCP")
STORES = ("STG", "STS", "STL", "ST", "STSM")
_SCALAR_FLOPS = {"FFMA": 2, "FFMA2": 4, "DFMA": 2, "HFMA2": 4, "FADD": 1, "FMUL": 1, "DADD": 1, "DMUL": 1}
_BITS = re.compile(r"\.[US]?(8|16|32|64|128|256)(?:\.|$)")
_MATRICES = re.compile(r"\.MT?88(?:\.([124]))?(?:\.|$)")  # 8 x 8 of 16 bits: 32 bits of each thread
_ADDRESS = re.compile(r"0x[0-9a-f]+")


@dataclass(frozen=True)
class Instruction:
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
    def product(self) -> Product | None:
        """What tensor cores compute; None where others execute it."""
        return product_of(self.opcode, self.descriptor)

    @property
    def flops_of_a_warp(self) -> int:
        """Floating-point operations of a whole warp, or those of integers on tensor cores: a multiply-add is 2."""
        return self.product.flops if self.product else _SCALAR_FLOPS.get(self.name, 0) * WARP

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
