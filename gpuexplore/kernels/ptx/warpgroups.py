"""Products of a warpgroup, 128 threads: `wgmma`, which reads its factors from shared memory while the threads go on.

Each warp computes its own 16 of the 64 rows, as the fragments of the PTX ISA, "Matrix Fragments for
wgmma.mma_async.m64nNk16", lie in its lanes. Sums of products are exact in float64 and rounded once.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decoder, Getter, Putter, Step, items
from gpuexplore.kernels.ptx.memories import Memories
from gpuexplore.kernels.ptx.program import Instruction, Operand, Program, register_names
from gpuexplore.kernels.ptx.registers import Scalar, Values, scalar
from gpuexplore.kernels.ptx.report import Ledger
from gpuexplore.kernels.ptx.tensor_cores import CHUNK_BYTES, Descriptor, expect_all, factor_indices, numbers
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, ProductInFlight, Warp

WARPS = 4  # of a warpgroup
_WARP_ROWS = 16  # of a product of 64 rows
_FORM = re.compile(r"m64n(\d+)k(\d+)\.f32\.(bf16|f16|tf32)\.(\w+)")
_WORD, _SINGLE = scalar("b32"), scalar("f32")
_EVERY = EVERY_LANE >= 0
_SHORTAGE = "the block has no whole number of warpgroups, of 128 threads each"
Doubles = npt.NDArray[np.float64]


def _form(instruction: Instruction) -> tuple[int, Scalar]:
    """Return the columns of the second factor, and the type of both.

    Raises:
        Unsupported: the instruction is not known here.
    """
    found = _FORM.fullmatch(".".join(instruction.modifiers[3:]))
    if found is None:
        raise Unsupported(instruction.name)
    columns, kind = int(found.group(1)), scalar(found.group(3))
    if (columns % 8, int(found.group(2)), found.group(4)) != (0, _depth(kind), kind.name) or not 8 <= columns <= 256:
        raise Unsupported(instruction.name)
    return columns, kind


def _depth(kind: Scalar) -> int:
    """Return the terms of each sum: 32 bytes of them."""
    return 2 * CHUNK_BYTES * 8 // kind.bits


def _immediates(instruction: Instruction, kind: Scalar) -> tuple[tuple[int, int], tuple[bool, bool]]:
    """Return the signs of the factors, and which of them are transposed."""
    given = [operand for operand in instruction.operands[4:] if isinstance(operand, int)]
    a_in_registers = len(items(instruction.operands[1])) > 1
    expected = 2 if kind.name == "tf32" else 3 if a_in_registers else 4
    if len(given) != expected or not {*given[:2]} <= {1, -1} or not {*given[2:]} <= {0, 1}:
        raise Unsupported(f"{instruction.name} with the immediate operands {given}")
    a, b = ([False, False] + [bool(value) for value in given[2:]])[-2:]
    return (given[0], given[1]), (a and not a_in_registers, b)


@dataclass(frozen=True)
class _Multiplier:
    """A product as decoded: where it finds its factors, and the registers of its sums.

    Attributes:
        columns: of the second factor.
        kind: type of the factors.
        signs: of both factors.
        transposed: whether the chunks of each factor hold neighbouring rows or columns instead of terms.
    """

    columns: int
    kind: Scalar
    signs: tuple[int, int]
    transposed: tuple[bool, bool]
    pc: int
    memories: Memories
    puts: Sequence[Putter]
    sums: Sequence[Getter]
    a: Sequence[Getter]  # registers, or a descriptor
    b: Getter
    adds: Getter

    def start(self, warp: Warp) -> ProductInFlight:
        """Return a product on its way; what it reads too early, or from a wrong address, is blamed."""
        groups = warp.index % WARPS * _WARP_ROWS
        left = None if self.in_registers else self._chunks(warp, self.a[0], (groups, groups + _WARP_ROWS), 0)
        right = self._chunks(warp, self.b, (0, self.columns), 1)
        adds = bool(self.adds(warp)[0])
        read = np.concatenate([each.ravel() for each in (left, right) if each is not None])
        shared = warp.block.shared
        parts = np.unique(shared.parts(read, CHUNK_BYTES))
        for about in shared.read_asynchronously(parts, warp.index):
            self.memories.note(self.pc, {about: _EVERY}, warp.threads)
        return ProductInFlight(lambda: self._finish(warp, (left, right), adds=adds), parts, warp.products.closed)

    @property
    def in_registers(self) -> bool:
        """Whether the first factor lies in registers."""
        return len(self.a) > 1

    def _chunks(self, warp: Warp, get: Getter, rows: tuple[int, int], which: int) -> Values:
        """Return the addresses of a factor's chunks; where they lie outside of shared memory, of its beginning."""
        described, ledger = get(warp), self.memories.ledger
        if (described != described[0]).any():
            ledger.blame("barrier", self.pc, "the lanes of a warp name different matrices", warp.threads)
        matrix = Descriptor.of(int(described[0]))
        if not matrix.is_aligned:
            about = f"a swizzled matrix begins at no multiple of {matrix.pattern_bytes} bytes"
            ledger.blame("misaligned", self.pc, about, warp.threads)
        found = matrix.chunks(range(*rows), transposed=self.transposed[which])
        inside = found + CHUNK_BYTES <= warp.block.shared.size_bytes
        if not inside.all():
            ledger.blame("out of bounds", self.pc, "a matrix reaches out of shared memory", warp.threads)
        return np.where(inside, found, 0)

    def _finish(self, warp: Warp, chunks: tuple[Values | None, Values], *, adds: bool) -> None:
        left, right = chunks
        a = self._fragment(warp) if left is None else self._matrix(warp, left, 0)
        product = (a @ self._matrix(warp, right, 1).T).ravel()[_sum_indices(self.columns)]
        if adds:
            product += np.stack([get(warp) for get in self.sums])
        for put, values in zip(self.puts, product.astype(np.float32), strict=True):
            put(warp, None, values)

    def _fragment(self, warp: Warp) -> Doubles:
        per_register = 32 // self.kind.bits
        found = numbers(self.kind.name, [get(warp) for get in self.a])
        return self.signs[0] * found[factor_indices(_depth(self.kind), per_register)[0]]

    def _matrix(self, warp: Warp, chunks: Values, which: int) -> Doubles:
        """Return a factor's rows, of the second its columns, with their terms."""
        words = warp.block.shared.load(chunks.ravel(), 4, CHUNK_BYTES // 4).view(np.uint32)
        found = self.signs[which] * numbers(self.kind.name, [words.ravel()])
        rows = found.reshape(len(chunks), -1)
        return rows.T if self.transposed[which] else rows


def _sum_indices(columns: int) -> npt.NDArray[np.intp]:
    """Return which of the 16 x n sums of a warp each register holds in each lane."""
    row, column = EVERY_LANE // 4, EVERY_LANE % 4 * 2
    registers = np.arange(columns // 2)[:, None]
    return np.asarray((row + registers // 2 % 2 * 8) * columns + registers // 4 * 8 + column + registers % 2)


def _wgmma(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    """Decode a product, or what fences, closes and waits for groups of products."""
    if not decoder.program.target.endswith("a"):
        raise Unsupported(f"the target {decoder.program.target} has no wgmma: sm_90a has")
    steps: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {
        "fence": _fence,
        "commit_group": _close,
        "wait_group": _wait,
        "mma_async": _multiply,
    }
    what = instruction.modifiers[0]
    if what not in steps or instruction.modifiers[1:3] != ("sync", "aligned"):
        raise Unsupported(instruction.name)
    step, pc = steps[what](decoder, memories, instruction), decoder.pc

    def together(warp: Warp, mask: Mask) -> None:
        expect_all(memories, pc, warp, mask)
        step(warp, mask)

    return together


def _fence(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    return lambda warp, _: warp.products.fence()


def _close(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    def step(warp: Warp, mask: Mask) -> None:
        warp.products.closed += 1

    return step


def _wait(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    (pending,) = instruction.operands
    assert isinstance(pending, int)
    early = decoder.early

    def step(warp: Warp, mask: Mask) -> None:
        for product in warp.products.arrived(pending):
            if not early:
                product.finish()
            warp.block.shared.release(product.parts)

    return step


def _multiply(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    columns, kind = _form(instruction)
    pc, early = decoder.pc, decoder.early
    target, left, right, adds, *_ = instruction.operands
    sums, a = items(target), items(left)
    if len(sums) != columns // 2 or len(a) not in (1, 4):
        raise Unsupported(f"{instruction.name} with {len(sums)} registers of sums and {len(a)} of the first factor")
    multiplier = _Multiplier(
        columns,
        kind,
        *_immediates(instruction, kind),
        pc,
        memories,
        puts=[decoder.write(item, _SINGLE) for item in sums],
        sums=[decoder.read(item, _SINGLE) for item in sums],
        a=[decoder.read(item, _WORD if len(a) > 1 else scalar("u64")) for item in a],
        b=decoder.read(right, scalar("u64")),
        adds=decoder.read(adds, scalar("pred")),
    )
    written, read = _names(sums), frozenset(_names(a)) if len(a) > 1 else frozenset[str]()

    def step(warp: Warp, mask: Mask) -> None:
        if warp.block.threads % (WARPS * len(EVERY_LANE)):
            memories.ledger.blame("barrier", pc, _SHORTAGE, warp.threads)
        for about in warp.products.wrong_with(written, read):
            memories.ledger.blame("race", pc, about, warp.threads)
        product = multiplier.start(warp)
        warp.products.add(product, (written, read), pc)
        if early:
            product.finish()

    return step


def _names(operands: Sequence[Operand]) -> tuple[str, ...]:
    return tuple(name for operand in operands for name in register_names(operand))


def product_registers(program: Program) -> frozenset[str]:
    """Return the registers of all products' sums and first factors in a kernel."""
    products = (instruction for instruction in program.code if instruction.name.startswith("wgmma.mma_async"))
    return frozenset(name for each in products for operand in _fragments(each) for name in register_names(operand))


def _fragments(product: Instruction) -> Iterator[Operand]:
    return (operand for operand in product.operands[:2] if isinstance(operand, tuple))


def watching_registers(step: Step, names: frozenset[str], ledger: Ledger, pc: int) -> Step:
    """Return a step of another instruction that uses registers of products."""

    def watched(warp: Warp, mask: Mask) -> None:
        if warp.products.use(names):
            about = "registers of a product in flight are used before wgmma.wait_group"
            ledger.blame("race", pc, about, warp.threads)
        step(warp, mask)

    return watched


def expect_same_products(ledger: Ledger, warps: Sequence[Warp]) -> None:
    """Blame the products that not all warps of a warpgroup have executed."""
    for first in range(0, len(warps), WARPS):
        group = warps[first : first + WARPS]
        longest = max((warp.products.issued_at for warp in group), key=len)
        for warp in group:
            if warp.products.issued_at != longest:
                about = "other warps of the warpgroup execute other products"
                ledger.blame("barrier", longest[-1], about, warp.threads)


WARPGROUPS: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {"wgmma": _wgmma}
