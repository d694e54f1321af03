"""The steps of one warp on a page: the picture of the memory it touches, the sentence, and the instructions around."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.analysis.kernels.block_steps import (
    array_of,
    barrier_intervals,
    costliest_read,
    effect,
    moments,
    sentence,
    steps_of,
)
from gpuexplore.analysis.kernels.memory_access import passes_of
from gpuexplore.charts.block_arrays import array_overview, array_picture
from gpuexplore.charts.block_banks import bank_picture
from gpuexplore.charts.block_warps import warp_timeline
from gpuexplore.kernels.ptx import BANKS, Access, TraceStep
from gpuexplore.measure.check.interpreted import BlockRun, RunArray
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

STEP = "step"  # the URL's parameter
AROUND = 6  # instructions of the table before and after the step
MARK = "▶"
WIDTHS = {
    name: st.column_config.Column(width=pixels)
    for name, pixels in {" ": 24, "Step": 48, "Warp": 48, "Line": 48, "Effect": 168}.items()
}


def show_steps(run: BlockRun, warp: int) -> None:
    """Show the step that is chosen of a warp, and everything around it."""
    steps = steps_of(run, warp)
    if not steps:
        st.info(f"Warp {warp} has no step among the first {len(run.steps):,} of the block.", icon=":material/info:")
        return
    default = costliest_read(run, warp)
    label = f"Step of warp {warp} (of {len(steps):,}): a load, a store or a barrier"
    place = url_widgets.slider(label, STEP, len(steps), default) if len(steps) > 1 else 1
    _show_moments(moments(run, warp), place, len(steps))
    step = steps[place - 1]
    if run.step_count > len(run.steps):
        st.caption(f"The first {len(run.steps):,} of the block's {run.step_count:,} steps.")
    st.markdown(f"#### {sentence(step, run)}")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        _show_memory(run, step)
    with right:
        _show_instructions(run, steps, place)
    _show_arrays(run, step)
    if not step.is_barrier and any(other.is_barrier for other in run.steps):
        _show_warps(run, step)


def _show_moments(found: Mapping[str, int], place: int, most: int) -> None:
    """Show buttons that move the slider: by one step, and to each moment that is worth a look."""
    with st.container(horizontal=True, gap="small"):
        _button("Back", max(1, place - 1), icon=":material/chevron_left:")
        _button("Next", min(most, place + 1), icon=":material/chevron_right:")
        for name, moment in found.items():
            _button(f"{name[0].upper()}{name[1:]}", moment)


def _button(label: str, place: int, icon: str | None = None) -> None:
    st.button(label, key=f"interpreter.{label}", icon=icon, on_click=link.write, args=(STEP, str(place)))


def _show_memory(run: BlockRun, step: TraceStep) -> None:
    if step.is_barrier:
        _show_warps(run, step)
    for index, access in enumerate(step.accesses):
        of = (run.request, step.number, index)
        array = array_of(access, run.arrays) if access.memory == "global" else None
        if array is not None:
            before = run.steps[: step.number - 1]
            _draw_array(array, access, before, of=of, key=f"chart.array.{index}")
        elif access.memory == "shared":
            _draw_banks(access, _shared_title(access, run), of=of, key=f"chart.banks.{index}")


def _draw_array(
    array: RunArray, access: Access, before: Sequence[TraceStep], *, of: tuple[object, ...], key: str
) -> None:
    show_chart(lambda: array_picture(array, access, before), of, key=key)


def _draw_banks(access: Access, title: str, *, of: tuple[object, ...], key: str) -> None:
    show_chart(lambda: bank_picture(passes_of(access), title), of, key=key)


def _shared_title(access: Access, run: BlockRun) -> str:
    first = int(access.addresses.min())
    number = sum(start <= first for start in run.shared_arrays)
    return f"Shared memory: array {number} of {len(run.shared_arrays)}, by its {BANKS} banks"


def _show_instructions(run: BlockRun, steps: Sequence[TraceStep], place: int) -> None:
    """Show the steps of the warp around the one that is chosen."""
    start = max(0, min(place - 1 - AROUND, len(steps) - 2 * AROUND - 1))
    shown = steps[start : start + 2 * AROUND + 1]
    now = steps[place - 1]
    show_table(
        lambda: [_row(step, run, step is now) for step in shown],
        (run.request, now.number),
        {},
        alt=f"Table of {len(shown)} steps of warp {now.warp} around step {place}: {effect(now, run)}",
        config=WIDTHS,
    )
    st.caption("Step counts those of all warps, Line those of the PTX. Others compute or jump, before the step.")


def _row(step: TraceStep, run: BlockRun, is_now: bool) -> dict[str, object]:
    return {
        " ": MARK if is_now else "",
        "Step": step.number,
        "Warp": step.warp,
        "Line": step.line,
        "Effect": effect(step, run),
        "Instruction": " ".join(step.text.split()),
        "Others": step.others,
    }


def _show_arrays(run: BlockRun, step: TraceStep) -> None:
    """Show every array as a whole, with the last access of the warp to each."""
    last: dict[str, Access] = {}
    for other in run.steps[: step.number]:
        if other.warp == step.warp:
            for access in other.accesses:
                if access.memory == "global" and (array := array_of(access, run.arrays)):
                    last[array.name] = access
    before = run.steps[: step.number]
    st.caption(
        f"Every array as a whole: the last access of warp {step.warp} to each, and what the block touched before."
    )
    for column, array in zip(st.columns(len(run.arrays)), run.arrays, strict=True):
        with column:
            _draw_overview(array, last.get(array.name), before, (run.request, step.number, array))


def _draw_overview(array: RunArray, access: Access | None, before: Sequence[TraceStep], of: tuple[object, ...]) -> None:
    show_chart(lambda: array_overview(array, access, before), of, key=f"chart.overview.{array.name}")


def _show_warps(run: BlockRun, step: TraceStep) -> None:
    show_chart(
        lambda: warp_timeline(barrier_intervals(run), step.number, len(run.steps)),
        (run.request, step.number),
        key="chart.warps",
    )
    st.caption("Each warp is run to its next barrier before another one is: a GPU mixes them in any order.")
