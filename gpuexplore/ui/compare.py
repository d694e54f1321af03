"""The comparison of two runs: what changed, by how much, how sure that is, and what else differs."""

import streamlit as st

from gpuexplore.analysis.compare import RunComparison, compare_runs
from gpuexplore.analysis.comparison_texts import INCONCLUSIVE, as_markdown
from gpuexplore.charts.comparison import comparison
from gpuexplore.core.errors import NotFound
from gpuexplore.core.model import Run
from gpuexplore.jobs.run_sources import side_of
from gpuexplore.recorded import recordings
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.run.state import fetch, own_runs
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import select, show_missing

MADE: Shared[RunComparison] = Shared(100)


def show_comparison() -> None:
    """Draw the choice of two runs, and what follows from them."""
    left, right = st.columns(2, gap="medium")
    with left:
        before = _choose("Before", "a")
    with right:
        after = _choose("After", "b")
    if before is None or after is None:
        st.info("Choose two runs, or tick two on the page Runs.", icon=":material/balance:")
        if st.button("Find runs", icon=":material/search:"):
            st.switch_page(file_of("runs"))
        return
    key = tuple((run.id, run.title, run.progress.done, run.progress.provisional) for run in (before, after))
    found = MADE.get(key, lambda: compare_runs(side_of(before), side_of(after)))
    _show(found, key)


def _choose(label: str, name: str) -> Run | None:
    """Draw the choice of a run: the visitor's newest ones, recorded ones, and the one that the link names."""
    titles = {run.id: f"{run.title} · {run.created_utc[:16].replace('T', ' ')}" for run in own_runs()}
    titles |= {
        run.id: f"{recording.title}: {run.experiment.operation}"
        for recording in recordings()
        for run in recording.as_runs()
    }
    asked = link.parameters().get(name)
    run = _found(asked) if asked else None
    if run and run.id not in titles:
        side = side_of(run)
        titles = {run.id: f"{side.title} · {(side.when or '')[:16].replace('T', ' ')}"} | titles
    if asked and run is None:
        link.write(name, None)
    chosen = select(label, name, ["", *titles], shown=lambda run_id: titles.get(run_id, "choose a run"))
    return run if run and run.id == chosen else _found(chosen) if chosen else None


def _found(run_id: str) -> Run | None:
    try:
        return fetch(run_id)
    except NotFound as error:
        show_missing(error)
        return None


def _show(found: RunComparison, key: object) -> None:
    st.markdown(f"#### {plain(found.headline)}")
    if any(each.ratio for each in found.cases):
        show_chart(lambda: comparison(found), key, key="chart.comparison")
    _show_differences(found)
    if found.cases:
        st.markdown("**Cases**")
        units = {"Before": "s", "After": "s", "Ratio": "×", "95 % low": "×", "95 % high": "×"}
        table_of(_rows(found), units).show(alt=f"Table of {len(found.cases)} cases with both times and their ratio")
    for words, cases in (("before", found.only_before), ("after", found.only_after)):
        if cases:
            count = "1 case was" if len(cases) == 1 else f"{len(cases)} cases were"
            st.caption(f"{count} measured only {words}.")
    with st.container(horizontal=True):
        for label, side in (("Open before", found.before), ("Open after", found.after)):
            if st.button(label, icon=":material/visibility:"):
                st.switch_page(file_of("benchmark"), query_params={"run": side.source})
        with st.popover("Copy as Markdown", icon=":material/content_copy:"):
            st.code(as_markdown(found), language="markdown", wrap_lines=True)
        with st.popover("Copy as command", icon=":material/terminal:"):
            st.code(f"gpuexplore compare {found.before.source} {found.after.source}", language="bash")


def _show_differences(found: RunComparison) -> None:
    if not found.cases:
        return
    if not found.differences:
        st.caption("Device, versions, threads, clocks and flags are the same in both, as far as they are known.")
        return
    st.markdown("**Differences**")
    rows = [{"What": each.what, "Before": each.before, "After": each.after} for each in found.differences]
    table_of(rows, {}).show(alt=f"Table of {len(rows)} differences between the two runs")


def _rows(found: RunComparison) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for each in found.cases:
        low, high = (each.ratio.interval if each.ratio and each.ratio.interval else None) or (None, None)
        rows.append(
            {
                "Case": each.label,
                "Device": each.case.device,
                "Before": each.before.measurement and each.before.measurement.median_s,
                "After": each.after.measurement and each.after.measurement.median_s,
                "Ratio": each.ratio.value if each.ratio else None,
                "95 % low": low,
                "95 % high": high,
                "Change": each.change or INCONCLUSIVE,
                "Why": each.statement,
            }
        )
    return rows
