"""One instruction of machine code, and how much it computes and moves."""

import re
from dataclasses import dataclass
from functools import cached_property

from gpuexplore.kernels.geometry import WARP

WARPS_OF_A_GROUP = 4  # which execute an HGMMA together
LOADS = ("LDG", "LDS", "LDSM", "LDL", "LD", "LDGSTS", "UBLKCP")
STORES = ("STG", "STS", "STL", "ST", "STSM")
_SCALAR_FLOPS = {"FFMA": 2, "FFMA2": 4, "DFMA": 2, "HFMA2": 4, "FADD": 1, "FMUL": 1, "DADD": 1, "DMUL": 1}
_TILE = re.compile(r"\.(16)(8)(4|8|16|32)(?:\.|$)")  # HMMA.16816: 16 x 8 sums of 16 terms
_GROUP_TILE = re.compile(r"\.(\d+)x(\d+)x(\d+)(?:\.|$)")  # HGMMA.64x128x16
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
    """

    address: int
    opcode: str
    operands: str = ""
    predicate: str = ""

    @property
    def name(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.split(".", 1)[0]

    @cached_property
    def target(self) -> int | None:
        """The address a branch goes to; None of all others, and of branches to a computed address."""
        if self.name not in ("BRA", "BRX", "JMP"):
            return None
        found = _ADDRESS.findall(self.operands)
        return int(found[-1], 16) if found else None

    @property
    def is_tensor(self) -> bool:
        """Whether tensor cores execute it."""
        return self.name in ("HMMA", "HGMMA", "DMMA", "IMMA", "QMMA", "QGMMA", "IGMMA", "OMMA", "UTCHMMA")

    @property
    def flops_of_a_warp(self) -> int:
        """Floating-point operations of a whole warp, a multiply-add counted as 2."""
        if tile := _TILE.search(self.opcode) if self.name == "HMMA" else None:
            m, n, k = map(int, tile.groups())
            return 2 * m * n * k
        if tile := _GROUP_TILE.search(self.opcode) if self.name == "HGMMA" else None:
            m, n, k = map(int, tile.groups())
            return 2 * m * n * k // WARPS_OF_A_GROUP
        return _SCALAR_FLOPS.get(self.name, 0) * WARP

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
