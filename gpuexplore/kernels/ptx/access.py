"""Loads, stores, asynchronous copies and atomic updates."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.arithmetic import flushed
from gpuexplore.kernels.ptx.decoder import Decode, Decoder, Step, items
from gpuexplore.kernels.ptx.memories import Lanes, Memories
from gpuexplore.kernels.ptx.memory import DEVICE_BASE
from gpuexplore.kernels.ptx.numbers import LANES, Scalar, Values, narrowed, scalar, widened
from gpuexplore.kernels.ptx.program import Address, Instruction, Program
from gpuexplore.kernels.ptx.warp import Copy, Mask, Warp, copies_arrived

_ACCESSES = ("ld", "st", "atom", "red")


def _shared_bytes(instruction: Instruction) -> int | None:
    """Return how many bytes of shared memory an instruction accesses for each lane; None for all others."""
    is_elsewhere = instruction.opcode in _ACCESSES and space_named(instruction) not in ("shared", "generic")
    return None if is_elsewhere else lane_bytes(instruction)


def smallest_access(program: Program) -> int:
    """Return the bytes of the smallest access to shared memory in a kernel; 4 where there is none."""
    found = (_shared_bytes(instruction) for instruction in program.code)
    return min((size for size in found if size), default=4)


def lane_bytes(instruction: Instruction) -> int | None:
    """Return how many bytes of any memory an instruction accesses for each lane; None where it accesses none."""
    if instruction.opcode in ("ldmatrix", "wgmma"):
        return 16
    if instruction.opcode == "cp":
        return _copied_bytes(instruction) if len(instruction.operands) > 2 else None
    if instruction.opcode not in _ACCESSES:
        return None
    count = max(len(items(operand)) for operand in instruction.operands)
    return _bytes(instruction, 32 if instruction.kind.endswith("x2") else scalar(instruction.kind).bits, count)


def _bytes(instruction: Instruction, bits: int, count: int) -> int:
    """Return the bytes of `count` numbers."""
    if (size_bytes := count * bits // 8) > 16:
        raise Unsupported(f"{instruction.name}: {size_bytes} bytes at a time")
    return size_bytes


def _copied_bytes(instruction: Instruction) -> int:
    size = instruction.operands[2]
    if not isinstance(size, int):
        raise Unsupported("a copy of a size that is not in the text")
    return size


def space_named(instruction: Instruction) -> str:
    """Return the memory that an instruction names, or `generic`."""
    found = (modifier.split("::")[0] for modifier in instruction.modifiers)
    return next((name for name in found if name in ("global", "shared", "local", "param", "const")), "generic")


def _load(decoder: Decoder, instruction: Instruction) -> Step:
    kind = scalar(instruction.kind)
    space = space_named(instruction)
    target, source = instruction.operands
    if space == "param":
        return _parameter(decoder, instruction)
    memories = decoder.memories
    pc = decoder.pc
    puts = [decoder.write(item, kind) for item in items(target)]
    address = decoder.address(source)
    shape = (kind.bits // 8, len(puts))
    size_bytes = _bytes(instruction, kind.bits, len(puts))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if not lanes.at.size:
            return
        found = memories.load(pc, lanes, where, shape).view(kind.dtype)
        values = _spread(found, lanes)
        for i, put in enumerate(puts):
            put(warp, lanes.mask, values[:, i])

    return step


def _spread(found: Values, lanes: Lanes) -> Values:
    """Return rows for all 32 lanes, zeros where a lane took no part."""
    if lanes.mask is None:
        return found
    values = np.zeros((LANES, *found.shape[1:]), found.dtype)
    values[lanes.mask] = found
    return values


def _parameter(decoder: Decoder, instruction: Instruction) -> Step:
    kind = scalar(instruction.kind)
    source = instruction.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, str) or source.offset:
        raise Unsupported(f"{instruction.text}: a part of a parameter")
    value = decoder.parameters[source.base] % 2**kind.bits
    values = np.full(LANES, value, f"u{kind.bits // 8}").view(kind.dtype)
    put = decoder.write(instruction.operands[0], kind)
    return lambda warp, mask: put(warp, mask, values)


def _store(decoder: Decoder, instruction: Instruction) -> Step:
    memories = decoder.memories
    pc = decoder.pc
    bits = scalar(instruction.kind).bits
    space = space_named(instruction)
    target, source = instruction.operands
    gets = [decoder.read(item, scalar(f"u{bits}")) for item in items(source)]
    address = decoder.address(target)
    size_bytes = _bytes(instruction, bits, len(gets))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if lanes.at.size:
            values = np.stack([get(warp) for get in gets], 1)
            memories.store(pc, lanes, where, warp.lanes_of(lanes.mask, values))

    return step


def _copy(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `cp.async`, its commit and its wait instructions."""
    modifiers = instruction.modifiers
    if "commit_group" in modifiers:
        return _close
    if "wait_group" in modifiers:
        (pending,) = instruction.operands
        assert isinstance(pending, int)
        return _waiting(decoder, pending)
    if "wait_all" in modifiers:
        return _waiting(decoder, None)
    if modifiers[0] != "async" or "bulk" in modifiers:
        raise Unsupported(instruction.name)
    return _start(decoder, instruction)


def _close(warp: Warp, mask: Mask) -> None:
    warp.copy_groups[warp.active(mask)] += 1


def _waiting(decoder: Decoder, pending: int | None) -> Step:
    early = decoder.early

    def step(warp: Warp, mask: Mask) -> None:
        shared = warp.block.shared
        for copy in copies_arrived(warp.copies, warp.copy_groups, warp.active(mask), pending):
            if not early:
                shared.store(copy.at, copy.values)
            shared.arrive(copy.parts, warp.threads[copy.lanes])

    return step


def _start(decoder: Decoder, instruction: Instruction) -> Step:
    memories = decoder.memories
    pc = decoder.pc
    early = decoder.early
    size_bytes = _copied_bytes(instruction)
    target, source, _, *shorter = instruction.operands
    into = decoder.address(target)
    out_of = decoder.address(source)
    length = decoder.read(shorter[0] if shorter else size_bytes, scalar("u32"))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, _ = memories.lanes(warp, mask, into(warp), "shared")
        lanes = memories.checked(pc, lanes, "shared", size_bytes)
        if not lanes.at.size:
            return
        sources = out_of(warp)
        lengths = np.minimum(length(warp), size_bytes)
        warp.fetched = (sources, lengths)
        wanted = (warp.lanes_of(lanes.mask, sources), warp.lanes_of(lanes.mask, lengths), size_bytes)
        values = _fetched(memories, pc, lanes, wanted)
        shared = warp.block.shared
        threads = lanes.threads
        parts = shared.parts(lanes.at, size_bytes)
        memories.count_banks(pc, lanes, size_bytes)
        memories.note(pc, shared.copied_by(parts, threads), threads)
        if early:
            shared.store(lanes.at, values)
        warp.copies.append(Copy(lanes.numbers, lanes.at, parts, values, warp.copy_groups[lanes.numbers]))

    return step


def _fetched(memories: Memories, pc: int, lanes: Lanes, wanted: tuple[Values, Values, int]) -> Values:
    """Return the copied words: the bytes each lane requests, then zeros."""
    sources, lengths, size_bytes = wanted
    values = np.zeros((lanes.at.size, size_bytes), np.uint8)
    for length in map(int, np.unique(lengths[lengths > 0])):
        asking = lengths == length
        part = replace(lanes.only(asking), at=sources[asking] - DEVICE_BASE)
        part = memories.checked(pc, part, "global", length, align=size_bytes)
        rows = np.searchsorted(lanes.numbers, part.numbers)
        values[rows, :length] = memories.load(pc, part, "global", (1, length))
    return values.view(np.uint32)


_KINDS = {  # of updates: PTX ISA, "Parallel Synchronization and Communication Instructions: atom"
    "add": "u32 s32 u64 f16 f16x2 bf16 bf16x2 f32 f64",
    "min": "u32 s32 u64 s64",
    "max": "u32 s32 u64 s64",
    "and": "b32 b64",
    "or": "b32 b64",
    "xor": "b32 b64",
    "exch": "b32 b64",
    "cas": "b16 b32 b64",
    "inc": "u32",
    "dec": "u32",
}
_UPDATES: dict[str, Callable[..., Values]] = {
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda _, new: new,
    "cas": lambda old, expected, new: np.asarray(np.where(old == expected, new, old)),
    "inc": lambda old, last: np.where(old >= last, np.zeros_like(old), old + old.dtype.type(1)),
    "dec": lambda old, last: np.where((old == 0) | (old > last), last, old - old.dtype.type(1)),
}


def _add(kind: Scalar, *, flushes: bool) -> Callable[[Values, Values], Values]:
    """Return the sum, rounded once to nearest; of fp32 in device memory the hardware makes small numbers zeros."""
    if not kind.is_float or kind.name == "f64":
        return np.add
    if flushes:
        return lambda a, b: flushed(flushed(a) + flushed(b))
    return lambda a, b: narrowed(kind, widened(kind, a) + widened(kind, b))


def _atomic(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `atom` or `red`: lane by lane in the order of their numbers, one of the possible orders."""
    name = next((modifier for modifier in instruction.modifiers if modifier in _KINDS), "")
    returns = instruction.opcode == "atom"
    if instruction.kind not in _KINDS.get(name, "").split() or (not returns and name in ("exch", "cas")):
        raise Unsupported(instruction.name)
    memories = decoder.memories
    pc = decoder.pc
    number = scalar(instruction.kind.removesuffix("x2"))
    whole = scalar("b32") if instruction.kind.endswith("x2") else number
    target, location, *given = instruction.operands if returns else ("_", *instruction.operands)
    put = decoder.write(target, whole)
    address = decoder.address(location)
    gets = [decoder.read(operand, whole) for operand in given]
    space = space_named(instruction)
    size_bytes = whole.bits // 8

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if not lanes.at.size:
            return
        update = _UPDATES.get(name) or _add(number, flushes=where == "global" and number.name == "f32")
        columns = [np.ascontiguousarray(warp.lanes_of(lanes.mask, get(warp))) for get in gets]

        def change(old: Values, lane: int) -> Values:
            arguments = [column[lane : lane + 1].view(number.dtype) for column in columns]
            return np.asarray(update(old.view(number.dtype), *arguments), number.dtype).view(f"u{size_bytes}")

        before = memories.update(pc, lanes, (where, size_bytes), change).view(whole.dtype)
        put(warp, lanes.mask, _spread(before, lanes))

    return step


ACCESS: dict[str, Decode] = {"ld": _load, "st": _store, "cp": _copy, "atom": _atomic, "red": _atomic}
