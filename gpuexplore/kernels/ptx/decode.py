"""Instructions as functions of a warp and its lanes, each decoded once before a kernel runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.access import ACCESS
from gpuexplore.kernels.ptx.arithmetic import ARITHMETIC
from gpuexplore.kernels.ptx.conversions import CONVERSIONS
from gpuexplore.kernels.ptx.decoder import Decode, Decoder, Getter, Step, items
from gpuexplore.kernels.ptx.memories import Ledger
from gpuexplore.kernels.ptx.numbers import LANES, Values, scalar
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.tensor_cores import TENSOR_CORES, watching_registers
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, Warp

CONVERGENT = ("bar", "barrier", "shfl", "vote", "mma", "ldmatrix", "wgmma")  # all lanes of a warp execute them together
_GROUPS = {  # of modifiers, by a name that stands for all of them in the next table
    "WHOLE": "s16 u16 s32 u32 s64 u64",
    "SMALL": "s8 u8",
    "BITS": "b16 b32 b64",
    "WIDE": "f32 f64",
    "FLOATS": "f16 bf16 f32 f64",
    "PAIRS": "f16x2 bf16x2",
    "ROUNDING": "rn rz rm rp",
    "ORDER": "weak relaxed volatile cta cluster gpu sys",
    "SPACES": "global shared local param const",
    "CACHING": "ca cg cs lu cv wb wt L1 L2",
    "UPDATES": "add min max and or xor inc dec exch cas noftz",
    "COMPARISONS": "eq ne lt le gt ge equ neu ltu leu gtu geu lo ls hi hs num nan",
}
_MODIFIERS = {  # that are known here, by opcode
    "ld": "ORDER acquire SPACES CACHING nc WHOLE SMALL BITS WIDE b8 v2 v4",
    "st": "ORDER release SPACES CACHING WHOLE SMALL BITS WIDE b8 v2 v4",
    "cp": "async ca cg shared global L2 commit_group wait_group wait_all",
    "add sub": "WHOLE FLOATS PAIRS ROUNDING ftz sat",
    "mul": "WHOLE FLOATS PAIRS ROUNDING ftz sat lo hi wide",
    "mad": "WHOLE WIDE ROUNDING ftz sat lo hi wide",
    "fma": "FLOATS PAIRS ROUNDING ftz sat",
    "div": "WHOLE WIDE ROUNDING approx full ftz",
    "rem bfe": "WHOLE",
    "min max": "WHOLE FLOATS PAIRS ftz NaN",
    "abs neg": "WHOLE FLOATS PAIRS ftz",
    "copysign": "WIDE",
    "rcp sqrt": "WIDE ROUNDING approx ftz",
    "rsqrt": "WIDE approx ftz",
    "ex2 lg2 sin cos tanh": "FLOATS PAIRS approx ftz",
    "and or xor not": "BITS pred",
    "cnot shl bfi popc clz brev": "BITS",
    "shr": "BITS WHOLE",
    "shf": "l r wrap clamp b32",
    "prmt lop3 activemask": "b32",
    "setp": "COMPARISONS and or xor ftz WHOLE BITS FLOATS",
    "set": "COMPARISONS ftz WHOLE BITS FLOATS",
    "selp": "WHOLE BITS FLOATS",
    "slct": "WHOLE BITS WIDE ftz",
    "mov": "WHOLE BITS pred FLOATS",
    "cvta": "to u32 u64 SPACES",
    "cvt": "WHOLE SMALL FLOATS PAIRS ROUNDING ftz sat rni rzi rmi rpi rna relu tf32",
    "bra ret": "uni",
    "exit": "",
    "bar": "sync warp cta",
    "barrier": "sync aligned cta",
    "membar": "gl cta sys",
    "fence": "ORDER acquire release sc acq_rel proxy async alias global shared",
    "prefetch": "global local L1 L2",
    "shfl": "sync up down bfly idx b32",
    "vote": "sync all any uni ballot pred b32",
    "ldmatrix": "sync aligned m8n8 x1 x2 x4 trans shared b16",
    "atom": "ORDER acquire release acq_rel UPDATES global shared WHOLE BITS FLOATS PAIRS",
    "red": "ORDER acquire release UPDATES global shared WHOLE BITS FLOATS PAIRS",
}
_KNOWN = {
    opcode: frozenset(" ".join(_GROUPS.get(word, word) for word in words.split()).split())
    for opcodes, words in _MODIFIERS.items()
    for opcode in opcodes.split()
}
_WORD = scalar("u32")
_PREDICATE = scalar("pred")
_BITS = np.uint32(1) << EVERY_LANE.astype(np.uint32)


def _branch(decoder: Decoder, instruction: Instruction) -> Step:
    (label,) = instruction.operands
    if not isinstance(label, str) or label not in decoder.program.labels:
        raise Unsupported(f"a branch to {label}")
    target = decoder.program.labels[label]
    return lambda warp, mask: warp.jump(target, mask)


def _return(decoder: Decoder, instruction: Instruction) -> Step:
    return lambda warp, mask: warp.leave(mask)


def _barrier(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a barrier of the block, or of the warp, whose lanes are together anyway."""
    if "sync" not in instruction.modifiers:
        raise Unsupported(instruction.name)
    ledger = decoder.memories.ledger
    pc = decoder.pc
    if "warp" in instruction.modifiers:
        return lambda *_: None
    if instruction.operands != (0,):
        raise Unsupported("a barrier of another number, or of some of the threads")

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active(mask)
        if (missing := warp.alive & ~here).any():
            ledger.blame("barrier", pc, "some lanes of a warp are elsewhere", warp.threads[missing])
        warp.waiting = True

    return step


def _fence(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a fence: memory here is in order, except for the tensor cores' view of it."""
    modifiers = {modifier.split("::")[0] for modifier in instruction.modifiers}
    if not {"proxy", "async"} <= modifiers or "global" in modifiers:
        return lambda *_: None

    def step(warp: Warp, mask: Mask) -> None:
        if proxy := warp.block.shared.proxy:
            proxy.fence(warp.index, warp.lanes_of(mask, warp.threads))

    return step


def _nothing(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode orderings and hints, which have no effect: memory here is in order."""
    return lambda *_: None


def _shuffle(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `shfl.sync`, after the pseudo-code of the ISA."""
    ledger = decoder.memories.ledger
    pc = decoder.pc
    mode = instruction.modifiers[1]
    target, *others = items(instruction.operands[0])
    put = decoder.write(target, _WORD)
    found = decoder.write(others[0] if others else "_", _PREDICATE)
    value, distance, clamp, members = (decoder.read(operand, _WORD) for operand in instruction.operands[1:])

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active(mask)
        lane, inside = _partners(mode, distance(warp).astype(np.int64) & 31, clamp(warp).astype(np.int64))
        if not here[lane[here]].all():
            ledger.blame("barrier", pc, "a lane that takes no part is read", warp.threads[here & ~here[lane]])
        _expect_members(ledger, pc, warp, (here, members(warp)))
        put(warp, mask, value(warp)[lane])
        found(warp, mask, inside)

    return step


def _partners(mode: str, distance: Values, clamp: Values) -> tuple[Values, Values]:
    """Return the lane each lane reads, and whether that is within its segment: else it reads itself."""
    segment = clamp >> 8 & 31
    first = EVERY_LANE & segment
    last = first | clamp & 31 & ~segment
    lane = {
        "up": EVERY_LANE - distance,
        "down": EVERY_LANE + distance,
        "bfly": EVERY_LANE ^ distance,
        "idx": first | distance & ~segment,
    }[mode]
    inside = lane >= last if mode == "up" else lane <= last
    return np.where(inside, lane, EVERY_LANE), inside


def _expect_members(ledger: Ledger, pc: int, warp: Warp, given: tuple[Values, Values]) -> None:
    """Blame an instruction whose mask names other lanes than execute it."""
    here, members = given
    named = (members[int(np.flatnonzero(here)[0])] & _BITS) != 0
    if (named != here).any():
        ledger.blame("barrier", pc, "other lanes than the mask names take part", warp.threads[named != here])


def _vote(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `vote.sync`."""
    ledger = decoder.memories.ledger
    pc = decoder.pc
    mode = instruction.modifiers[1]
    target, source, operand = instruction.operands
    put = decoder.write(target, _WORD if mode == "ballot" else _PREDICATE)
    get = decoder.read(source, _PREDICATE)
    members = decoder.read(operand, _WORD)

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active(mask)
        _expect_members(ledger, pc, warp, (here, members(warp)))
        votes = get(warp)[here]
        ballot = _BITS[here][votes].sum(dtype=np.uint32)
        decided = {"all": votes.all(), "any": votes.any(), "uni": votes.all() or not votes.any(), "ballot": ballot}
        put(warp, mask, np.full(LANES, decided[mode]))

    return step


def _activemask(decoder: Decoder, instruction: Instruction) -> Step:
    put = decoder.write(instruction.operands[0], _WORD)

    def step(warp: Warp, mask: Mask) -> None:
        put(warp, mask, np.full(LANES, _BITS[warp.active(mask)].sum(dtype=np.uint32)))

    return step


_DECODERS: Mapping[str, Decode] = {
    **ARITHMETIC,
    **CONVERSIONS,
    **ACCESS,
    **TENSOR_CORES,
    "bra": _branch,
    "ret": _return,
    "exit": _return,
    "bar": _barrier,
    "barrier": _barrier,
    "membar": _nothing,
    "fence": _fence,
    "prefetch": _nothing,
    "shfl": _shuffle,
    "vote": _vote,
    "activemask": _activemask,
}
OPCODES = tuple(_DECODERS)


@dataclass(frozen=True, slots=True)
class Event:
    """An instruction that a warp has executed.

    Attributes:
        instruction: as it stands in the program.
        block: index of the block along x, y and z.
        warp: index of the warp within the block.
        lanes: those of the 32 that acted.
        addresses: of each lane, in bytes, where the instruction accesses memory; shared ones count from its start.
        sources: of each lane, where an asynchronous copy reads device memory, and how many bytes: zeros fill the rest.
    """

    instruction: Instruction
    block: tuple[int, int, int]
    warp: int
    lanes: np.typing.NDArray[np.bool_]
    addresses: Values | None
    sources: tuple[Values, Values] | None


Observer = Callable[[Event], None]


def decoded(decoder: Decoder, observer: Observer | None = None) -> list[Step]:
    """Return a step for each instruction.

    Raises:
        Unsupported: an instruction is not known here; the text names it and its line.
    """
    steps = []
    for pc, instruction in enumerate(decoder.program.code):
        decoder.pc = pc
        steps.append(_decoded(decoder, instruction, observer))
    return watching_registers(steps, decoder.program, decoder.memories.ledger)


def _decoded(decoder: Decoder, instruction: Instruction, observer: Observer | None) -> Step:
    try:
        _expect_known_modifiers(instruction)
        if instruction.opcode not in _DECODERS:
            raise Unsupported(f"the instruction {instruction.opcode} is not known")
        step = _DECODERS[instruction.opcode](decoder, instruction)
        if observer is not None:
            step = _observed(step, instruction, observer)
        return _guarded(step, decoder.read(instruction.guard, _PREDICATE)) if instruction.guard else step
    except (Unsupported, KeyError, ValueError) as error:
        raise Unsupported(
            f"line {instruction.line} of the PTX cannot be run here: {instruction.text[:80]} ({error})"
        ) from error


def _expect_known_modifiers(instruction: Instruction) -> None:
    """Raise an error that names the first modifier which is not known: left out, it could change the result.

    `mma` and `wgmma` are known by their whole name.

    Raises:
        Unsupported: there is one.
    """
    known = _KNOWN.get(instruction.opcode)
    if known is None:
        return
    for modifier in instruction.modifiers:
        if modifier.split("::")[0] not in known:
            raise Unsupported(f"the modifier .{modifier} of {instruction.opcode} is not known here")


def _guarded(step: Step, predicate: Getter) -> Step:
    def under(warp: Warp, mask: Mask) -> None:
        condition = predicate(warp)
        taken = condition.copy() if mask is None else mask & condition  # a copy: the register may change
        if taken.any():
            step(warp, None if taken.all() else taken)

    return under


def _observed(step: Step, instruction: Instruction, observer: Observer) -> Step:
    def watched(warp: Warp, mask: Mask) -> None:
        warp.touched = warp.fetched = None
        lanes = warp.active(mask).copy()
        step(warp, mask)
        observer(Event(instruction, warp.block.at, warp.index, lanes, warp.touched, warp.fetched))

    return watched
