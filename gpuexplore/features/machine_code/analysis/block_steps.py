"""The steps of a block: a sentence for each, the warps that wait at a barrier, sums, and a small shape to run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from gpuexplore.core.model import Shape
from gpuexplore.core.units import format_percent
from gpuexplore.features.machine_code.analysis.memory_access import (
    SECTOR_BYTES,
    SectorRequest,
    collisions,
    elements_of,
    passes_of,
    request_of,
    unpadded_wavefronts,
    wanted_words,
)
from gpuexplore.kernels.geometry import WARP, Block, Geometry, Launch
from gpuexplore.kernels.ptx import Access, TraceStep, remembering_wavefronts
from gpuexplore.measure.check.interpreted import BlockRun, RunArray
from gpuexplore.operations.contract import Operation

MOST_BLOCKS = 4

MOST_LANES = 4  # that a sentence names


@dataclass(frozen=True, slots=True)
class BarrierInterval:
    """What a warp does between two barriers: it works from one step to another, then waits until all have arrived.

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
        arrived, missing = arrivals(step, run)
        if not missing:
            return f"Warp {step.warp} arrives at the barrier as the last one: all {_count(len(arrived), 'warp')} go on."
        return (
            f"Warp {step.warp} waits at the barrier: {len(arrived)} of {run.warps} warps have arrived, "
            f"{_warps(missing)} {'has' if len(missing) == 1 else 'have'} not."
        )
    return " ".join(_told(step.warp, access, run) for access in step.accesses)


def effect(step: TraceStep, run: BlockRun) -> str:
    """Return a step in a few words."""
    if step.is_barrier:
        arrived, missing = arrivals(step, run)
        return f"barrier: {len(arrived)} of {len(arrived) + len(missing)} warps are there"
    return "; ".join(_effect(access, run) for access in step.accesses)


def arrivals(step: TraceStep, run: BlockRun) -> tuple[list[int], list[int]]:
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


def block_sectors(run: BlockRun) -> SectorRequest:
    """Return the sectors of the steps that were kept, each request by itself; none outside of every array."""
    accesses = (access for step in run.steps for access in step.accesses)
    requests = [request_of(access) for access in accesses if access.memory == "global" and array_of(access, run.arrays)]
    return SectorRequest(
        sum(request.sectors for request in requests),
        sum(request.useful_bytes for request in requests),
        sum(request.fewest_sectors for request in requests),
    )


def block_wavefronts(run: BlockRun) -> tuple[int, int]:
    """Return the passes of the steps that were kept through the banks of shared memory, and those without conflicts."""
    count = remembering_wavefronts()
    accesses = [access for step in run.steps for access in step.accesses]
    passes = [
        count(access.addresses, access.size_bytes, access.lanes) for access in accesses if access.memory == "shared"
    ]
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
            if (name := _name(access, run)) is not None:
                found.setdefault(f"{'writes' if access.writes else 'reads'} {name}", number)
    extra = _extra_wavefronts(steps)
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


def _extra_wavefronts(steps: Sequence[TraceStep]) -> list[int]:
    """Return how many passes through the banks conflicts cost each step."""
    count = remembering_wavefronts()
    shared = [[access for access in step.accesses if access.memory == "shared"] for step in steps]
    counts = [[count(access.addresses, access.size_bytes, access.lanes) for access in accesses] for accesses in shared]
    return [sum(taken - fewest for taken, fewest in of_step) for of_step in counts]


def _name(access: Access, run: BlockRun) -> str | None:
    if access.memory == "shared":
        return "shared memory"
    array = array_of(access, run.arrays)
    return None if array is None else array.name


def _told(warp: int, access: Access, run: BlockRun) -> str:
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
    return (
        f"Warp {warp} {verb} {what} of {array.name}{whom} in {moved}: {request.useful_bytes} of "
        f"{request.moved_bytes} bytes moved are useful ({format_percent(request.useful_share)}){_judged(request)}."
    )


def _judged(request: SectorRequest) -> str:
    if request.sectors == request.fewest_sectors:
        return "; fewer sectors could not hold them"
    return f"; {_count(request.fewest_sectors, 'sector')} would hold them if they were neighbours"


def _at_banks(who: str, access: Access) -> str:
    taken, fewest = passes_of(access)
    words = wanted_words(access)
    start = f"{who} {_count(len(words), 'word')} of shared memory in {_count(taken, 'wavefront')}"
    padded = unpadded_wavefronts(access)
    why = ""
    if padded is not None and padded[2] > taken:
        pitch, shorter, unpadded = padded
        why = f" Its rows are {pitch} bytes apart: {shorter} apart, without padding, it would take {unpadded}."
    if taken == fewest:
        return f"{start}: no two lanes want different words of one bank at once.{why}"
    bank, lanes = collisions(words)[0]
    named = ", ".join(map(str, lanes[:MOST_LANES])) + (" …" if len(lanes) > MOST_LANES else "")
    return f"{start}, where {fewest} would do: lanes {named} want different words of bank {bank}.{why}"


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
    return shape


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
