"""The steps of a block: the cost of each access, sentences, waits at barriers, and a small shape to run."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from gpuexplore.core import Shape, format_percent
from gpuexplore.kernels.geometry import WARP, Block, Geometry, Launch
from gpuexplore.kernels.ptx import BANK_BYTES, BANKS, Access, TraceStep, wavefronts, words_of
from gpuexplore.measure.check.interpreted import BlockRun, RunArray
from gpuexplore.operations.contract import Operation

SECTOR_BYTES = 32  # of device memory and its caches: less is never moved
ROW_BYTES = BANKS * BANK_BYTES


@dataclass(frozen=True, slots=True)
class _SectorRequest:
    """The sectors that a warp's access to device memory touches.

    Attributes:
        sectors: how many, each of SECTOR_BYTES.
        useful_bytes: that the lanes asked for; what several ask for counts once.
        fewest_sectors: that would hold as many bytes.
    """

    sectors: int
    useful_bytes: int
    fewest_sectors: int

    @property
    def moved_bytes(self) -> int:
        """Bytes of all sectors."""
        return self.sectors * SECTOR_BYTES

    @property
    def useful_share(self) -> float | None:
        """The useful fraction of what is moved, 0 to 1; None where nothing is."""
        return self.useful_bytes / self.moved_bytes if self.sectors else None


@dataclass(frozen=True, slots=True)
class _Word:
    """A 4-byte word of shared memory that lanes want at once.

    Attributes:
        group: of the lanes that go together: all, or halves or quarters of the warp for wider accesses.
        bank: of the 32.
        word: its number, from the start of shared memory.
        lanes: who wants it.
        wavefront: the pass, from 1, that it goes with.
        turn: likewise among the words of its bank that the group wants: 2 and more have to wait.
    """

    group: int
    bank: int
    word: int
    lanes: tuple[int, ...]
    wavefront: int
    turn: int


def request_of(access: Access) -> _SectorRequest:
    """Return the sectors of an access to device memory."""
    touched = np.unique(access.addresses[:, None] + np.arange(access.size_bytes))
    return _SectorRequest(np.unique(touched // SECTOR_BYTES).size, touched.size, -(-touched.size // SECTOR_BYTES))


def passes_of(access: Access) -> tuple[int, int]:
    """Return the passes through the banks that an access to shared memory takes, and those without a conflict."""
    return wavefronts(access.addresses, access.size_bytes, access.lanes)


def wanted_words(access: Access) -> tuple[_Word, ...]:
    """Return the words of shared memory that an access wants: those of a bank take turns, the lowest first."""
    together, wanted = words_of(access.addresses, access.size_bytes, access.lanes)
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, lane in enumerate(access.lanes):
        for group, word in zip(together[row], wanted[row], strict=True):
            lanes[int(group), int(word)].append(int(lane))
    found = []
    before = 0
    group_now = None
    turn: dict[int, int] = {}
    for (group, word), who in sorted(lanes.items()):
        if group != group_now:
            before = before + max(turn.values(), default=0)
            turn = {}
            group_now = group
        bank = word % BANKS
        turn[bank] = turn.get(bank, 0) + 1
        found.append(_Word(group, bank, word, tuple(dict.fromkeys(who)), before + turn[bank], turn[bank]))
    return tuple(found)


def collisions(words: Iterable[_Word]) -> list[tuple[int, tuple[int, ...]]]:
    """Return each bank of which lanes that go together want different words, and those lanes."""
    found: dict[tuple[int, int], list[_Word]] = defaultdict(list)
    for word in words:
        found[word.group, word.bank].append(word)
    return [
        (bank, tuple(sorted({lane for word in words for lane in word.lanes})))
        for (_, bank), words in sorted(found.items())
        if len(words) > 1
    ]


def elements_of(access: Access, array: RunArray) -> dict[int, tuple[int, ...]]:
    """Return the elements of an array that an access touches, and the lanes that touch each; empty for another's."""
    found: dict[int, list[int]] = defaultdict(list)
    for lane, address in zip(access.lanes, access.addresses, strict=True):
        start = int(address) - array.address
        if 0 <= start < array.size_bytes:
            for at in range(start, start + access.size_bytes, array.item_bytes):
                found[at // array.item_bytes].append(int(lane))
    return {element: tuple(lanes) for element, lanes in sorted(found.items())}


def touched(steps: Iterable[TraceStep], array: RunArray) -> np.typing.NDArray[np.bool_]:
    """Return of each element of an array whether any of the steps touches it."""
    found = np.zeros(array.size_bytes // array.item_bytes, np.bool_)
    for step in steps:
        for access in step.accesses:
            inside = array.holds(access.addresses)
            if access.memory == "global" and inside.any():
                places = np.arange(0, access.size_bytes, array.item_bytes)
                found[((access.addresses[inside, None] - array.address) + places).ravel() // array.item_bytes] = True
    return found


def _unpadded_wavefronts(access: Access) -> tuple[int, int, int] | None:
    """Return how far apart in bytes the rows of an access lie, the whole multiple of 128 below, and its wavefronts.

    None where they do not lie in rows that are longer than such a multiple, or begin elsewhere in each row (swizzled).
    """
    offsets = access.addresses - access.addresses.min()
    positive = np.unique(offsets[offsets >= ROW_BYTES])
    if not positive.size:
        return None
    pitch = int(positive[0])
    shorter = pitch // ROW_BYTES * ROW_BYTES
    rows, within = np.divmod(offsets, pitch)
    begins = [within[rows == row].min() for row in np.unique(rows)]
    if shorter == pitch or any(begins) or int(within.max()) + access.size_bytes > shorter:
        return None
    taken, _ = wavefronts(rows * shorter + within, access.size_bytes, access.lanes)
    return pitch, shorter, taken


MOST_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class BarrierInterval:
    """The interval of a warp between two barriers: its steps, then its wait until all warps have arrived.

    Attributes:
        warp: its index.
        phase: how many barriers it has passed.
        first: the first of its steps.
        last: its last one; where it waits, its arrival at the barrier.
        released: the step with which the last warp arrived; None where it does not wait.
    """

    warp: int
    phase: int
    first: int
    last: int
    released: int | None


def array_of(access: Access, arrays: Sequence[RunArray]) -> RunArray | None:
    """Return the array that an access touches; None where it touches none."""
    return next((array for array in arrays if bool(array.holds(access.addresses).any())), None)


def sentence(step: TraceStep, run: BlockRun) -> str:
    """Return what happens in a step and what it costs, with its figures."""
    if step.is_barrier:
        arrived, missing = _arrivals(step, run)
        if not missing:
            return f"Warp {step.warp} is the last to arrive at the barrier: all {_count(len(arrived), 'warp')} go on."
        return (
            f"Warp {step.warp} waits at the barrier: {len(arrived)} of {run.warps} warps have arrived, "
            f"{_warps(missing)} {'has' if len(missing) == 1 else 'have'} not."
        )
    return " ".join(_access_sentence(step.warp, access, run) for access in step.accesses)


def effect(step: TraceStep, run: BlockRun) -> str:
    """Return a step in a few words."""
    if step.is_barrier:
        arrived, missing = _arrivals(step, run)
        return f"barrier: {len(arrived)} of {len(arrived) + len(missing)} warps are there"
    return "; ".join(_effect(access, run) for access in step.accesses)


def _arrivals(step: TraceStep, run: BlockRun) -> tuple[list[int], list[int]]:
    """Return the warps that have arrived at the barrier of a step, this one among them, and those that have not."""
    passed = sum(other.is_barrier and other.warp == step.warp for other in run.steps[: step.number])
    counts = dict.fromkeys(range(run.warps), 0)
    for other in run.steps[: step.number]:
        counts[other.warp] += other.is_barrier
    arrived = [warp for warp, count in counts.items() if count >= passed]
    return arrived, [warp for warp in counts if warp not in arrived]


def barrier_intervals(run: BlockRun) -> list[BarrierInterval]:
    """Return what the warps do between barriers, in the order in which they begin."""
    phases = dict.fromkeys(range(run.warps), 0)
    found: dict[tuple[int, int], list[TraceStep]] = {}
    for step in run.steps:
        found.setdefault((phases[step.warp], step.warp), []).append(step)
        phases[step.warp] += step.is_barrier
    arrived: dict[int, int] = {}
    for (phase, _), steps in found.items():
        if steps[-1].is_barrier:
            arrived[phase] = max(arrived.get(phase, 0), steps[-1].number)
    return [
        BarrierInterval(
            warp, phase, steps[0].number, steps[-1].number, arrived[phase] if steps[-1].is_barrier else None
        )
        for (phase, warp), steps in found.items()
    ]


def block_sectors(run: BlockRun) -> _SectorRequest:
    """Return the sectors of the steps that were kept, each request by itself; none outside of every array."""
    accesses = (access for step in run.steps for access in step.accesses)
    requests = [request_of(access) for access in accesses if access.memory == "global" and array_of(access, run.arrays)]
    return _SectorRequest(
        sum(request.sectors for request in requests),
        sum(request.useful_bytes for request in requests),
        sum(request.fewest_sectors for request in requests),
    )


def block_wavefronts(run: BlockRun) -> tuple[int, int]:
    """Return the passes of the steps that were kept through the banks of shared memory, and those without conflicts."""
    accesses = [access for step in run.steps for access in step.accesses]
    passes = [passes_of(access) for access in accesses if access.memory == "shared"]
    return sum(taken for taken, _ in passes), sum(fewest for _, fewest in passes)


def moments(run: BlockRun, warp: int) -> Mapping[str, int]:
    """Return what is worth a look, and which of the warp's steps, from 1, it is: by their order.

    The first access of each kind, the first barrier, and the worst bank conflict where there is one.
    """
    found: dict[str, int] = {}
    steps = steps_of(run, warp)
    for number, step in enumerate(steps, 1):
        if step.is_barrier:
            found.setdefault("first barrier", number)
        for access in step.accesses:
            array = array_of(access, run.arrays) if access.memory != "shared" else None
            name = "shared memory" if access.memory == "shared" else array and array.name
            if name is not None:
                found.setdefault(f"{'writes' if access.writes else 'reads'} {name}", number)
    shared = [[access for access in step.accesses if access.memory == "shared"] for step in steps]
    passes = [[passes_of(each) for each in accesses] for accesses in shared]
    extra = [sum(taken - fewest for taken, fewest in of_step) for of_step in passes]
    if any(extra):
        found["worst bank conflict"] = extra.index(max(extra)) + 1
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def steps_of(run: BlockRun, warp: int) -> list[TraceStep]:
    """Return the steps of a warp."""
    return [step for step in run.steps if step.warp == warp]


def costliest_read(run: BlockRun, warp: int) -> int:
    """Return which of the warp's steps, from 1, moves the most sectors for what it reads; the first of several."""
    sectors = [
        sum(request_of(access).sectors for access in step.accesses if access.memory == "global" and not access.writes)
        for step in steps_of(run, warp)
    ]
    return sectors.index(max(sectors)) + 1 if sectors else 1


def _access_sentence(warp: int, access: Access, run: BlockRun) -> str:
    verb = "writes" if access.writes else "reads"
    if access.memory == "shared":
        return _at_banks(f"Warp {warp} {verb}", access)
    array = array_of(access, run.arrays)
    if array is None:
        return f"Warp {warp} {verb} outside of every array."
    request = request_of(access)
    elements = elements_of(access, array)
    what = f"{len(elements)} elements" if len(elements) > 1 else "one element"
    whom = f" for its {access.lanes.size} lanes," if len(elements) < access.lanes.size else ""
    moved = f"{_count(request.sectors, 'sector')} of {SECTOR_BYTES} bytes"
    neighbours = "the fewest sectors possible"
    if request.sectors > request.fewest_sectors:
        neighbours = f"{_count(request.fewest_sectors, 'sector')} would be enough if they were contiguous"
    return (
        f"Warp {warp} {verb} {what} of {array.name}{whom} in {moved}: {request.useful_bytes} of "
        f"{request.moved_bytes} bytes moved are useful ({format_percent(request.useful_share)}); {neighbours}."
    )


def _at_banks(who: str, access: Access) -> str:
    taken, fewest = passes_of(access)
    words = wanted_words(access)
    start = f"{who} {_count(len(words), 'word')} of shared memory in {_count(taken, 'wavefront')}"
    padded = _unpadded_wavefronts(access)
    why = ""
    if padded is not None and padded[2] > taken:
        pitch, shorter, unpadded = padded
        why = f" Its rows are {pitch} bytes apart: {shorter} apart, without padding, it would take {unpadded}."
    if taken == fewest:
        return f"{start}: no bank conflict.{why}"
    bank, lanes = collisions(words)[0]
    named = ", ".join(map(str, lanes[:4])) + (" …" if len(lanes) > 4 else "")
    return f"{start}, {fewest} without conflicts: lanes {named} want different words of bank {bank}.{why}"


def _effect(access: Access, run: BlockRun) -> str:
    verb = "writes" if access.writes else "reads"
    if access.memory == "shared":
        taken, _ = passes_of(access)
        return f"{verb} shared, {_count(taken, 'wavefront')}"
    array = array_of(access, run.arrays)
    if array is None:
        return f"{verb} outside of every array"
    return f"{verb} {array.name}, {_count(request_of(access).sectors, 'sector')}"


def _warps(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"warp {numbers[0]}"
    together = list(numbers) == list(range(numbers[0], numbers[-1] + 1))
    named = f"{numbers[0]} to {numbers[-1]}" if together else ", ".join(map(str, numbers))
    return f"warps {named}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# A small shape for a kernel: a few blocks, every thread of them at work, so that it can be run step by step.


def small_shape(operation: Operation, geometry: Geometry, block: Block | None) -> Shape:
    """Return a shape that at most MOST_BLOCKS blocks cover, with work for each of their threads where that can be."""
    shape = operation.shape_of_size(WARP)
    while (longest := _longest_that_adds_blocks(operation, geometry, shape, block)) is not None:
        shape = _scaled(shape, longest, 1, 2)
    while not _is_full(operation, geometry.launch(operation.output(shape), block), shape):
        more = [_scaled(shape, axis, 2, 1) for axis, length in shape.axes if length < 4096]
        fitting = [larger for larger in more if _helps(operation, geometry, (shape, larger), block)]
        if not fitting:
            break
        shape = fitting[0]
    # An axis that follows others, as the right-hand matrices of a batch do, is cut until it does.
    cut = (_scaled(shape, axis, 1, 2**step) for axis, length in shape.axes for step in range(length.bit_length()))
    return next((each for each in (shape, *cut) if operation.problem(each) is None), shape)


def _longest_that_adds_blocks(
    operation: Operation, geometry: Geometry, shape: Shape, block: Block | None
) -> str | None:
    """Return the longest axis whose half has fewer blocks, where there are too many."""
    blocks = geometry.launch(operation.output(shape), block).blocks
    if blocks <= MOST_BLOCKS:
        return None
    halves = {axis: _scaled(shape, axis, 1, 2) for axis, length in shape.axes if length > 1}
    fewer = [axis for axis, half in halves.items() if geometry.launch(operation.output(half), block).blocks < blocks]
    return max(fewer, key=shape.__getitem__, default=None)


def _helps(operation: Operation, geometry: Geometry, both: tuple[Shape, Shape], block: Block | None) -> bool:
    """Return whether a larger shape gives more work to no more blocks than are allowed."""
    now, then = (geometry.launch(operation.output(shape), block) for shape in both)
    if then.blocks > MOST_BLOCKS:
        return False
    return _covered(then) > _covered(now) or (
        _covered(now) == prod(now.tile or now.domain)
        and then.blocks == now.blocks
        and _elements(operation, both[1]) > _elements(operation, both[0])
    )


def _is_full(operation: Operation, launch: Launch, shape: Shape) -> bool:
    """Return whether the first block's part of the output is there, and an element of an array for each thread."""
    full = launch.blocks > 1 if launch.tile is None else _covered(launch) == prod(launch.tile)
    return full and _elements(operation, shape) >= launch.blocks * launch.threads_per_block


def _covered(launch: Launch) -> int:
    """Return how many elements of the domain the first block covers."""
    if launch.tile is None:
        return prod(launch.domain)
    return prod(min(width, length) for width, length in zip(launch.tile, launch.domain, strict=True))


def _elements(operation: Operation, shape: Shape) -> int:
    return max(map(prod, (*operation.inputs(shape), operation.output(shape))))


def _scaled(shape: Shape, axis: str, times: int, over: int) -> Shape:
    return Shape(tuple((name, length * times // over if name == axis else length) for name, length in shape.axes))
