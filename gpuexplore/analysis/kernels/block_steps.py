"""What a block's steps mean: a sentence for each, the warps that wait at a barrier, and sums over the block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpuexplore.analysis.kernels.memory_access import (
    SECTOR_BYTES,
    Request,
    elements_of,
    passes_of,
    request_of,
    unpadded_wavefronts,
)
from gpuexplore.kernels.ptx import Access, TraceStep, remembering_wavefronts
from gpuexplore.measure.check.interpreted import BlockRun, RunArray
from gpuexplore.units import format_percent

MOST_LANES = 4  # that a sentence names


@dataclass(frozen=True, slots=True)
class BlockTotal:
    """What the steps of a block that were kept cost together.

    Attributes:
        moved_bytes: of device memory, in whole sectors, each request by itself.
        useful_bytes: that the lanes asked for.
        wavefronts: passes through the banks of shared memory.
        fewest: passes without any bank conflict.
    """

    moved_bytes: int
    useful_bytes: int
    wavefronts: int
    fewest: int


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
        return _at_barrier(step, run)
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


def block_total(run: BlockRun) -> BlockTotal:
    """Return the sums over the steps that were kept; accesses outside of every array are left out."""
    count = remembering_wavefronts()
    accesses = [access for step in run.steps for access in step.accesses]
    requests = [request_of(access) for access in accesses if access.memory == "global" and array_of(access, run.arrays)]
    passes = [
        count(access.addresses, access.size_bytes, access.lanes) for access in accesses if access.memory == "shared"
    ]
    return BlockTotal(
        moved_bytes=sum(request.moved_bytes for request in requests),
        useful_bytes=sum(request.useful_bytes for request in requests),
        wavefronts=sum(taken for taken, _ in passes),
        fewest=sum(fewest for _, fewest in passes),
    )


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
    request, elements = request_of(access), elements_of(access, array)
    what = f"{len(elements)} elements" if len(elements) > 1 else "one element"
    whom = f" for its {access.lanes.size} lanes," if len(elements) < access.lanes.size else ""
    moved = f"{_count(request.sectors, 'sector')} of {SECTOR_BYTES} bytes"
    share = format_percent(request.useful_share)
    judged = _judged(request)
    return (
        f"Warp {warp} {verb} {what} of {array.name}{whom} in {moved}: {request.useful_bytes} of "
        f"{request.moved_bytes} bytes moved are useful ({share}){judged}."
    )


def _judged(request: Request) -> str:
    if request.sectors == request.fewest_sectors:
        return "; fewer sectors could not hold them"
    return f"; {_count(request.fewest_sectors, 'sector')} would hold them if they were neighbours"


def _at_banks(who: str, access: Access) -> str:
    passes = passes_of(access)
    words = len(passes.words)
    start = f"{who} {_count(words, 'word')} of shared memory in {_count(passes.wavefronts, 'wavefront')}"
    padded = unpadded_wavefronts(access)
    why = ""
    if padded is not None and padded[2] > passes.wavefronts:
        pitch, shorter, taken = padded
        why = f" Its rows are {pitch} bytes apart: {shorter} apart, without padding, it would take {taken}."
    if passes.wavefronts == passes.fewest:
        return f"{start}: no two lanes want different words of one bank at once.{why}"
    bank, lanes = passes.collisions[0]
    named = ", ".join(map(str, lanes[:MOST_LANES])) + (" …" if len(lanes) > MOST_LANES else "")
    return f"{start}, where {passes.fewest} would do: lanes {named} want different words of bank {bank}.{why}"


def _at_barrier(step: TraceStep, run: BlockRun) -> str:
    arrived, missing = arrivals(step, run)
    if not missing:
        return f"Warp {step.warp} arrives at the barrier as the last one: all {_count(len(arrived), 'warp')} go on."
    return (
        f"Warp {step.warp} waits at the barrier: {len(arrived)} of {run.warps} warps have arrived, "
        f"{_warps(missing)} {'has' if len(missing) == 1 else 'have'} not."
    )


def _effect(access: Access, run: BlockRun) -> str:
    verb = "writes" if access.writes else "reads"
    if access.memory == "shared":
        passes = passes_of(access)
        return f"{verb} shared, {_count(passes.wavefronts, 'wavefront')}"
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
