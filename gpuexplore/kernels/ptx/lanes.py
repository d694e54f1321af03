"""Collective instructions and control flow of a warp: shuffles, votes, barriers and branches."""

from collections.abc import Callable

import numpy as np

from gpuexplore.core.errors import Unsupported
from gpuexplore.kernels.ptx.decoder import Decoder, Step, items
from gpuexplore.kernels.ptx.program import Instruction
from gpuexplore.kernels.ptx.registers import LANES, Values, scalar
from gpuexplore.kernels.ptx.warp import EVERY_LANE, Mask, Warp

CONVERGENT = (
    "bar",
    "barrier",
    "shfl",
    "vote",
    "mma",
    "ldmatrix",
    "wgmma",
)  # which all lanes of a warp execute together
_WORD, _PREDICATE = scalar("u32"), scalar("pred")
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
    ledger, pc = decoder.ledger, decoder.pc
    if "warp" in instruction.modifiers:
        return lambda *_: None
    if instruction.operands != (0,):
        raise Unsupported("a barrier of another number, or of some of the threads")

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active() if mask is None else mask
        if (missing := warp.alive & ~here).any():
            ledger.blame("barrier", pc, "some lanes of a warp are elsewhere", warp.threads[missing])
        warp.waiting = True

    return step


def _fence(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode a fence: memory here is in order, but for what the tensor cores see of it."""
    modifiers = {modifier.split("::")[0] for modifier in instruction.modifiers}
    if not {"proxy", "async"} <= modifiers or "global" in modifiers:
        return lambda *_: None

    def step(warp: Warp, mask: Mask) -> None:
        if proxy := warp.block.shared.proxy:
            proxy.fence(warp.index, warp.lanes_of(mask, warp.threads))

    return step


def _nothing(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode what orders accesses or hints: memory here is in order."""
    return lambda *_: None


def _shuffle(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `shfl.sync`, after the pseudo-code of the ISA."""
    mode, pc = instruction.modifiers[1], decoder.pc
    targets, sources = items(instruction.operands[0]), instruction.operands[1:]
    put = decoder.write(targets[0], _WORD)
    found = decoder.write(targets[1] if len(targets) > 1 else "_", _PREDICATE)
    value, distance, clamp, members = (decoder.read(operand, _WORD) for operand in sources)

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active() if mask is None else mask
        lane, inside = _partners(mode, distance(warp).astype(np.int64) & 31, clamp(warp).astype(np.int64))
        if not here[lane[here]].all():
            decoder.ledger.blame("barrier", pc, "a lane that takes no part is read", warp.threads[here & ~here[lane]])
        _expect_members(decoder, pc, warp, (here, members(warp)))
        put(warp, mask, value(warp)[lane])
        found(warp, mask, inside)

    return step


def _partners(mode: str, distance: Values, clamp: Values) -> tuple[Values, Values]:
    """Return the lane each lane reads, and whether that is within its segment: else it reads itself."""
    segment = clamp >> 8 & 31
    last, first = EVERY_LANE & segment | clamp & 31 & ~segment, EVERY_LANE & segment
    lane = {
        "up": EVERY_LANE - distance,
        "down": EVERY_LANE + distance,
        "bfly": EVERY_LANE ^ distance,
        "idx": first | distance & ~segment,
    }[mode]
    inside = lane >= last if mode == "up" else lane <= last
    return np.where(inside, lane, EVERY_LANE), inside


def _expect_members(decoder: Decoder, pc: int, warp: Warp, given: tuple[Values, Values]) -> None:
    """Blame an instruction whose mask names other lanes than execute it."""
    here, members = given
    named = (members[int(np.flatnonzero(here)[0])] & _BITS) != 0
    if (named != here).any():
        decoder.ledger.blame("barrier", pc, "other lanes than the mask names take part", warp.threads[named != here])


def _vote(decoder: Decoder, instruction: Instruction) -> Step:
    """Decode `vote.sync`."""
    mode, pc = instruction.modifiers[1], decoder.pc
    target, source, operand = instruction.operands
    put = decoder.write(target, _WORD if mode == "ballot" else _PREDICATE)
    get, members = decoder.read(source, _PREDICATE), decoder.read(operand, _WORD)

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active() if mask is None else mask
        _expect_members(decoder, pc, warp, (here, members(warp)))
        votes = get(warp)[here]
        ballot = _BITS[here][votes].sum(dtype=np.uint32)
        decided = {"all": votes.all(), "any": votes.any(), "uni": votes.all() or not votes.any(), "ballot": ballot}
        put(warp, mask, np.full(LANES, decided[mode]))

    return step


def _activemask(decoder: Decoder, instruction: Instruction) -> Step:
    put = decoder.write(instruction.operands[0], _WORD)

    def step(warp: Warp, mask: Mask) -> None:
        here = warp.active() if mask is None else mask
        put(warp, mask, np.full(LANES, _BITS[here].sum(dtype=np.uint32)))

    return step


TOGETHER: dict[str, Callable[[Decoder, Instruction], Step]] = {
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
