"""Loops of machine code: from the target of a branch backwards to the branch."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuexplore.kernels.sass.instruction import LOADS, STORES, SassInstruction

_LATENCIES = {"LDS": 20, "LDSM": 20, "LDG": 30, "LDL": 30, "LD": 30}
_REGISTER = re.compile(r"(?<![\w.])(R\d+|P\d|UR\d+|UP\d)(\.64)?(?![\w])")
_PAIRS = ("DFMA", "DADD", "DMUL")

Loop = tuple[SassInstruction, ...]  # from its first instruction to the branch back to it


def _encloses(outer: Loop, inner: Loop) -> bool:
    """Return whether a loop lies inside another."""
    return outer != inner and outer[0].address <= inner[0].address and inner[-1].address <= outer[-1].address


def loops(instructions: Sequence[SassInstruction]) -> tuple[Loop, ...]:
    """Return all loops in the order of their branches; the branch to itself that ends a kernel's code is none."""
    index_of = {instruction.address: index for index, instruction in enumerate(instructions)}
    found: dict[int, Loop] = {}  # by the first instruction: several branches may continue one loop
    for index, instruction in enumerate(instructions):
        target = instruction.target
        if target is not None and target < instruction.address and target in index_of:
            found[target] = tuple(instructions[index_of[target] : index + 1])
    return tuple(sorted(found.values(), key=lambda loop: loop[-1].address))


def main_loop(instructions: Sequence[SassInstruction]) -> Loop | None:
    """Return the loop that computes most, or else loads most, in one pass by itself; None without a loop.

    Loops inside it are left out: they are loops of their own, or copy edges that most passes do not have. Of two that
    do as much it is the one with more loads in flight, then the shorter: a kernel may have one with bounds for edges.
    A loop inside another is taken to run at least four times in a pass of it.
    """
    every = loops(instructions)
    by_first = sorted(every, key=lambda loop: loop[0].address)
    firsts = [loop[0].address for loop in by_first]
    inside = {
        loop[0].address: [
            other
            for other in by_first[bisect_left(firsts, loop[0].address) : bisect_right(firsts, loop[-1].address)]
            if _encloses(loop, other)
        ]
        for loop in every
    }
    depth = Counter(other[0].address for inner in inside.values() for other in inner)
    alone = [_without(loop, inside[loop[0].address]) for loop in every]
    works = [_work(loop, depth[whole[0].address]) for whole, loop in zip(every, alone, strict=True)]
    return alone[max(range(len(works)), key=works.__getitem__)] if works else None


def _without(loop: Loop, inner: Sequence[Loop]) -> Loop:
    addresses = {each.address for other in inner for each in other}
    return tuple(each for each in loop if each.address not in addresses) if addresses else loop


def _work(loop: Loop, depth: int) -> tuple[int, int, int, int]:
    passes = 4**depth  # an inner loop is taken to run so often in one pass of the outer one
    flops = passes * sum(instruction.flops_of_a_warp for instruction in loop)
    moved = 0 if flops else passes * sum(instruction.bits or 0 for instruction in loop)
    return flops, moved, 0 if flops else bytes_in_flight(loop), -len(loop)


def with_descriptors(code: Sequence[SassInstruction]) -> tuple[SassInstruction, ...]:
    """Return the code with the descriptor of each product of tensor memory whose register holds a constant there."""
    every = loops(code) if any("idesc[" in each.operands for each in code) else ()
    return tuple(
        replace(each, descriptor=_constant(code, index, found.group(1), every))
        if (found := re.search(r"idesc\[(UR\d+)\]", each.operands))
        else each
        for index, each in enumerate(code)
    )


def _constant(code: Sequence[SassInstruction], index: int, register: str, every: Sequence[Loop]) -> int | None:
    """Return what the last write of a uniform register put there; None where it is no constant, or one of several."""
    writes = [each for each in code if register in _uniform_written(each)]
    before = [each for each in writes if each.address < code[index].address]
    last = before[-1] if before else None
    if last is None or last.name != "UMOV" or last.predicate:
        return None
    found = re.search(r",(0x[0-9a-f]+)$", last.operands)
    around = [loop for loop in every if last.address < loop[0].address <= code[index].address <= loop[-1].address]
    is_again = any(loop[0].address <= each.address <= loop[-1].address for loop in around for each in writes)
    return int(found.group(1), 16) if found and not is_again else None


def _uniform_written(instruction: SassInstruction) -> set[str]:
    """Return the uniform registers an instruction may write: wide results take those that follow."""
    found = re.match(r"UR(\d+)", instruction.operands)
    if found is None or instruction.product:
        return set()
    width = 4 if ".128" in instruction.opcode else 2 if {"64", "WIDE"} & set(instruction.opcode.split(".")) else 1
    return {f"UR{int(found.group(1)) + each}" for each in range(width)}


# How long one warp takes for one pass of a loop, at the least: issue in order, and each result after its latency.
#
# Latencies are floors over all generations from Turing on, in cycles: arithmetic 4, shared memory 20, the first-level
# cache 30, tensor cores 16, or 10 for 8 x 8 sums (Z. Jia et al., https://arxiv.org/abs/1903.07486; W. Luo et al.,
# https://arxiv.org/abs/2402.13499). What is not known to depend on anything is taken to wait for nothing, so that the
# cycles are never too many.


def cycles_of_a_pass(instructions: Sequence[SassInstruction]) -> float:
    """Return the cycles between one pass of a warp and its next, when it has a scheduler to itself."""
    ready: dict[str, int] = {}
    now = 0
    starts = []
    steps = [(_read(each), tuple(_written(each)), _latency(each)) for each in instructions]
    for _ in range(6):  # the first fill the pipeline
        starts.append(now)
        for read, written, latency in steps:
            now = max(now + 1, *(ready.get(name, 0) for name in read), 0)
            ready |= dict.fromkeys(written, now + latency)
    return (starts[-1] - starts[1]) / (len(starts) - 2)


def bytes_in_flight(instructions: Sequence[SassInstruction]) -> int:
    """Return the most bytes of device memory that a thread has asked for and not yet waited for."""
    asked: dict[str, int] = {}  # by the register that waits
    most = 0
    for instruction in instructions:
        if any(name in asked for name in (*_read(instruction), *_written(instruction))):
            asked.clear()
        if instruction.name == "LDG":
            asked |= dict.fromkeys(_written(instruction), 4)
            most = max(most, sum(asked.values()))
    return most


def _latency(instruction: SassInstruction) -> int:
    if instruction.product:
        return 16 if instruction.product.registers[2] > 2 or ".16" in instruction.opcode else 10
    return _LATENCIES.get(instruction.name, 4)


def _is_asynchronous(instruction: SassInstruction) -> bool:
    """Return whether nothing waits for the registers that an instruction of tensor cores names."""
    return instruction.product is not None and not instruction.product.registers[2]


def _operands(instruction: SassInstruction) -> list[str]:
    return instruction.operands.split(",") if instruction.operands else []


def _written(instruction: SassInstruction) -> Iterator[str]:
    """Yield the registers and predicates an instruction certainly writes."""
    operands = _operands(instruction)
    if not operands or instruction.name in (*STORES, "LDGSTS", "BRA", "BAR", "EXIT") or _is_asynchronous(instruction):
        return
    (first, *rest) = operands
    found = _REGISTER.fullmatch(first)
    if found is None:
        return
    name = found.group(1)
    yield from (_neighbours(name, _width(instruction)) if name.startswith("R") else [name])
    if name.startswith("P") and rest and _REGISTER.fullmatch(rest[0]) and rest[0].startswith("P"):
        yield rest[0]


def _read(instruction: SassInstruction) -> tuple[str, ...]:
    """Return the registers and predicates an instruction certainly reads."""
    operands = _operands(instruction)
    sources = operands if instruction.name in STORES else operands[1:]
    names = [name for operand in sources for name, _ in _REGISTER.findall(operand)]
    if instruction.product:
        widths = instruction.product.registers
        names = [each for name, wide in zip(names, widths, strict=False) for each in _neighbours(name, max(1, wide))]
    elif instruction.name in _PAIRS:
        names = [each for name in names for each in (_neighbours(name, 2) if name.startswith("R") else [name])]
    guard = [name for name, _ in _REGISTER.findall(instruction.predicate.lstrip("@!"))]
    return (*names, *guard)


def _width(instruction: SassInstruction) -> int:
    """Return how many registers the result takes."""
    if instruction.name in LOADS:
        return max(1, (instruction.bits or 32) // 32)
    if instruction.product:
        return instruction.product.registers[2]
    return 2 if instruction.name in _PAIRS or ".WIDE" in instruction.opcode or ".64" in instruction.opcode else 1


def _neighbours(name: str, count: int) -> list[str]:
    start = int(name[1:]) if name[1:].isdigit() else None
    return [name] if start is None else [f"{name[0]}{start + each}" for each in range(count)]
