"""The comparison of two runs: what changed, by how much, how sure that is, and what else differs."""

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.analysis.compare import INCONCLUSIVE, ComparedCase, RunComparison, as_markdown, compare_runs
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.charts import NEUTRAL, powers_of_two
from gpuexplore.core import NotFound, Run, format_interval, format_ratio, format_seconds
from gpuexplore.jobs.run_sources import side_of
from gpuexplore.recorded import recording_of_run, recordings, run_id_of
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.run.recorded import ICON
from gpuexplore.ui.run.state import fetch, own_runs
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import table_of
from gpuexplore.ui.url_widgets import select, show_missing

MADE: Shared[RunComparison] = Shared(100)


def show_comparison() -> None:
    """Draw what follows from two runs, and below it the choice of them."""
    if not {"a", "b"} & link.parameters().keys():
        newest = [run.id for run in own_runs()[:2]]
        example = [run_id_of(f"nvidia-{gpu}-memory", "triad") for gpu in ("h200", "h100")]
        for name, run_id in zip(("b", "a"), newest if len(newest) == len(example) else example, strict=True):
            link.write(name, run_id)
    said = st.container()
    left, right = st.columns(2, gap="medium")
    with left:
        before = _choose("Before", "a")
    with right:
        after = _choose("After", "b")
    if before is None or after is None:
        missing = "two runs" if before is after else "the run before" if before is None else "the run after"
        said.info(f"Choose {missing}, or tick two on the page Runs.", icon=":material/balance:")
        return
    key = tuple((run.id, run.title, run.progress.done, run.progress.provisional) for run in (before, after))
    found = MADE.get(key, lambda: compare_runs(side_of(before), side_of(after)))
    with said:
        st.markdown(f"#### {plain(found.headline)}")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            if recording_of_run(before.id) or recording_of_run(after.id):
                st.badge("Recorded", icon=ICON, color="violet")
            st.caption(plain(f"{_title_of(after)}, compared with {_title_of(before)}"), width="content")
        if any(each.ratio for each in found.cases):
            show_chart(lambda: _comparison(found), key, key="chart.comparison")
    _show_cases(found)


def _choose(label: str, name: str) -> Run | None:
    """Draw the choice of a run: the visitor's newest ones, recorded ones, and the one that the link names."""
    titles = {run.id: f"{run.title} · {run.created_utc[:16].replace('T', ' ')}" for run in own_runs()}
    titles |= {run.id: _title_of(run) for recording in recordings() for run in recording.as_runs()}
    asked = link.parameters().get(name)
    run = _found(asked) if asked else None
    if run and run.id not in titles:
        titles = {run.id: _title_of(run)} | titles
    if asked and run is None:
        link.write(name, None)
    chosen = select(label, name, ["", *titles], shown=lambda run_id: titles.get(run_id, "choose a run"))
    return run if run and run.id == chosen else _found(chosen) if chosen else None


def _title_of(run: Run) -> str:
    if recording := recording_of_run(run.id):
        return f"{recording.title}: {run.experiment.operation}"
    side = side_of(run)
    return f"{side.title} · {(side.when or '')[:16].replace('T', ' ')}"


def _found(run_id: str) -> Run | None:
    try:
        return fetch(run_id)
    except NotFound as error:
        show_missing(error)
        return None


def _show_cases(found: RunComparison) -> None:
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
        st.popover("Copy as Markdown", icon=":material/content_copy:").code(
            as_markdown(found), language="markdown", wrap_lines=True
        )
        st.popover("Copy as command", icon=":material/terminal:").code(
            f"gpuexplore compare {found.before.source} {found.after.source}", language="bash"
        )


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
    for each in sorted(found.cases, key=lambda each: each.change is None):  # what is conclusive first
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


# The ratio of each case's times with its interval, on one log axis; left of 1 is faster.


def _comparison(found: RunComparison) -> alt.LayerChart:
    """Return the chart of the cases that have a ratio, the largest change first; of many the largest changes."""
    rows = _case_rows(found)
    title = "Time after / before: left is faster"
    order = rows["case"].tolist()
    margin = 1.05
    domain = [min([*rows["low"], 1 / margin]) / margin, max([*rows["high"], margin]) * margin]
    fine = (0.7, 0.8, 0.9, 1.1, 1.25)  # next to powers of two
    ticks = [tick for tick in (*powers_of_two(domain), *fine) if domain[0] <= tick <= domain[1]]
    x = alt.X(
        "ratio:Q",
        title=title,
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=sorted(set(ticks)), labelExpr="format(datum.value, '.3~r') + '×'"),
    )
    y = alt.Y("case:N", sort=order, title=None, axis=alt.Axis(labelLimit=170, labelOverlap=False, labelFlush=False))
    changes = ("faster", "slower", "same", INCONCLUSIVE)
    scale = alt.Scale(domain=list(changes), range=["#00816e", "#c0392b", "#5b7fb5", NEUTRAL])
    legend = alt.Legend(
        title=None, orient="top", columns=2, values=[name for name in changes if name in set(rows["change"])]
    )
    words = [alt.Tooltip(f"{name}:N", title=heading) for name, heading in WORDS.items()]
    base = alt.Chart(rows).encode(y=y, color=alt.Color("change:N", scale=scale, legend=legend))
    rule = alt.Chart(alt.InlineData(values=[{"one": 1}])).mark_rule(color=NEUTRAL, strokeDash=[2, 3], strokeWidth=1.5)
    layers = [
        rule.encode(x=alt.X("one:Q")),
        base.mark_rule(strokeWidth=2, tooltip=None).encode(x=alt.X("low:Q", title=title), x2=alt.X2("high:Q")),
        base.mark_point(filled=True, size=70, opacity=1).encode(x=x, tooltip=words),
    ]
    for index, layer in enumerate(layers):
        layer.name = f"layer_{index}"
    row_height = 25  # pixels of a case
    height = 125 + row_height * max(1, len(order))  # legend, axis and title have 125 pixels
    description = (
        f"Ratio of times of {found.after.title} over {found.before.title}, with 95 % intervals. {found.headline}"
    )
    return alt.LayerChart(layer=layers, width="container", height=height, description=description)


WORDS = {
    "case": "Case",
    "before": "Before",
    "after": "After",
    "words": "Ratio",
    "interval": "95 % interval",
    "change": "",
}


def _name(each: ComparedCase) -> str:
    """Return a case in as few words as fit an axis on a phone: ``torch fp32 384``."""
    case = each.case
    size = f"{next(iter(case.shape)):,}" if len(set(case.shape)) == 1 else shape_label(case.shape)
    return f"{case.implementation} {case.dtype} {size}"


def _case_rows(found: RunComparison) -> pd.DataFrame:
    one_device = len({each.case.device for each in found.cases}) == 1
    rows = [
        {
            "case": _name(each) if one_device else f"{_name(each)} on {each.case.device}",
            "ratio": each.ratio.value,
            "low": (each.ratio.interval or (each.ratio.value,))[0],
            "high": (each.ratio.interval or (each.ratio.value,))[-1],
            "change": each.change or INCONCLUSIVE,
            "before": format_seconds(each.before.measurement.median_s if each.before.measurement else None),
            "after": format_seconds(each.after.measurement.median_s if each.after.measurement else None),
            "words": format_ratio(each.ratio.value),
            "interval": format_interval(each.ratio.interval, format_ratio) if each.ratio.interval else "unknown",
        }
        for each in sorted(found.cases, key=lambda each: -(each.ratio.value if each.ratio else 0.0))
        if each.ratio
    ]
    most = 60  # cases: more are in the table
    shown = rows if len(rows) <= most else [*rows[: most // 2], *rows[-most // 2 :]]
    return pd.DataFrame(
        shown, columns=["case", "ratio", "low", "high", "change", "before", "after", "words", "interval"]
    )
