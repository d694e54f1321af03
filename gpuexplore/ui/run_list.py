"""The page Runs: search and filters in the URL, titles edited in place, ticked runs opened, compared and deleted."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import streamlit as st

from gpuexplore.core import (
    UNKNOWN,
    GpuExploreError,
    InvalidInput,
    NotFound,
    RunSummary,
    format_percent,
    format_si,
    read_whole,
)
from gpuexplore.core.naming import LONGEST_TITLE
from gpuexplore.jobs.run_sources import import_runs, listed_with_summaries
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded.files import GZIPPED, SUFFIXES
from gpuexplore.store import Description, ListedRun, Wanted
from gpuexplore.ui.identity import address, owner
from gpuexplore.ui.link import parameters, write
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.roles import Right, check, is_admin
from gpuexplore.ui.run.recorded import offer_recorded_runs
from gpuexplore.ui.run.state import changed, describe
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.url_widgets import is_usable, operation_title, problems_in, select, show_problem, toggle

BEFORE = "before"  # the URL's parameter of the page of the list
PER_PAGE = 50
TICKED = "runs.ticked"  # the session's key of the ids of the ticked runs
DELETED = "runs.deleted"  # and of those that were deleted last
DRAWN = "runs.drawn"  # and of how often the table was begun anew: its edits are then forgotten


def _choose_runs() -> Wanted:
    """Draw the search and the filters, and return which runs they ask for."""
    count = len({"op", "device", "tag", "mine"} & parameters().keys())
    with problems_in(st.container()), st.container(horizontal=True, vertical_alignment="bottom"):
        typed = st.text_input(
            "Search",
            key="q",
            bind="query-params",
            live=True,
            placeholder="words of a title, tag, note, device or id",
            icon=":material/search:",
        )
        with st.popover(f"Filters: {count}" if count else "Filters", icon=":material/filter_list:"):
            chosen = select("Operation", "op", ["", *OPERATIONS], shown=lambda name: operation_title(name) or "All")
            where = select("Device", "device", ["", *_device_names()], shown=lambda name: name or "All")
            tagged = select("Tag", "tag", ["", *_tags_in_use()], shown=lambda name: name or "All")
            own = toggle("Mine", "mine", help="Only runs of this browser or this account")
    return Wanted(
        owner() if own else None,
        chosen or None,
        where or None,
        tagged or None,
        typed if typed and is_usable("q", typed) else "",
    )


@shared_values(1, looks=10)
def _device_names() -> tuple[str, ...]:
    return store().device_names()


@shared_values(1, looks=10)
def _tags_in_use() -> tuple[str, ...]:
    return store().tags_in_use()


def show_runs() -> None:
    """Show the list of runs with its search, and what can be done with the ticked ones."""
    if opened := st.session_state.pop("runs.opened", ""):
        st.switch_page(file_of("benchmark"), query_params={"run": opened})
    said = st.container()
    wanted = _choose_runs()
    given = st.query_params.get(BEFORE)
    before = None if given is None else read_whole(given)
    if given is not None and before is None:
        show_problem(InvalidInput.of(BEFORE, given, "whole numbers from 1"))
    _offer_undo()
    runs = listed_with_summaries(store(), wanted, before=before, limit=PER_PAGE)
    if not runs and wanted == Wanted() and before is None:
        with said:
            st.markdown("#### No runs yet. A recorded one shows what a run says.")
            if st.button("Measure something", type="primary", icon=":material/play_arrow:"):
                st.switch_page(file_of("benchmark"))
            offer_recorded_runs("matmul", is_first_drawn=True)
            _offer_import()
        return
    here = {run.id: run for run in runs}
    found = []
    for run_id in sorted(_ticked()):
        try:
            found.append(here.get(run_id) or store().listed_run(run_id))
        except NotFound:
            _ticked().discard(run_id)
    _show_actions(found)
    if not runs:
        st.info("No run matches. Try fewer words or filters.", icon=":material/search_off:")
        return
    said.markdown(f"#### {_headline(runs)}")
    _show_table(runs)
    with st.container(horizontal=True, horizontal_alignment="right"):
        if before is not None:
            st.button("Newest", icon=":material/first_page:", on_click=write, args=(BEFORE, None))
        if len(runs) == PER_PAGE:
            st.button("Older", icon=":material/chevron_right:", on_click=write, args=(BEFORE, str(runs[-1].number)))
    _offer_import()


def _headline(runs: Sequence[ListedRun]) -> str:
    """Return how many runs are listed, and which of them came nearest to a peak, as Markdown."""
    count = "1 run" if len(runs) == 1 else f"{'The newest ' * (len(runs) == PER_PAGE)}{len(runs)} runs"
    shares = [(run.summary.share, run.title) for run in runs if run.summary and run.summary.share is not None]
    best = f", nearest to its peak “{plain(max(shares)[1])}” at {format_percent(max(shares)[0])}" if shares else ""
    return f"{count}{best}."


def _show_table(runs: Sequence[ListedRun]) -> None:
    key = f"runs.table.{hash(tuple(runs))}.{st.session_state.get(DRAWN, 0)}"
    # A table whose data change under it forgets its edits and reruns the page a moment later, which undoes what the
    # visitor clicks meanwhile: the ticks of one key stay as they were when it was first drawn.
    if key not in st.session_state:
        st.session_state["runs.begun"] = frozenset(_ticked())
    ticked = st.session_state["runs.begun"]
    summaries = [run.summary or RunSummary() for run in runs]
    columns = {
        "Tick": [run.id in ticked for run in runs],
        "Run": [run.title for run in runs],
        "Title": [run.title for run in runs],
        "Operation": [run.operation or UNKNOWN for run in runs],
        "Device": [run.device_names or ", ".join(run.devices) for run in runs],
        "When": [run.created_utc[:16].replace("T", " ") for run in runs],
        "Best rate": [format_si(summary.rate, summary.unit or "") for summary in summaries],
        "Share of peak": [None if summary.share is None else 100 * summary.share for summary in summaries],
        "Quality": [_quality_of(run) for run in runs],
        "Owner": ["me" if run.owner == owner() else "other" for run in runs],
        "Tags": pa.array([list(run.tags) for run in runs], pa.list_(pa.string())),
    }
    st.data_editor(
        pa.table(columns),
        key=key,
        hide_index=True,
        num_rows="fixed",
        disabled=[name for name in columns if name not in ("Tick", "Title", "Tags")],
        column_config=_config(runs),
        on_change=lambda: _take_edits(runs, st.session_state[key]["edited_rows"]),
        placeholder=UNKNOWN,
        alt=f"Table of {len(runs)} runs with title, operation, device, time, best rate, share of its peak and quality",
    )
    st.caption(
        "Click a title to open the run. Double-click your own tags, or titles under Rename, to change them. "
        "Times are UTC."
    )


def _config(runs: Sequence[ListedRun]) -> Mapping[str, Any]:
    tags = sorted({tag for run in runs for tag in run.tags})
    return {
        "Tick": st.column_config.CheckboxColumn("", width=36),
        "Run": st.column_config.ButtonColumn(
            "Title",
            width=190,
            type="tertiary",
            alignment="left",
            key="runs.click",
            on_click=lambda: st.session_state.update({"runs.opened": runs[st.session_state["runs.click"]["row"]].id}),
        ),
        "Title": st.column_config.TextColumn("Rename", width=96, max_chars=LONGEST_TITLE),
        "Operation": st.column_config.TextColumn(width=80),
        "Device": st.column_config.TextColumn(width=100),
        "When": st.column_config.TextColumn(width=116),
        "Best rate": st.column_config.TextColumn(
            width=90, help="The highest of the run; in bytes per second if it is memory-bound"
        ),
        "Share of peak": st.column_config.NumberColumn(
            "Of peak", help="Best rate as a share of the rated or measured peak", format="%.3g %%", width=70
        ),
        "Quality": st.column_config.TextColumn(
            help="clean: hardly any measurement was disturbed; noisy: times varied; contended: other work ran at the "
            "same time; imported: measured elsewhere",
            width=78,
        ),
        "Owner": st.column_config.TextColumn(width=52),
        "Tags": st.column_config.MultiselectColumn(options=tags, accept_new_options=True, width=72),
    }


def _quality_of(run: ListedRun) -> str:
    """Return how far a run's times can be trusted, or why nothing is known of that."""
    if run.origin:
        return "imported"
    return (run.summary.quality if run.summary else None) or run.state.value


def _take_edits(runs: Sequence[ListedRun], edited: Mapping[int, Mapping[str, Any]]) -> None:
    """Keep what was ticked, and write down what was renamed and tagged; what is refused is said, and undone.

    Args:
        runs: the rows of the table.
        edited: the cells that differ from what was drawn, by row, then by column.
    """
    for row, edits in edited.items():
        run = runs[row]
        if "Tick" in edits:
            (_ticked().add if edits["Tick"] else _ticked().discard)(run.id)
        changes = {column.lower(): edits[column] or "" for column in ("Title", "Tags") if column in edits}
        if changes and not describe(run.id, Description(**changes)):
            st.session_state[DRAWN] = st.session_state.get(DRAWN, 0) + 1
    _tags_in_use.forget()


def _ticked() -> set[str]:
    found: set[str] = st.session_state.setdefault(TICKED, set())
    return found


def _show_actions(ticked: Sequence[ListedRun]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Open", icon=":material/visibility:", disabled=len(ticked) != 1):
            st.switch_page(file_of("benchmark"), query_params={"run": ticked[0].id})
        if st.button("Compare", icon=":material/balance:", disabled=len(ticked) != 2):
            older, newer = sorted(ticked, key=lambda run: run.number)
            st.switch_page(file_of("compare"), query_params={"a": older.id, "b": newer.id})
        own = bool(ticked) and all(run.owner == owner() or is_admin() for run in ticked)
        st.button("Delete", icon=":material/delete:", disabled=not own, on_click=_delete, args=(tuple(ticked),))
        words = "Select two runs to compare them."
        if ticked:
            count = "1 run" if len(ticked) == 1 else f"{len(ticked)} runs"
            words = f"{count} selected{'' if own else '; only their owner can delete them'}."
        st.caption(words, width="content")


def _delete(runs: Sequence[ListedRun]) -> None:
    deleted = []
    for run in runs:
        try:
            store().delete_run(run.id, owner(), admin=is_admin(), address=address())
        except GpuExploreError as error:
            st.toast(plain(str(error)), icon=":material/error:", duration="long")
        else:
            deleted.append(run)
            _ticked().discard(run.id)
    st.session_state[DELETED] = deleted
    changed()
    _device_names.forget()


def _offer_undo() -> None:
    deleted: Sequence[ListedRun] = st.session_state.get(DELETED, ())
    if not deleted:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        what = f"“{plain(deleted[0].title)}” is" if len(deleted) == 1 else f"{len(deleted)} runs are"
        st.markdown(f":material/delete: {what} deleted, and will be erased in 30 days.", width="content")
        st.button("Undo", icon=":material/undo:", on_click=_restore, args=(tuple(deleted),))


def _restore(runs: Sequence[ListedRun]) -> None:
    for run in runs:
        try:
            store().restore_run(run.id, owner(), admin=is_admin(), address=address())
        except GpuExploreError as error:
            show_problem(error)
    st.session_state[DELETED] = ()
    changed()


def _offer_import() -> None:
    """Draw a field for files, keep the runs in those that are new, and name what is refused."""
    with st.expander("Import runs of other machines", icon=":material/upload_file:"):
        files = st.file_uploader(
            "Files",
            type=[suffix.removeprefix(".") for suffix in (*SUFFIXES, GZIPPED)],
            accept_multiple_files=True,
            key="runs.import",
            help="Runs exported as JSON, recordings, and JSON of pyperf, pytest-benchmark and nvbench. They are shown "
            "as imported and do not affect the devices of this server.",
        )
        taken: dict[str, str] = st.session_state.setdefault("runs.imported", {})  # by Streamlit's id of a file
        for file in files:
            if file.file_id not in taken:
                taken[file.file_id] = _take(file.name, file.getvalue())
            if taken[file.file_id]:
                st.success(taken[file.file_id], icon=":material/check:")


def _take(name: str, content: bytes) -> str:
    """Keep the runs of a file; return what was kept in words, empty where the file was refused."""
    try:
        check(Right.KEEP)
        with st.spinner(f"Reading {plain(name)} …"):
            runs = import_runs(store(), name, content, owner())
    except GpuExploreError as error:
        show_problem(error)
        return ""
    return f"Imported: {', '.join(plain(run.title) for run in runs)}"
