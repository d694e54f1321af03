"""A training on a page: what to train, the losses live, then the times, phases, scaler and processes."""

import json
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.charts import labelled_rule, powers_of_two, si_label
from gpuexplore.core import (
    UNKNOWN,
    Device,
    GpuExploreError,
    format_bytes,
    format_interval,
    format_percent,
    format_ratio,
    format_seconds,
)
from gpuexplore.features.training.analysis import conclusions
from gpuexplore.features.training.lesson_block import arguments_of
from gpuexplore.features.training.measure import activity_of
from gpuexplore.features.training.measure.contract import PHASES, ModeReport, Processes, TrainingReport, joined
from gpuexplore.features.training.measure.setup import DATA, DEFAULTS, MODES, OPTIMIZERS, PRESETS, most_processes
from gpuexplore.ui.activity import show_newest
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.url_widgets import choices_in_a_line, device, segments, select, several, show_problem, text

UNITS = {
    "Step": "s",
    "First step": "s",
    "Speedup": "×",
    "Samples/s": "count",
    "MFU": "%",
    "Zero gradients": "%",
    "Gradient error": "error",
}


def show_training() -> None:
    """Show the choices in a line, and the training that was started with them, or the newest one like it."""
    devices = known_devices()
    with choices_in_a_line() as (words, line):
        given = _choose(devices)
        chosen = device(devices)
    parts = (given["modes"].replace(",", ", "), f"{given['steps']} steps", f"{given['data']} labels", chosen.id)
    words.markdown(f"**{plain(given['model'])}** {plain(' · '.join(parts))}")
    try:
        asked = activity_of(given, chosen, _gpu_count_of(devices))
    except GpuExploreError as error:
        show_problem(error)
        line.button("Train", type="primary", icon=":material/play_arrow:", disabled=True)
        return
    show_newest(asked, timedelta(days=30), _draw, missing=_show_example, label="Train", line=line)


def _show_example() -> None:
    """Show a training that gpuexplore recorded, labelled as such."""
    report = joined([json.loads(Path(__file__).with_name("example.json").read_text(encoding="utf-8"))])
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Recorded example", icon=":material/inventory_2:", color="violet")
        st.caption("Not trained on this server yet.", width="content")
    if report:
        _draw_charts(report, ("example", 0))
    st.caption(
        "Not of this server and not with the choices above: 100 steps of 784-784-10 on two cores of an Intel Xeon "
        "(Sapphire Rapids), 2026-11-30, while other work took 62 % of the CPU: times are longer than on an idle one."
    )


def _draw(run: ActivityRun) -> None:
    report = joined(run.payloads)
    if report is None:
        return
    if run.active:
        st.progress(report.steps_done / report.steps, report.doing or f"Step {report.steps_done} of {report.steps}")
    key = (run.id, len(run.payloads))
    if report.steps_done:
        _draw_charts(report, key)
    _show_findings(report, key)
    if report.stopped:
        st.info(f"{report.steps_done} of {report.steps} steps: {plain(report.stopped)}.", icon=":material/timer_off:")
    if report.is_contended:
        st.warning(
            f"Contended: other work took {format_percent(report.lost_cpu_share)} of the CPU during the training. "
            "This affects times, not losses. Train again when nothing else runs.",
            icon=":material/groups:",
        )
    if report.is_contention_unknown:
        st.caption("The system does not report how much CPU other work used during the training.")


def _draw_charts(report: TrainingReport, key: tuple[str, int]) -> None:
    figures = [
        f"{plain(mode.name)} {mode.losses[-1]:.3f}"
        + (f" ({format_seconds(mode.step_s.median)} a step)" if mode.step_s else "")
        for mode in report.modes
        if mode.losses and mode.losses[-1] is not None
    ]
    st.markdown(f"#### Loss of {plain(report.model)} after {report.steps_done} steps: {', '.join(figures) or UNKNOWN}.")
    has_phases = any(mode.phases for mode in report.modes)
    left, right = st.columns([3, 2], gap="medium") if has_phases else (st.container(), None)
    with left:
        show_chart(lambda: _losses(report), key, key="chart.training.losses")
    if right:
        with right:
            show_chart(lambda: _phases(report), key, key="chart.training.phases")
    if report.data == "random":
        st.caption(
            f"The labels are random, so there is nothing to learn: the expected loss on new samples is at least "
            f"ln {report.classes} = {report.chance_loss:.3f}. A single batch can be below it by chance."
        )
    if any(len(mode.scales) > 1 for mode in report.modes):
        show_chart(lambda: _scales(report), key, key="chart.training.scales")


def _show_findings(report: TrainingReport, of: Hashable) -> None:
    """Show the table of the modes, and what is known beyond."""
    if any(mode.step_s for mode in report.modes):
        show_table(
            lambda: [_row(mode) for mode in report.modes],
            of,
            UNITS,
            alt=f"Table of {len(report.modes)} modes: loss, time of a step, samples per second, MFU, zero gradients",
        )
    st.markdown("\n".join(f"- {plain(verdict.statement)}." for verdict in conclusions(report)))
    for mode in report.modes:
        _show_scaling(mode)
    if report.processes:
        _show_processes(report.processes)
    if report.final:
        _show_conditions(report)


def _row(mode: ModeReport) -> dict[str, object]:
    known = [loss for loss in mode.losses if loss is not None]
    interval = mode.step_s and mode.step_s.ci95
    return {
        "Mode": mode.name,
        "First loss": known[0] if known else None,
        "Last loss": known[-1] if known else None,
        "Step": mode.step_s.median if mode.step_s else None,
        "95 % interval": format_interval(interval, format_seconds) if interval else None,
        "Speedup": mode.ratio.median if mode.ratio else None,
        "Samples/s": round(mode.samples_per_s) if mode.samples_per_s else None,
        "MFU": mode.mfu,
        "Zero gradients": mode.zero_gradients[-1][1] if mode.zero_gradients else None,
        "First step": mode.first_call_s,
        "Gradient error": mode.error,
    }


def _show_scaling(mode: ModeReport) -> None:
    if mode.scales:
        changed = f"went from {mode.scales[0][1]:,.0f} to" if len(mode.scales) > 1 else "stayed at"
        st.markdown(
            f"**{plain(mode.name)}**: the loss scale {changed} {mode.scales[-1][1]:,.0f}; "
            f"{mode.skipped_steps} steps were skipped."
        )
    if found := mode.underflow:
        unscaled, scaled, dead = map(format_percent, (found.unscaled, found.scaled, found.dead))
        loss = f"{found.loss:g}".replace("e-0", "e-")
        st.markdown(
            f"**{plain(mode.name)}, late in training**: at a loss of {loss}, {unscaled} of the gradients "
            f"are zero, {scaled} where the loss is scaled by {found.scale:,.0f}, and {dead} in fp32."
        )


def _show_processes(found: Processes) -> None:
    st.subheader(f"{found.count} processes", anchor="processes")
    columns = st.columns(4, gap="medium")
    columns[0].metric("Speedup over one", format_ratio(found.speedup.median) if found.speedup else UNKNOWN)
    columns[1].metric("Efficiency", format_percent(found.efficiency))
    columns[2].metric("Communicating, at most", format_percent(found.communicating))
    columns[3].metric("Reduced in a step", format_bytes(found.reduced_bytes))
    interval = format_interval(found.speedup.ci95, format_ratio) if found.speedup else UNKNOWN
    difference = UNKNOWN if found.largest_loss_difference is None else f"{found.largest_loss_difference:.1e}"
    alone = format_seconds(found.all_reduce_s.median) if found.all_reduce_s else UNKNOWN
    st.caption(
        f"DDP over {plain(found.backend)}, {plain(found.mode)}, one thread for each process on a CPU, alternating "
        f"with one process that takes the whole batch: speedup {interval} at 95 %. The all-reduce of "
        f"{found.reduced_bytes:,} bytes, 4 for each parameter, takes {alone} alone; DDP overlaps a part of it with "
        f"backward. Largest relative difference of the losses to one process: {difference}."
    )
    if found.data_parallel:
        st.caption(f"DataParallel on the same GPUs: {format_seconds(found.data_parallel.median)} per step.")
    st.markdown(
        "**Why not DataParallel?** `torch.nn.DataParallel` is one process with a thread for each GPU: it copies the "
        "model to every GPU in every step, gathers the outputs on the first one, and its threads share the GIL. "
        "`DistributedDataParallel` has a process for each GPU, keeps the models, and sums only the gradients, "
        "overlapped with backward. On a CPU DataParallel has no effect; on two GPUs or more it is measured as well."
    )


def _show_conditions(report: TrainingReport) -> None:
    peaks = dict.fromkeys(f"{mode.name.partition(' ')[0]}: {mode.peak or 'no known peak'}" for mode in report.modes)
    libraries = report.environment.libraries if report.environment else {}
    threads = "one thread for each process" if report.processes else f"{report.threads} threads"
    versions = ", ".join(f"{name} {version}" for name, version in libraries.items())
    st.caption(
        plain(
            f"{report.model}: {report.parameters:,} parameters, {report.flop_count:,} FLOPs per step at batch "
            f"{report.batch:,}, {report.optimizer} with learning rate {report.learning_rate:g}, seed {report.seed}, "
            f"{threads}, {versions}. Medians exclude the first step and the warm-up steps. "
            f"MFU relative to {'; '.join(peaks)}."
        )
    )


def _choose(devices: Sequence[Device]) -> dict[str, str]:
    """Draw the choices; return the arguments of the training, as texts."""
    model = select(
        "Model",
        "model",
        [*PRESETS, "own widths"],
        shown=lambda name: name if name in PRESETS else "Another MLP, by its widths",
    )
    if model == "own widths":
        model = text("Widths", "widths", "784-256-10", help="Layer widths of an MLP; hidden layers must be equal.")
    usual = PRESETS[model].batch if model in PRESETS else 128
    left, right = st.columns(2, gap="medium")
    with left:
        batch = text("Batch", "batch", "", help="Samples per step.", placeholder=str(usual))
    with right:
        steps = text("Steps", "steps", DEFAULTS["steps"], help="Steps of each mode.")
    data = segments("Data", "data", list(DATA), shown=str.capitalize)
    modes = several("Modes", "modes", list(MODES), default=DEFAULTS["modes"].split(","))
    about = f"{model}: {PRESETS[model].about}. " if model in PRESETS else ""
    st.caption(f"{about}{'; '.join(f'{name}: {MODES[name].about}' for name in modes)}. Data: {DATA[data]}.")
    return {"model": model, "batch": batch, "steps": steps, "modes": ",".join(modes), "data": data} | _more(devices)


def _more(devices: Sequence[Device]) -> dict[str, str]:
    with st.expander("Optimizer, processes and seed"):
        optimizer = select("Optimizer", "optimizer", list(OPTIMIZERS))
        usual = f"{OPTIMIZERS[optimizer]:g}"
        rate = text("Learning rate", "rate", "", help="Learning rate of the optimizer.", placeholder=usual)
        most = max(most_processes(device, _gpu_count_of(devices)) for device in devices)
        count = text("Processes", "processes", DEFAULTS["processes"], help=f"1 to {most}, by torch's launcher.")
        seed = text("Seed", "seed", DEFAULTS["seed"], help="Seed of the weights and the batches.")
    return {"optimizer": optimizer, "learning_rate": rate, "processes": count, "seed": seed}


def _gpu_count_of(devices: Sequence[Device]) -> int:
    """Return how many GPUs this server has."""
    return sum(device.kind == "cuda" for device in devices)


def show_lesson_measurement(_block: Any, payload: Any, key: str) -> None:
    """Show what the block `train` of a lesson found."""
    report = joined([payload]) if payload else None
    if report is None:
        st.caption("Not trained here.")
        return
    show_chart(lambda: _losses(report), repr(report), key=f"{key}.training.losses")
    _show_findings(report, repr(report))


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Training with the choices of a block."""
    query = arguments_of(block)
    return query if block.model in PRESETS else query | {"model": "own widths", "widths": block.model}


# The charts: the losses of all modes over each other, the phases of a step, and the scale that a loss had.


def _losses(report: TrainingReport) -> alt.LayerChart:
    """Return the loss of every mode against the step, with a line at the loss of guessing."""
    names = [mode.name for mode in report.modes]
    rows = [(mode.name, step, loss) for mode in report.modes for step, loss in _thinned(mode)]
    frame = pd.DataFrame(rows, columns=["mode", "step", "loss"])
    x = alt.X("step:Q", title="Step", scale=_steps(report))
    legend = alt.Legend(title=None, orient="top", columns=3)
    dashes = [[1, 0], [7, 4], [2, 3], [9, 3, 2, 3], [4, 2], [12, 4]]  # modes that agree lie over each other
    lines = (
        alt.Chart(frame)
        .mark_line(strokeWidth=2)
        .encode(
            x=x,
            y=alt.Y("loss:Q", title="Loss (cross-entropy)", scale=alt.Scale(zero=report.data == "rule")),
            color=alt.Color("mode:N", scale=alt.Scale(domain=names), legend=legend),
            strokeDash=alt.StrokeDash("mode:N", scale=alt.Scale(domain=names, range=dashes), legend=legend),
            tooltip=[
                alt.Tooltip("mode:N", title="Mode"),
                alt.Tooltip("step:Q", title="Step"),
                alt.Tooltip("loss:Q", title="Loss", format=".5f"),
            ],
        )
    )
    guessing = labelled_rule(
        report.chance_loss, f"random guessing: ln {report.classes} = {report.chance_loss:.3f}", at_right=True
    )
    chart: alt.LayerChart = alt.LayerChart(layer=[lines, *guessing]).properties(
        width="container", height=360, description=_describe_losses(report)
    )
    return chart


def _describe_losses(report: TrainingReport) -> str:
    """Return the alternative text: first and last loss of each mode."""
    ends = []
    for mode in report.modes:
        known = [loss for loss in mode.losses if loss is not None]
        ends.append(f"{mode.name} " + (f"{known[0]:.3f} to {known[-1]:.3f}" if known else UNKNOWN))
    texts = "; ".join(ends) or "no steps yet"
    return (
        f"Losses of {report.model} over {report.steps_done} of {report.steps} steps: {texts}; "
        f"random guessing has {report.chance_loss:.3f}."
    )


def _phases(report: TrainingReport) -> alt.Chart:
    """Return the phases of a median step of each mode, one after the other."""
    rows = [
        (mode.name, phase.name, phase.time_s.median, format_seconds(phase.time_s.median), PHASES.index(phase.name))
        for mode in report.modes
        for phase in mode.phases
    ]
    frame = pd.DataFrame(rows, columns=["mode", "phase", "seconds", "time", "order"])
    present = [name for name in PHASES if name in set(frame["phase"])]
    texts = "; ".join(
        f"{mode.name}: {', '.join(f'{phase.name} {format_seconds(phase.time_s.median)}' for phase in mode.phases)}"
        for mode in report.modes
    )
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("mode:N", sort=[mode.name for mode in report.modes], title=None),
            x=alt.X(
                "seconds:Q",
                title="Time of a phase, medians",
                axis=alt.Axis(labelExpr=si_label("s"), tickCount=5, labelOverlap="greedy"),
            ),
            color=alt.Color(
                "phase:N", scale=alt.Scale(domain=present), legend=alt.Legend(title=None, orient="top", columns=4)
            ),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("mode:N", title="Mode"),
                alt.Tooltip("phase:N", title="Phase"),
                alt.Tooltip("time:N", title="Time"),
            ],
        )
        .properties(
            width="container",
            height=130 + 40 * len(report.modes),
            description=f"Phases of a training step of {report.model} by mode: {texts}.",
        )
    )
    return chart


def _scales(report: TrainingReport) -> alt.Chart:
    """Return the loss scale of each mode that has one, against the step."""
    rows = [(mode.name, step, scale) for mode in report.modes for step, scale in mode.scales]
    # the last one again where the steps end
    last = max(0, report.steps_done - 1)
    rows += [(mode.name, last, mode.scales[-1][1]) for mode in report.modes if mode.scales]
    frame = pd.DataFrame(rows, columns=["mode", "step", "scale"])
    ticks = powers_of_two([scale for _, _, scale in rows])
    scaled = [mode for mode in report.modes if mode.scales]
    texts = "; ".join(
        f"{mode.name}: {', '.join(f'{scale:,.0f} from step {step}' for step, scale in mode.scales)}" for mode in scaled
    )
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(interpolate="step-after", strokeWidth=2)
        .encode(
            x=alt.X("step:Q", title="Step", scale=_steps(report)),
            y=alt.Y(
                "scale:Q",
                title="Loss scale",
                scale=alt.Scale(type="log", base=2, nice=False, domain=[min(ticks) / 2, max(ticks) * 2]),
                axis=alt.Axis(values=ticks, format=",d"),
            ),
            color=alt.Color(
                "mode:N",
                scale=alt.Scale(domain=[mode.name for mode in report.modes]),
                legend=alt.Legend(title=None, orient="top", values=list(dict.fromkeys(frame["mode"]))),
            ),
        )
        .properties(width="container", height=240, description=f"Loss scale of GradScaler over the steps. {texts}.")
    )
    return chart


def _steps(report: TrainingReport) -> alt.Scale:
    """Return the axis of the steps that were done: how many are to come is shown elsewhere."""
    return alt.Scale(domain=[0, max(1, report.steps_done - 1)], nice=False)


def _thinned(mode: ModeReport) -> Iterator[tuple[int, float | None]]:
    """Yield steps with their losses: all, or about 400, as many as are a pixel apart, and the last one."""
    every = -(-len(mode.losses) // 400)
    for step, loss in enumerate(mode.losses):
        if step % every == 0 or step == len(mode.losses) - 1:
            yield step, loss
