"""What came of a training, in figures: a table of the modes, what fp16 loses, and what several processes bring."""

from collections.abc import Hashable

import streamlit as st

from gpuexplore.features.training.analysis import conclusions
from gpuexplore.features.training.measure.contract import ModeReport, Processes, Timing, TrainingReport
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import UNKNOWN, format_bytes, format_interval, format_percent, format_ratio, format_seconds

UNITS = {
    "Step": "s",
    "First step": "s",
    "Speedup": "×",
    "Samples/s": "count",
    "MFU": "%",
    "Zero gradients": "%",
    "Gradient error": "error",
}
WHY_NOT = (
    "**Why not DataParallel?** `torch.nn.DataParallel` is one process with a thread for each GPU: it copies the model "
    "to every GPU in every step, gathers the outputs on the first one, and its threads share Python's lock. "
    "`DistributedDataParallel` has a process for each GPU, keeps the models, and sums only the gradients, while "
    "backward goes on. On a CPU DataParallel does nothing; on two GPUs or more it is measured beside them."
)


def show_findings(report: TrainingReport, of: Hashable) -> None:
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
    return {
        "Mode": mode.name,
        "First loss": known[0] if known else None,
        "Last loss": known[-1] if known else None,
        "Step": mode.step_s.median if mode.step_s else None,
        "95 % interval": _interval(mode.step_s),
        "Speedup": mode.ratio.median if mode.ratio else None,
        "Samples/s": round(mode.samples_per_s) if mode.samples_per_s else None,
        "MFU": mode.mfu,
        "Zero gradients": mode.zero_gradients[-1][1] if mode.zero_gradients else None,
        "First step": mode.first_call_s,
        "Gradient error": mode.error,
    }


def _interval(timing: Timing | None) -> str | None:
    return format_interval(timing.ci95, format_seconds) if timing and timing.ci95 else None


def _show_scaling(mode: ModeReport) -> None:
    if mode.scales:
        st.markdown(
            f"**{plain(mode.name)}**: the loss scale went from {mode.scales[0][1]:,.0f} to {mode.scales[-1][1]:,.0f}; "
            f"{mode.skipped_steps} steps were skipped."
        )
    found = mode.underflow
    if found:
        unscaled, scaled, dead = map(format_percent, (found.unscaled, found.scaled, found.dead))
        st.markdown(
            f"**{plain(mode.name)}, late in training**: at a loss of {_short(found.loss)}, {unscaled} of the gradients "
            f"are zero, {scaled} where the loss is scaled by {found.scale:,.0f}, and {dead} in fp32."
        )


def _short(number: float) -> str:
    return f"{number:g}".replace("e-0", "e-")


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
        f"DDP over {plain(found.backend)}, {plain(found.mode)}, one thread for each process on a CPU, in turns with "
        f"one process that takes the whole batch: speedup {interval} at 95 %. The all-reduce of "
        f"{found.reduced_bytes:,} bytes, 4 for each parameter, takes {alone} alone; DDP does a part of it while "
        f"backward goes on. Largest relative difference of the losses to one process's: {difference}."
    )
    if found.data_parallel:
        st.caption(f"DataParallel on the same GPUs: {format_seconds(found.data_parallel.median)} a step.")
    st.markdown(WHY_NOT)


def _show_conditions(report: TrainingReport) -> None:
    peaks = dict.fromkeys(f"{mode.name.partition(' ')[0]}: {mode.peak or 'no known peak'}" for mode in report.modes)
    libraries = report.environment.libraries if report.environment else {}
    threads = "one thread for each process" if report.processes else f"{report.threads} threads"
    told = ", ".join(f"{name} {version}" for name, version in libraries.items())
    st.caption(
        plain(
            f"{report.model}: {report.parameters:,} parameters, {report.flop_count:,} FLOPs a step at batch "
            f"{report.batch:,}, {report.optimizer} with learning rate {report.learning_rate:g}, seed {report.seed}, "
            f"{threads}, {told}. Medians leave out the first step and those that warm up. "
            f"MFU relative to {'; '.join(peaks)}."
        )
    )
