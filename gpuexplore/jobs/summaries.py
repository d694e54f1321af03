"""What lists say of runs, worked out when somebody first lists them: an analysis takes some hundredths of a second."""

from dataclasses import replace
from typing import Any

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.summary import summary_of
from gpuexplore.errors import NotFound
from gpuexplore.model import RunSummary
from gpuexplore.store import ListedRun, Store, Wanted
from gpuexplore.store.tolerant_decode import check_known

MOST_AT_ONCE = 25  # of one list; the others are worked out when it is looked at again


def listed_with_summaries(
    store: Store, wanted: Wanted = Wanted(), *, before: int | None = None, limit: int = 50
) -> tuple[ListedRun, ...]:
    """Return a page of a list, as `Store.listed` does, with what its newest runs reached.

    Raises:
        InvalidInput: as of `Store.listed`.
    """
    page = store.listed(wanted, before=before, limit=limit)
    missing = [run.id for run in page if run.summary is None and not run.active][:MOST_AT_ONCE]
    made = {run_id: summarize(store, run_id) for run_id in missing}
    return tuple(replace(run, summary=made.get(run.id) or run.summary) for run in page)


def summarize(store: Store, run_id: str) -> RunSummary:
    """Return what a list says of a run that has ended, and keep it; of one that this version cannot read, nothing."""
    try:
        run = store.load(run_id)
        check_known(run_id, run.experiment)
        summary = summary_of(analyze(run.results))
    except NotFound:
        summary = RunSummary()
    store.set_summary(run_id, summary)
    return summary


ROW = (
    *(
        "id",
        "title",
        "operation",
        "device_names",
        "devices",
        "created_utc",
        "state",
        "best",
        "rate",
        "unit",
        "share",
        "peak",
    ),
    *("quality", "why", "tags", "note", "origin", "number"),
)  # the keys of a line as a flat row


def row_of(run: ListedRun) -> dict[str, Any]:
    """Return a line of a list as a flat row: plain values, SI base units, unknown is None."""
    summary = run.summary or RunSummary()
    return {
        "id": run.id,
        "title": run.title,
        "operation": run.operation,
        "device_names": run.device_names or None,
        "devices": list(run.devices),
        "created_utc": run.created_utc,
        "state": run.state.value,
        "best": summary.best,
        "rate": summary.rate,
        "unit": summary.unit,
        "share": summary.share,
        "peak": summary.peak,
        "quality": summary.quality,
        "why": summary.why,
        "tags": list(run.tags),
        "note": run.note,
        "origin": run.origin,
        "number": run.number,
    }
