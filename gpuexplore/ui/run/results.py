"""Results on a page: what they mean, how they look, every figure in a table, and ways to take them away."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

import streamlit as st

from gpuexplore import charts
from gpuexplore.analysis.roofline.bound import bound
from gpuexplore.analysis.run.derived import figures
from gpuexplore.analysis.run.speedup import default_baseline
from gpuexplore.analysis.run.summary import summarize
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.analysis.utilization.rates import flop_count
from gpuexplore.charts.export import EXPORTS, export
from gpuexplore.charts.mfu import mfu_left_out
from gpuexplore.charts.speedup import speedup_left_out
from gpuexplore.devices.identity import device_key
from gpuexplore.model import Result, Run
from gpuexplore.request import as_command, as_python, from_experiment
from gpuexplore.ui.run.conditions import show_conditions
from gpuexplore.ui.run.diagnosis import show_diagnosis
from gpuexplore.ui.run.live_charts import Drawing, draw, refresh
from gpuexplore.ui.run.peak_choice import choose_against, show_every_denominator
from gpuexplore.ui.run.recorded import Beside, choose_beside, labelled, show_beside
from gpuexplore.ui.run.table import show_table

HEADING_HEIGHT = 56  # pixels: a select box fits
MIME = {".csv": "text/csv", ".json": "application/json", ".parquet": "application/vnd.apache.parquet"}


def show_results(run: Run) -> None:
    """Show the results a run has so far."""
    sentences, baseline = st.container(), _baseline(run)
    denominator, recording = st.columns(2, gap="medium")
    with denominator:
        against = choose_against(run)
    with recording:
        beside = choose_beside(run)
    show_beside(beside)
    summary = summarize(run.results, baseline=baseline, against=against, running=run.active)
    sentences.markdown(f"#### {summary.headline}")
    sentences.markdown("\n".join(f"- {sentence}" for sentence in summary.details))
    if any(result.measurement for result in run.results):
        _charts(run, against, beside)
    show_diagnosis(run.results, against, running=run.active)
    show_table(run.results, baseline=baseline, against=against)
    if not run.active:
        _take_away(run, against)
    show_every_denominator(run, against)
    show_conditions(run)


def _charts(run: Run, chosen: Against, beside: Beside) -> None:
    results, baseline = run.results, _baseline(run)
    shown = (*labelled(run), *beside.results)
    against = _against_all(shown, chosen)
    setting = (beside.name, against)
    time = Drawing("time", lambda: charts.time(shown, against), lambda: charts.time_notes(results), setting)
    mfu = Drawing("mfu", lambda: charts.mfu(shown, against), lambda: mfu_left_out(results, against), setting)
    speedup = Drawing(
        "speedup",
        lambda: charts.speedup(shown, baseline, against),
        lambda: speedup_left_out(results, baseline),
        (baseline, *setting),
    )
    if _is_memory_bound(results):
        rate_title, rate = "Memory bandwidth", _bandwidth_drawing(shown, against, setting)
    else:
        rate_title = "Compute rate"
        rate = Drawing("rate", lambda: charts.throughput(shown, against), lambda: None, setting)
    shares = any(figure.mfu is not None for figure in figures(results, against=against))
    refresh(run, [time, speedup, *([mfu] if shares else []), rate])
    _pair(run, ("Time per call", time), ("Speedup", speedup), beside=lambda: _choose_baseline(run))
    if shares:
        _pair(run, ("MFU: share of the peak that was reached", mfu), (rate_title, rate))
        return
    st.markdown(f"**{rate_title}**")
    draw(run, rate)
    if any(flop_count(result.case) for result in results):
        st.caption("There is no chart of MFU: what the results are to be held against is unknown for all of them.")


def _against_all(shown: Sequence[Result], chosen: Against) -> Against:
    """Return the choice without one's own peaks where devices differ: they are one device's."""
    devices = {device_key(result.environment.device) for result in shown if result.environment}
    return chosen if len(devices) == 1 else replace(chosen, own_peaks=(), own_bandwidth=None)


def _bandwidth_drawing(results: Sequence[Result], against: Against, setting: Hashable) -> Drawing:
    return Drawing("bandwidth", lambda: charts.bandwidth(results, against), lambda: None, setting)


def _pair(
    run: Run, left: tuple[str, Drawing], right: tuple[str, Drawing], beside: Callable[[], None] = lambda: None
) -> None:
    """Draw two charts side by side, their headings on one line; `beside` draws next to the right heading."""
    for column, (title, drawing) in zip(st.columns(2, gap="medium"), (left, right), strict=True):
        with column:
            with st.container(horizontal=True, vertical_alignment="center", height=HEADING_HEIGHT, border=False):
                st.markdown(f"**{title}**")
                if drawing is right[1]:
                    beside()
            draw(run, drawing)


def _choose_baseline(run: Run) -> None:
    st.selectbox(
        "Baseline of the speedup",
        _baselines(run),
        key=_baseline_key(run),
        format_func=lambda name: f"against {name}",
        label_visibility="collapsed",
        width=200,
    )


def _baselines(run: Run) -> list[str]:
    """Return what a speedup can be held against: the default first."""
    experiment, standard = run.experiment, default_baseline(run.results)
    options = [*experiment.implementations, *(experiment.dtypes if len(experiment.dtypes) > 1 else ())]
    return sorted(options, key=lambda name: name != standard)


def _baseline(run: Run) -> str:
    chosen = st.session_state.get(_baseline_key(run))
    return chosen if chosen in _baselines(run) else _baselines(run)[0]


def _take_away(run: Run, against: Against) -> None:
    st.markdown("**Take it with you**")
    name = f"gpuexplore-{run.experiment.operation}-{run.id}"
    with st.container(horizontal=True):
        for suffix in EXPORTS:
            st.download_button(
                suffix.removeprefix(".").upper() if suffix != ".parquet" else "Parquet",
                _content(run, suffix, against),
                file_name=f"{name}{suffix}",
                mime=MIME[suffix],
                icon=":material/download:",
                on_click="ignore",
            )
        request = from_experiment(run.experiment)
        with st.popover("Copy as command", icon=":material/terminal:"):
            st.code(as_command(request), language="bash", wrap_lines=True)
        with st.popover("Copy as Python", icon=":material/code:"):
            st.code(as_python(request), language="python", wrap_lines=True)


def _content(run: Run, suffix: str, against: Against) -> Callable[[], bytes]:
    """Return a function that makes the file only when it is asked for."""
    return lambda: export(suffix, run.experiment, run.results, against)


def _baseline_key(run: Run) -> str:
    return f"baseline.{run.id}"


def _is_memory_bound(results: Sequence[Result]) -> bool:
    largest = [result for result in results if result.measurement][-1:]
    return any(bound(result) in ("memory", "cache") or not flop_count(result.case) for result in largest)
