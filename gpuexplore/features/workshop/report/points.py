"""A room's measurements of one thing, as points: whose they are, what bounds them, and which cannot be true."""

from collections.abc import Iterator, Mapping, Sequence

import altair as alt

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.run.summary import is_memory_bound
from gpuexplore.analysis.utilization.best_results import is_plausible
from gpuexplore.analysis.utilization.utilization import shape_label, size_of
from gpuexplore.core.units import format_bytes_per_s, format_flop_per_s, format_seconds
from gpuexplore.features.workshop.chart import RoomPoint, results
from gpuexplore.features.workshop.report.facts import Column, RoomFacts, RoomRun
from gpuexplore.features.workshop.report.standings import latest_answers

MOST_ROOFS = 2  # devices whose limits are drawn: more would lie on each other
LEADER = "leader"
Kept = Sequence[tuple[RoomRun, AnalyzedResult]]


def results_for(facts: RoomFacts, column: Column) -> Kept:
    """Return what a room measured for one thing: the results of one operation, with their runs."""
    found = [(run, each) for run in _runs(facts, column) for each in run.analysis.results if _is_about(column, each)]
    measured = [(run, each) for run, each in found if each.median_s]
    return [(run, each) for run, each in measured if each.case.operation == measured[0][1].case.operation]


def results_chart(kept: Kept, names: Mapping[int, str] | None) -> alt.LayerChart:
    """Return what a room measured, as the wall shows it.

    Args:
        kept: `results_for` one thing; at least one.
        names: of the participants; None: colours stand for devices, and not for people.
    """
    by_memory = _is_by_memory(kept)
    return results(
        points_of(kept, names),
        _roofs(kept, by_memory=by_memory),
        unit="B/s" if by_memory else "FLOP/s",
        title="Memory rate" if by_memory else "Compute rate",
        by_size=_is_by_size(kept),
    )


def points_of(kept: Kept, names: Mapping[int, str] | None) -> list[RoomPoint]:
    """Return a point for each result; `kept` and `names` as of `results_chart`."""
    by_memory = _is_by_memory(kept)
    by_size = _is_by_size(kept)
    return [
        RoomPoint(
            float((size_of(each.case) if by_size else None) or each.byte_count),
            (each.bytes_per_s if by_memory else each.flop_per_s) or 0.0,
            _device(run, each) if names is None else _people(run, names),
            _about(run, each),
            not is_plausible(each.result),
        )
        for run, each in kept
    ]


def _is_by_memory(kept: Kept) -> bool:
    run, first = kept[0]
    return is_memory_bound(run.analysis) or not first.flop_count


def _is_by_size(kept: Kept) -> bool:
    """Return whether each shape has a size."""
    return all(size_of(each.case) is not None for _, each in kept)


def _runs(facts: RoomFacts, column: Column) -> Iterator[RoomRun]:
    """Yield the runs that were made for one thing: by answers to a step, or since a goal was set."""
    if column.goal:
        yield from (run for run in facts.runs if any(asked >= column.task.created_utc for _, asked in run.asked))
        return
    wanted = {run_id for answer in latest_answers(facts, column).values() for run_id in answer.runs if run_id}
    yield from (run for run in facts.runs if run.run_id in wanted)


def _is_about(column: Column, analyzed: AnalyzedResult) -> bool:
    """Return whether a result is drawn: a goal asks for an operation and a dtype, other sizes are context."""
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


def _roofs(kept: Kept, *, by_memory: bool) -> dict[str, float]:
    """Return the limits of the devices by their label; none where they are many or unknown."""
    found: dict[str, float] = {}
    for run, each in kept:
        limit = each.default_bandwidth if by_memory else each.default_peak
        if limit is not None:
            what = "memory" if by_memory else f"peak in {each.case.dtype}"
            found[f"{what}, {_device(run, each)}"] = getattr(limit, "bytes_per_s" if by_memory else "flop_per_s")
    return found if len(found) <= MOST_ROOFS else {}
