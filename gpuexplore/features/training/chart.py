"""Trainings: the losses of all modes over each other, the phases of a step, and the scale that a loss had."""

from collections.abc import Iterator

import altair as alt
import pandas as pd

from gpuexplore.charts.axes import powers_of_two, si_label
from gpuexplore.charts.reference_lines import labelled_rule
from gpuexplore.core.units import UNKNOWN, format_seconds
from gpuexplore.features.training.measure.contract import PHASES, ModeReport, TrainingReport


def losses(report: TrainingReport) -> alt.LayerChart:
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
    guessing = labelled_rule(report.chance_loss, f"random guessing: ln {report.classes} = {report.chance_loss:.3f}")
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


def phases(report: TrainingReport) -> alt.Chart:
    """Return the phases of a median step of each mode, one after the other."""
    rows = [
        (mode.name, phase.name, phase.time_s.median, format_seconds(phase.time_s.median), PHASES.index(phase.name))
        for mode in report.modes
        for phase in mode.phases
    ]
    frame = pd.DataFrame(rows, columns=["mode", "phase", "seconds", "time", "order"])
    present = [name for name in PHASES if name in set(frame["phase"])]
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
            description=_describe_phases(report),
        )
    )
    return chart


def _describe_phases(report: TrainingReport) -> str:
    """Return the alternative text: every phase of every mode."""
    texts = "; ".join(
        f"{mode.name}: {', '.join(f'{phase.name} {format_seconds(phase.time_s.median)}' for phase in mode.phases)}"
        for mode in report.modes
    )
    return f"Phases of a training step of {report.model} by mode: {texts}."


def scales(report: TrainingReport) -> alt.Chart:
    """Return the loss scale of each mode that has one, against the step."""
    rows = [(mode.name, step, scale) for mode in report.modes for step, scale in mode.scales]
    # the last one again where the steps end
    last = max(0, report.steps_done - 1)
    rows += [(mode.name, last, mode.scales[-1][1]) for mode in report.modes if mode.scales]
    frame = pd.DataFrame(rows, columns=["mode", "step", "scale"])
    ticks = powers_of_two([scale for _, _, scale in rows])
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
        .properties(width="container", height=240, description=_describe_scales(report))
    )
    return chart


def _describe_scales(report: TrainingReport) -> str:
    """Return the alternative text: every change of the loss scale."""
    scaled = [mode for mode in report.modes if mode.scales]
    texts = "; ".join(
        f"{mode.name}: {', '.join(f'{scale:,.0f} from step {step}' for step, scale in mode.scales)}" for mode in scaled
    )
    return f"Loss scale of GradScaler over the steps. {texts}."


def _steps(report: TrainingReport) -> alt.Scale:
    """Return the axis of the steps that were done: how many are to come is shown elsewhere."""
    return alt.Scale(domain=[0, max(1, report.steps_done - 1)], nice=False)


def _thinned(mode: ModeReport) -> Iterator[tuple[int, float | None]]:
    """Yield steps with their losses: all, or about 400, as many as are a pixel apart, and the last one."""
    every = -(-len(mode.losses) // 400)
    for step, loss in enumerate(mode.losses):
        if step % every == 0 or step == len(mode.losses) - 1:
            yield step, loss
