"""Tensor cores: `ldmatrix`, `mma.sync` and `wgmma`, whose matrices lie across the lanes of a warp or in shared memory.

Which lane holds which element: PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type" and its
neighbours. Sums of products are exact in float64 and rounded once; the hardware keeps fewer bits.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decode, Decoder, Getter, Putter, Step, items
from gpuexplore.kernels.ptx.memories import Ledger, Memories
from gpuexplore.kernels.ptx.numbers import LANES, Doubles, Scalar, Values, scalar, widened
from gpuexplore.kernels.ptx.program import Instruction, Program, register_names
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, ProductInFlight, Warp

# The layouts are those of the PTX ISA, "Shared Memory Matrix Layout" and "Matrix Descriptor Format": rows of 8 chunks
# of 16 bytes are shifted by swizzling, which flips bits 4 to 6 of an address by its bits 7 to 9.


_CHUNK_BYTES = 16
_CORE_ROWS = 8  # of a core matrix, which has a chunk in each


@dataclass(frozen=True, slots=True)
class _Descriptor:
    """The location of a matrix in shared memory, in bytes.

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
    def of(cls, bits: int) -> "_Descriptor":
        """Return the location that the 64 bits of a descriptor encode.

        Raises:
            Unsupported: it has a base offset, which patterns need that begin between their multiples.
        """
        if base := bits >> 49 & 7:
            raise Unsupported(f"a matrix descriptor with the base offset {base}: 0 is known here")
        start, leading, stride = ((bits >> shift & 0x3FFF) * _CHUNK_BYTES for shift in (0, 16, 32))
        return cls(start, leading, stride, (1, 8, 4, 2)[bits >> 62 & 3])

    @property
    def pattern_bytes(self) -> int:
        """Bytes of a pattern of swizzling, at a multiple of which it begins."""
        return self._line_bytes * _CORE_ROWS

    @property
    def is_aligned(self) -> bool:
        """True if its pattern begins as a base offset of 0 requires; it may start within the rows of a pattern."""
        return (self.start >> 7) & (self.width - 1) == 0

    def chunks(self, rows: range, *, transposed: bool) -> Values:
        """Return the addresses of the chunks of some rows, which are columns of a second factor, with all their terms.

        Args:
            rows: of the matrix.
            transposed: whether a chunk holds neighbouring rows, of 16 bits each; else neighbouring terms.

        Returns:
            (rows, 2) addresses, or (terms, chunks along the rows).
        """
        logical = self.start + (self._across(rows) if transposed else self._along(rows))
        return np.asarray(logical ^ ((logical >> 7 & (self.width - 1)) * _CHUNK_BYTES))

    def _along(self, rows: range) -> Values:
        """Return bytes from the start to the two chunks of each row, before swizzling."""
        row = np.arange(rows.start, rows.stop)[:, None]
        chunk = np.arange(2)
        chunk_stride = self.leading if self.width == 1 else _CHUNK_BYTES
        return row % _CORE_ROWS * self._line_bytes + row // _CORE_ROWS * self.stride + chunk * chunk_stride

    def _across(self, rows: range) -> Values:
        """Return likewise bytes to the chunks of each term, along the rows."""
        term = np.arange(16)[:, None]
        chunk = np.arange(rows.start // _CORE_ROWS, rows.stop // _CORE_ROWS)
        chunk_stride, term_stride = (self.stride, self.leading) if self.width == 1 else (self.leading, self.stride)
        terms = term % _CORE_ROWS * self._line_bytes + term // _CORE_ROWS * term_stride
        return terms + chunk % self.width * _CHUNK_BYTES + chunk // self.width * chunk_stride

    @property
    def _line_bytes(self) -> int:
        return self.width * _CHUNK_BYTES


ROWS = 8  # of a matrix that ldmatrix loads, of 8 numbers of 16 bits each
_WORD = scalar("b32")
_SINGLE = scalar("f32")
_GROUP, _WITHIN = np.divmod(EVERY_LANE, 4)
# which of the 16 x 8 sums each of 4 registers holds in each lane
_SUMS = np.array([(_GROUP + i // 2 * 8) * 8 + _WITHIN * 2 + i % 2 for i in range(4)])


def _factor_indices(depth: int, per_register: int) -> tuple[np.typing.NDArray[np.intp], np.typing.NDArray[np.intp]]:
    """Return where the factors of a product of (16, k) and (k, 8) lie, counted along registers, lanes and halves.

    Args:
        depth: terms of the product.
        per_register: numbers in a register.
    """
    a = np.zeros((16, depth), np.intp)
    b = np.zeros((depth, 8), np.intp)
    for chunk in range(depth // (4 * per_register)):
        for half in range(per_register):
            term = chunk * 4 * per_register + _WITHIN * per_register + half
            b[term, _GROUP] = (chunk * LANES + EVERY_LANE) * per_register + half
            for lower in range(2):
                register = chunk * 2 + lower
                a[_GROUP + 8 * lower, term] = (register * LANES + EVERY_LANE) * per_register + half
    return a, b


def _mma(decoder: Decoder, instruction: Instruction) -> Step:
    # The terms of a product and the type of the factors.
    shape = re.search(r"\.m16n8k(\d+)\.row\.col\.f32\.(tf32|bf16|f16)\.\2\.f32$", instruction.name)
    if shape is None:
        raise Unsupported(instruction.name)
    depth = int(shape.group(1))
    name = shape.group(2)
    left_indices, right_indices = _factor_indices(depth, 1 if name == "tf32" else 2)
    target, *sources = instruction.operands
    puts = [decoder.write(item, _SINGLE) for item in items(target)]
    a, b, c = (
        [decoder.read(item, kind) for item in items(source)]
        for source, kind in zip(sources, (_WORD, _WORD, _SINGLE), strict=True)
    )
    memories = decoder.memories
    pc = decoder.pc

    def step(warp: Warp, mask: Mask) -> None:
        _expect_all(memories, pc, warp, mask)
        left = _numbers(name, [get(warp) for get in a])[left_indices]
        right = _numbers(name, [get(warp) for get in b])[right_indices]
        products = (left @ right).ravel()[_SUMS]
        for put, get, product in zip(puts, c, products, strict=True):
            put(warp, mask, (product + get(warp)).astype(np.float32))

    return step


def _numbers(name: str, registers: list[Values]) -> Doubles:
    """Return the numbers in registers, along registers, lanes and halves."""
    words = np.concatenate(registers)
    if name == "tf32":
        return (words & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    kind = scalar(name)
    return widened(kind, words.view(kind.dtype))


def _expect_all(memories: Memories, pc: int, warp: Warp, mask: Mask) -> None:
    """Blame an instruction that some lanes of a warp do not execute."""
    if mask is not None:
        memories.ledger.blame("barrier", pc, "not every lane of the warp takes part", warp.threads[~mask])


def _ldmatrix(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode the load of 1, 2 or 4 matrices; lane i points to row i % 8 of matrix i // 8."""
    if "b16" not in instruction.modifiers or "m8n8" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    target, source = instruction.operands
    puts = [decoder.write(item, _WORD) for item in items(target)]
    memories = decoder.memories
    pc = decoder.pc
    address = decoder.address(source)
    transposes = "trans" in instruction.modifiers
    pointing = ROWS * len(puts) > EVERY_LANE
    pointing_mask: Mask = None if pointing.all() else pointing

    def step(warp: Warp, mask: Mask) -> None:
        _expect_all(memories, pc, warp, mask)
        lanes, space = memories.lanes(warp, pointing_mask, address(warp), "shared")
        lanes = memories.checked(pc, lanes, space, 16)
        rows = np.zeros((LANES, ROWS), np.uint16)
        if lanes.at.size:
            rows[lanes.numbers] = memories.load(pc, lanes, space, (2, ROWS))
        for i, put in enumerate(puts):
            matrix = rows[ROWS * i : ROWS * (i + 1)]
            put(warp, mask, (matrix.T.copy() if transposes else matrix).view(np.uint32).ravel())

    return step


_WARPS = 4  # of a warpgroup


def _product_form(instruction: Instruction) -> tuple[int, Scalar]:
    """Return the columns of the second factor, and the type of both.

    Raises:
        Unsupported: the instruction is not known here.
    """
    form = r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.f32\.(bf16|f16|tf32)\.\3"
    found = re.fullmatch(form, instruction.name)
    if found is None:
        raise Unsupported(instruction.name)
    columns = int(found.group(1))
    kind = scalar(found.group(3))
    if columns not in range(8, 257, 8) or int(found.group(2)) != _depth(kind):
        raise Unsupported(instruction.name)
    return columns, kind


def _depth(kind: Scalar) -> int:
    """Return the terms of each sum: 32 bytes of them."""
    return 2 * _CHUNK_BYTES * 8 // kind.bits


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
        first = warp.index % _WARPS * 16  # of 64 rows
        left = None if len(self.a) > 1 else self._chunks(warp, self.a[0], range(first, first + 16), 0)
        right = self._chunks(warp, self.b, range(self.columns), 1)
        adds = bool(self.adds(warp)[0])
        read = np.concatenate([each.ravel() for each in (left, right) if each is not None])
        shared = warp.block.shared
        parts = np.unique(shared.parts(read, _CHUNK_BYTES))
        for about in shared.read_asynchronously(parts, warp.index):
            self.memories.note(self.pc, {about: EVERY_LANE >= 0}, warp.threads)
        return ProductInFlight(lambda: self._finish(warp, (left, right), adds=adds), parts, warp.products.closed)

    def _chunks(self, warp: Warp, get: Getter, rows: range, which: int) -> Values:
        """Return the addresses of a factor's chunks; where they lie outside of shared memory, of its beginning."""
        described = get(warp)
        ledger = self.memories.ledger
        if (described != described[0]).any():
            ledger.blame("barrier", self.pc, "the lanes of a warp name different matrices", warp.threads)
        matrix = _Descriptor.of(int(described[0]))
        if not matrix.is_aligned:
            about = f"a swizzled matrix begins at no multiple of {matrix.pattern_bytes} bytes"
            ledger.blame("misaligned", self.pc, about, warp.threads)
        found = matrix.chunks(rows, transposed=self.transposed[which])
        inside = found + _CHUNK_BYTES <= warp.block.shared.size_bytes
        if not inside.all():
            ledger.blame("out of bounds", self.pc, "a matrix reaches out of shared memory", warp.threads)
        return np.where(inside, found, 0)

    def _finish(self, warp: Warp, chunks: tuple[Values | None, Values], *, adds: bool) -> None:
        left, right = chunks
        a = self._fragment(warp) if left is None else self._matrix(warp, left, 0)
        registers = np.arange(self.columns // 2)[:, None]
        sum_indices = np.asarray(
            (_GROUP + registers // 2 % 2 * 8) * self.columns + registers // 4 * 8 + _WITHIN * 2 + registers % 2
        )
        product = (a @ self._matrix(warp, right, 1).T).ravel()[sum_indices]
        if adds:
            product += np.stack([get(warp) for get in self.sums])
        for put, values in zip(self.puts, product.astype(np.float32), strict=True):
            put(warp, None, values)

    def _fragment(self, warp: Warp) -> Doubles:
        per_register = 32 // self.kind.bits
        found = _numbers(self.kind.name, [get(warp) for get in self.a])
        return self.signs[0] * found[_factor_indices(_depth(self.kind), per_register)[0]]

    def _matrix(self, warp: Warp, chunks: Values, which: int) -> Doubles:
        """Return a factor's rows, of the second its columns, with their terms."""
        words = warp.block.shared.load(chunks.ravel(), 4, _CHUNK_BYTES // 4).view(np.uint32)
        found = self.signs[which] * _numbers(self.kind.name, [words.ravel()])
        rows = found.reshape(len(chunks), -1)
        return rows.T if self.transposed[which] else rows


def _wgmma(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a product, or its fence, commit and wait instructions."""
    if not decoder.program.target.endswith("a"):
        raise Unsupported(f"the target {decoder.program.target} has no wgmma: sm_90a has")
    decoders = {"fence": _fence, "commit_group": _close, "wait_group": _wait, "mma_async": _multiply}
    what = instruction.modifiers[0]
    if what not in decoders or instruction.modifiers[1:3] != ("sync", "aligned"):
        raise Unsupported(instruction.name)
    step = decoders[what](decoder, instruction)
    memories = decoder.memories
    pc = decoder.pc

    def together(warp: Warp, mask: Mask) -> None:
        _expect_all(memories, pc, warp, mask)
        step(warp, mask)

    return together


def _fence(decoder: Decoder, instruction: Instruction) -> Step:
    return lambda warp, _: warp.products.fence()


def _close(decoder: Decoder, instruction: Instruction) -> Step:
    def step(warp: Warp, mask: Mask) -> None:
        warp.products.closed += 1

    return step


def _wait(decoder: Decoder, instruction: Instruction) -> Step:
    (pending,) = instruction.operands
    assert isinstance(pending, int)
    early = decoder.early

    def step(warp: Warp, mask: Mask) -> None:
        for product in warp.products.arrived(pending):
            if not early:
                product.finish()
            warp.block.shared.release(product.parts)

    return step


def _multiply(decoder: Decoder, instruction: Instruction) -> Step:
    columns, kind = _product_form(instruction)
    memories = decoder.memories
    pc = decoder.pc
    early = decoder.early
    target, left, right, adds, *_ = instruction.operands
    sums = items(target)
    a = items(left)
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
    written = tuple(register_names(sums))
    read = frozenset(register_names(a)) if len(a) > 1 else frozenset[str]()

    def step(warp: Warp, mask: Mask) -> None:
        if warp.block.threads % (_WARPS * LANES):
            about = "the block has no whole number of warpgroups, of 128 threads each"
            memories.ledger.blame("barrier", pc, about, warp.threads)
        for about in warp.products.wrong_with(written, read):
            memories.ledger.blame("race", pc, about, warp.threads)
        product = multiplier.start(warp)
        warp.products.add(product, (written, read), pc)
        if early:
            product.finish()

    return step


def watching_registers(steps: Sequence[Step], program: Program, ledger: Ledger) -> list[Step]:
    """Return the steps of a kernel such that other instructions do not use registers of products in flight."""
    products = (instruction for instruction in program.code if instruction.name.startswith("wgmma.mma_async"))
    fragments = [operand for each in products for operand in each.operands[:2] if isinstance(operand, tuple)]
    registers = frozenset(name for fragment in fragments for name in register_names(fragment))
    watched = []
    for pc, (step, instruction) in enumerate(zip(steps, program.code, strict=True)):
        used = registers & instruction.register_names if instruction.opcode != "wgmma" else frozenset[str]()
        watched.append(_watching(step, used, ledger, pc) if used else step)
    return watched


def _watching(step: Step, names: frozenset[str], ledger: Ledger, pc: int) -> Step:
    def watched(warp: Warp, mask: Mask) -> None:
        if warp.products.use(names):
            about = "registers of a product in flight are used before wgmma.wait_group"
            ledger.blame("race", pc, about, warp.threads)
        step(warp, mask)

    return watched


def expect_same_products(ledger: Ledger, warps: Sequence[Warp]) -> None:
    """Blame the products that not all warps of a warpgroup have executed."""
    for first in range(0, len(warps), _WARPS):
        group = warps[first : first + _WARPS]
        longest = max((warp.products.issued_at for warp in group), key=len)
        for warp in group:
            if warp.products.issued_at != longest:
                about = "other warps of the warpgroup execute other products"
                ledger.blame("barrier", longest[-1], about, warp.threads)


TENSOR_CORES: dict[str, Decode] = {"mma": _mma, "ldmatrix": _ldmatrix, "wgmma": _wgmma}
