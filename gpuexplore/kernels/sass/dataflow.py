"""How long one warp takes for one pass of a loop, at the least: issue in order, and each result after its latency.

Latencies are floors over all generations from Turing on, in cycles: arithmetic 4, shared memory 20, the first-level
cache 30, tensor cores 16, or 10 for 8 x 8 sums (Z. Jia et al., https://arxiv.org/abs/1903.07486; W. Luo et al.,
https://arxiv.org/abs/2402.13499). What is not known to depend on anything is taken to wait for nothing, so that the
cycles are never too many.
"""

import re
from collections.abc import Iterator, Sequence

from gpuexplore.kernels.sass.instruction import LOADS, STORES, SassInstruction

ARITHMETIC, SHARED, CACHE, TENSOR, SMALL_TENSOR = 4, 20, 30, 16, 10
PASSES = 6  # the first fill the pipeline
_REGISTER = re.compile(r"(?<![\w.])(R\d+|P\d|UR\d+|UP\d)(\.64)?(?![\w])")
_PAIRS = ("DFMA", "DADD", "DMUL")


def cycles_of_a_pass(instructions: Sequence[SassInstruction]) -> float:
    """Return the cycles between one pass of a warp and its next, when it has a scheduler to itself."""
    ready: dict[str, int] = {}
    now, starts = 0, []
    read, written = zip(*((_read(each), tuple(_written(each))) for each in instructions), strict=True)
    for _ in range(PASSES):
        starts.append(now)
        for place, instruction in enumerate(instructions):
            now = max(now + 1, *(ready.get(name, 0) for name in read[place]), 0)
            for name in written[place]:
                ready[name] = now + _latency(instruction)
    return (starts[-1] - starts[1]) / (PASSES - 2)


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
        return TENSOR if instruction.product.registers[2] > 2 or ".16" in instruction.opcode else SMALL_TENSOR
    return {"LDS": SHARED, "LDSM": SHARED, "LDG": CACHE, "LDL": CACHE, "LD": CACHE}.get(instruction.name, ARITHMETIC)


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
    name, wide = found.group(1), _width(instruction)
    yield from (_neighbours(name, wide) if name.startswith("R") else [name])
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
