"""What a room measured for one thing, as points: whose they are, what bounds them, and which cannot be true."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization.best_results import is_plausible
from gpuexplore.analysis.utilization.utilization import shape_label, size_of
from gpuexplore.features.workshop.chart import RoomPoint
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun
from gpuexplore.features.workshop.report.standings import latest_answers
from gpuexplore.units import format_bytes_per_s, format_flop_per_s, format_seconds

MOST_ROOFS = 2  # devices whose limits are drawn: more would lie on each other
LEADER = "leader"


@dataclass(frozen=True, slots=True)
class Measured:
    """What a room measured for one thing.

    Attributes:
        roofs: the limits of its devices by their label, in `unit`; none where they are many or unknown.
        unit: FLOP/s, or B/s of what memory bounds.
        by_size: whether each shape has a size.
    """

    points: tuple[RoomPoint, ...]
    roofs: dict[str, float]
    unit: str
    by_size: bool


def measured_for(facts: RoomFacts, column: Column, *, by_name: bool) -> Measured | None:
    """Return what a room measured for one thing, as it is drawn; None where that is nothing.

    Args:
        by_name: whether colours stand for people, and not for devices.
    """
    found = [(run, each) for run in _runs(facts, column) for each in run.analysis.results if _is_about(column, each)]
    measured = [(run, each) for run, each in found if each.median_s]
    if not measured:
        return None
    first = measured[0][1].case.operation
    kept = [(run, each) for run, each in measured if each.case.operation == first]
    by_memory = is_memory_bound(kept[0][0].analysis) or not kept[0][1].flop_count
    by_size = all(size_of(each.case) is not None for _, each in kept)
    names = {person.number: person.name for person in facts.people}
    points = [
        RoomPoint(
            float((size_of(each.case) if by_size else None) or each.byte_count),
            (each.bytes_per_s if by_memory else each.flop_per_s) or 0.0,
            _people(run, names) if by_name else _device(run, each),
            _about(run, each),
            not is_plausible(each.result),
        )
        for run, each in kept
    ]
    roofs = _roofs(kept, by_memory=by_memory)
    return Measured(tuple(points), roofs, "B/s" if by_memory else "FLOP/s", by_size)


def _runs(facts: RoomFacts, column: Column) -> Iterator[RoomRun]:
    """Yield the runs that were made for one thing: by answers to a step, or since a goal was set."""
    if column.goal:
        yield from (run for run in facts.runs if any(asked >= column.task.created_utc for _, asked in run.asked))
        return
    wanted = {run_id for answer in latest_answers(facts, column).values() for run_id in answer.runs if run_id}
    yield from (run for run in facts.runs if run.run_id in wanted)


def _is_about(column: Column, analyzed: AnalyzedResult) -> bool:
    """Return whether a result is drawn: a goal asks for an operation and a dtype, the sizes beside are context."""
    if column.goal is None:
        return True
    settings = column.goal.settings
    return (analyzed.case.operation, analyzed.case.dtype) == (settings["operation"], settings["dtype"])


def _people(run: RoomRun, names: Mapping[int, str]) -> str:
    """Return who asked for a run: the first of them, and how many more."""
    (first, _), *others = run.asked
    name = LEADER if first is None else names.get(first, LEADER)
    return f"{name} and {len(others)} more" if others else name


def _device(run: RoomRun, analyzed: AnalyzedResult) -> str:
    name = analyzed.device.title if analyzed.device else analyzed.device_label
    return f"{name} ({run.origin})" if run.origin else name


def _about(run: RoomRun, analyzed: AnalyzedResult) -> str:
    rate = format_flop_per_s(analyzed.flop_per_s) if analyzed.flop_count else format_bytes_per_s(analyzed.bytes_per_s)
    where = f"{_device(run, analyzed)}, run {run.run_id}"
    time = f"{format_seconds(analyzed.median_s)}{', one sample' if analyzed.flag('one_sample') else ''}"
    return f"{analyzed.label}, {shape_label(analyzed.case.shape)}: {time}, {rate}, {where}"


def _roofs(kept: list[tuple[RoomRun, AnalyzedResult]], *, by_memory: bool) -> dict[str, float]:
    """Return the limits of the devices by their label; none where they are many."""
    found: dict[str, float] = {}
    for run, each in kept:
        limit = each.default_bandwidth if by_memory else each.default_peak
        if limit is not None:
            what = "memory" if by_memory else f"peak in {each.case.dtype}"
            found[f"{what}, {_device(run, each)}"] = getattr(limit, "bytes_per_s" if by_memory else "flop_per_s")
    return found if len(found) <= MOST_ROOFS else {}
