"""Loads, stores and asynchronous copies."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decoder, Step, items
from gpuexplore.kernels.ptx.device_memory import DEVICE_BASE
from gpuexplore.kernels.ptx.memories import Lanes, Memories
from gpuexplore.kernels.ptx.program import Address, Instruction
from gpuexplore.kernels.ptx.registers import LANES, Values, scalar
from gpuexplore.kernels.ptx.warp import Copy, Mask, Warp, copies_arrived

ACCESSES = ("ld", "st", "atom", "red")
MOST_BYTES = 16  # of an access
SPACES = ("global", "shared", "local", "param", "const")


def access_bytes(instruction: Instruction) -> int | None:
    """Return how many bytes of shared memory an instruction accesses for each lane; None for all others."""
    is_elsewhere = instruction.opcode in ACCESSES and space_named(instruction) not in ("shared", "generic")
    return None if is_elsewhere else lane_bytes(instruction)


def lane_bytes(instruction: Instruction) -> int | None:
    """Return how many bytes of any memory an instruction accesses for each lane; None where it accesses none."""
    if instruction.opcode in ("ldmatrix", "wgmma"):
        return 16
    if instruction.opcode == "cp":
        return _copied_bytes(instruction) if len(instruction.operands) > 2 else None
    if instruction.opcode not in ACCESSES:
        return None
    count = max(len(items(operand)) for operand in instruction.operands)
    return _bytes(instruction, 32 if instruction.kind.endswith("x2") else scalar(instruction.kind).bits, count)


def _bytes(instruction: Instruction, bits: int, count: int) -> int:
    """Return the bytes of `count` numbers."""
    if (size_bytes := count * bits // 8) > MOST_BYTES:
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
    return next((name for name in found if name in SPACES), "generic")


def _load(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    kind, space, pc = scalar(instruction.kind), space_named(instruction), decoder.pc
    target, source = instruction.operands
    puts = [decoder.write(item, kind) for item in items(target)]
    if space == "param":
        return _parameter(decoder, instruction)
    address, shape = decoder.address(source), (kind.bits // 8, len(puts))
    size_bytes = _bytes(instruction, kind.bits, len(puts))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if not lanes.at.size:
            return
        found = memories.load(pc, lanes, where, shape).view(kind.dtype)
        values = found if lanes.mask is None else _spread(found, lanes)
        for i, put in enumerate(puts):
            put(warp, lanes.mask, values[:, i])

    return step


def _spread(found: Values, lanes: Lanes) -> Values:
    """Return rows for all 32 lanes, zeros where a lane took no part."""
    values = np.zeros((LANES, found.shape[1]), found.dtype)
    values[lanes.mask] = found
    return values


def _parameter(decoder: Decoder, instruction: Instruction) -> Step:
    kind, source = scalar(instruction.kind), instruction.operands[1]
    if not isinstance(source, Address) or not isinstance(source.base, str) or source.offset:
        raise Unsupported(f"{instruction.text}: a part of a parameter")
    value = decoder.parameters[source.base] % 2**kind.bits
    values = np.full(LANES, value, f"u{kind.bits // 8}").view(kind.dtype)
    put = decoder.write(instruction.operands[0], kind)
    return lambda warp, mask: put(warp, mask, values)


def _store(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    kind, space, pc = scalar(instruction.kind), space_named(instruction), decoder.pc
    raw = scalar(f"u{kind.bits}")
    target, source = instruction.operands
    gets = [decoder.read(item, raw) for item in items(source)]
    address, size_bytes = decoder.address(target), _bytes(instruction, kind.bits, len(gets))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, where = memories.lanes(warp, mask, address(warp), space)
        lanes = memories.checked(pc, lanes, where, size_bytes)
        if lanes.at.size:
            values = np.stack([get(warp) for get in gets], 1)
            memories.store(pc, lanes, where, warp.lanes_of(lanes.mask, values))

    return step


def _copy(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    """Decode `cp.async` and what closes and waits for groups of copies."""
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
    return _start(decoder, memories, instruction)


def _close(warp: Warp, mask: Mask) -> None:
    warp.copy_groups[warp.active() if mask is None else mask] += 1


def _waiting(decoder: Decoder, pending: int | None) -> Step:
    early = decoder.early

    def step(warp: Warp, mask: Mask) -> None:
        shared = warp.block.shared
        waiting = warp.active() if mask is None else mask
        for copy in copies_arrived(warp.copies, warp.copy_groups, waiting, pending):
            if not early:
                shared.store(copy.at, copy.values)
            shared.arrive(copy.parts, warp.threads[copy.lanes])

    return step


def _start(decoder: Decoder, memories: Memories, instruction: Instruction) -> Step:
    pc, size_bytes, early = decoder.pc, _copied_bytes(instruction), decoder.early
    into, out_of = decoder.address(instruction.operands[0]), decoder.address(instruction.operands[1])
    shorter = instruction.operands[3] if len(instruction.operands) > 3 else size_bytes
    length = decoder.read(shorter, scalar("u32"))

    def step(warp: Warp, mask: Mask) -> None:
        lanes, _ = memories.lanes(warp, mask, into(warp), "shared")
        lanes = memories.checked(pc, lanes, "shared", size_bytes)
        if not lanes.at.size:
            return
        sources, lengths = out_of(warp), np.minimum(length(warp), size_bytes)
        warp.fetched = sources, lengths
        wanted = (warp.lanes_of(lanes.mask, sources), warp.lanes_of(lanes.mask, lengths), size_bytes)
        values = _fetched(memories, pc, lanes, wanted)
        shared, threads = warp.block.shared, lanes.threads
        parts = shared.parts(lanes.at, size_bytes)
        memories.count_banks(pc, lanes, size_bytes)
        memories.note(pc, shared.copied_by(parts, threads), threads)
        if early:
            shared.store(lanes.at, values)
        warp.copies.append(Copy(lanes.numbers, lanes.at, parts, values, warp.copy_groups[lanes.numbers]))

    return step


def _fetched(memories: Memories, pc: int, lanes: Lanes, wanted: tuple[Values, Values, int]) -> Values:
    """Return what is copied, in words: as many bytes as each lane asks for, and zeros after them."""
    sources, lengths, size_bytes = wanted
    values = np.zeros((lanes.at.size, size_bytes), np.uint8)
    for length in map(int, np.unique(lengths[lengths > 0])):
        asking = lengths == length
        part = replace(lanes.only(asking), at=sources[asking] - DEVICE_BASE)
        part = memories.checked(pc, part, "global", length, align=size_bytes)
        rows = np.searchsorted(lanes.numbers, part.numbers)
        values[rows, :length] = memories.load(pc, part, "global", (1, length))
    return values.view(np.uint32)


ACCESS: dict[str, Callable[[Decoder, Memories, Instruction], Step]] = {"ld": _load, "st": _store, "cp": _copy}
