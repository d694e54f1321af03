"""A kernel run in the interpreter of PTX on a page: one block of it step by step, on a machine without a GPU."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from gpuexplore.analysis.occupancy import TargetGpu
from gpuexplore.core import GpuExploreError, NotFound, format_bytes, format_percent
from gpuexplore.features.machine_code.analysis.block_steps import (
    array_of,
    barrier_intervals,
    block_sectors,
    block_wavefronts,
    costliest_read,
    effect,
    moments,
    sentence,
    small_shape,
    steps_of,
)
from gpuexplore.features.machine_code.chart import (
    array_overview,
    array_picture,
    bank_picture,
    warp_timeline,
)
from gpuexplore.features.machine_code.kernel_files import interpret, kept_block
from gpuexplore.features.machine_code.ui import KernelChoice
from gpuexplore.features.machine_code.ui.facts import compiled_here
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Geometry
from gpuexplore.kernels.ptx import BANKS, Access, TraceStep
from gpuexplore.measure.check.interpreted import (
    MOST_BYTES,
    MOST_STEPS,
    MOST_WORK,
    BlockRun,
    KernelLaunch,
    check_size,
)
from gpuexplore.shapes import parse_shape
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.turns import run_queued
from gpuexplore.ui.url_widgets import show_problem

RUNS: Shared[BlockRun] = Shared(20)
CLICKED = "kernels.interpreter.clicked"  # in a session: a link to a kernel of its own starts nothing
LIMITS = (
    f"Arrays of {format_bytes(MOST_BYTES)} at most, {MOST_WORK:,} thread instructions, and the first "
    f"{MOST_STEPS:,} loads, stores and barriers of the block."
)


def show_interpreter(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu) -> None:
    """Show the view; a kernel other than the first is run once a visitor asks for it."""
    st.fragment(_show)(choice, geometry, gpu)
    st.caption(
        "This kernel's PTX, run by an interpreter on this server: there is no GPU and no clock, so nothing here is a "
        "time. It shows the accesses of each thread, their cost in sectors and wavefronts, and where warps wait."
    )


def _show(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu) -> None:
    made = compiled_here(choice, gpu, "Compiling: the kernel is run")
    if made is None:
        return
    said = st.container()
    controls = st.container(horizontal=True, gap="small")
    try:
        with url_widgets.problems_in(st.container()), controls.popover("Shape, block, warp", icon=":material/tune:"):
            request = _request(choice, geometry, made)
            place = st.container()
        found = _found(request)
    except GpuExploreError as error:
        show_problem(error)
        return
    if isinstance(found, str):
        st.warning(f"Not run: {plain(found)}.", icon=":material/block:")
        return
    if found is None:
        st.button(f"Run {choice.implementation.name}", type="primary", icon=":material/play_arrow:", on_click=_click)
        st.caption("Not run yet. A run takes this server up to half a minute, and pauses while the server measures.")
        return
    with place:
        warp = int(url_widgets.select("Warp", "warp", [str(number) for number in range(found.warps)]))
    for fault in found.faults:
        st.error(plain(fault), icon=":material/report:")
    if found.unwritten_bytes:
        st.error(f"{found.unwritten_bytes:,} bytes of the output were never written.", icon=":material/report:")
    icon = ":green[:material/check_circle:]" if found.is_right else ":red[:material/error:]"
    with controls:
        step = _choose_step(found, warp)
    if step:
        said.markdown(f"#### {sentence(step, found)}")
        _show_step(found, step)
    st.markdown(f"{icon} {' '.join(outcome(found))}")


def _request(choice: KernelChoice, geometry: Geometry, made: CompiledKernel) -> KernelLaunch:
    """Draw the choices of a shape and a block, and return what is to be run.

    Raises:
        InvalidInput, TooLarge: a shape that cannot be used.
    """
    small = small_shape(choice.operation, geometry, choice.block)
    shape = parse_shape(url_widgets.text("Shape run here", "small", str(small), help=LIMITS), choice.operation)
    check_size(choice.operation, shape, choice.dtype)
    launch = geometry.launch(choice.operation.output(shape), choice.block)
    x, y, z = launch.grid
    blocks = [f"{i % x},{i // x % y},{i // (x * y)}" for i in range(min(64, x * y * z))]
    place = url_widgets.select(
        f"Block of {launch.blocks:,}", "at", blocks, shown=lambda at: at.removesuffix(",0").replace(",", ", ")
    )
    along_x, along_y, along_z = map(int, place.split(","))
    return KernelLaunch(
        made.ptx,
        choice.operation.name,
        choice.dtype,
        shape,
        launch.grid,
        launch.block,
        (along_x, along_y, along_z),
        made.dynamic_shared_bytes,
    )


def _click() -> None:
    st.session_state[CLICKED] = True


def _found(request: KernelLaunch) -> BlockRun | str | None:
    """Return the run of a kernel, or why there is none; None for one that is not stored, and not asked for.

    Raises:
        InvalidInput: too much waits already.
    """
    try:
        return RUNS.get(request, lambda: _stored(request))
    except NotFound:
        is_first = link.parameters().keys() <= {"tab"}  # of which all who open the page have one run between them
        if not is_first and CLICKED not in st.session_state:
            return None
    return run_queued((request, moment(100)), lambda: _outcome(request), "Running the kernel in the interpreter")


def _stored(request: KernelLaunch) -> BlockRun:
    """Return the stored run of a kernel.

    Raises:
        NotFound: there is none yet; an error, which is not shared, so that the next visitor's look finds a new one.
    """
    found = kept_block(request)
    if found is None:
        raise NotFound("this kernel was not run")
    return found


def _outcome(request: KernelLaunch) -> BlockRun | str:
    try:
        return interpret(request)
    except GpuExploreError as error:
        return str(error)


def outcome(run: BlockRun) -> list[str]:
    """Return whether all blocks computed what they should, and what this one costs as a whole, a sentence each."""
    error = run.accuracy.relative_error
    found = "not a number" if error is None else f"{error:.1e}"
    faults = {0: "No race and no error.", 1: "1 race or error."}
    sentences = [
        f"**{'Correct' if run.is_right else 'Incorrect'}**: relative error {found} against the float64 reference "
        f"(tolerance {run.accuracy.tolerance:.1e}).",
        faults.get(len(run.faults), f"{len(run.faults)} races or errors."),
    ]
    if (share := block_sectors(run).useful_share) is not None:
        sentences.append(f"In this block {format_percent(share)} of the bytes in sectors are useful.")
    taken, fewest = block_wavefronts(run)
    if fewest:
        passes = f"{taken:,} wavefronts; without bank conflicts, {fewest:,}"
        sentences.append(f"Its accesses to shared memory take {passes}.")
    return sentences


# The steps of one warp on a page: the picture of the memory it touches, the sentence, and the instructions around.


def _choose_step(run: BlockRun, warp: int) -> TraceStep | None:
    """Draw the choice of a step of a warp, and return it; None where there is none."""
    steps = steps_of(run, warp)
    if not steps:
        st.info(f"Warp {warp} has no step among the first {len(run.steps):,} of the block.", icon=":material/info:")
        return None
    default = costliest_read(run, warp)
    label = f"Step of warp {warp} (of {len(steps):,}): a load, a store or a barrier"
    place = url_widgets.slider(label, "step", len(steps), default) if len(steps) > 1 else 1
    _button("Back", max(1, place - 1), icon=":material/chevron_left:")
    _button("Next", min(len(steps), place + 1), icon=":material/chevron_right:")
    for name, at in moments(run, warp).items():
        _button(f"{name[0].upper()}{name[1:]}", at)
    return steps[place - 1]


def _show_step(run: BlockRun, step: TraceStep) -> None:
    """Show a step of a warp, and everything around it."""
    if run.step_count > len(run.steps):
        st.caption(f"The first {len(run.steps):,} of the block's {run.step_count:,} steps.")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        if step.is_barrier:
            _show_warps(run, step)
        for index, access in enumerate(step.accesses):
            of = (run.request, step.number, index)
            array = array_of(access, run.arrays) if access.memory == "global" else None
            if array is not None:
                picture = partial(array_picture, array, access, run.steps[: step.number - 1])
                show_chart(picture, of, key=f"chart.array.{index}")
            elif access.memory == "shared":
                first = int(access.addresses.min())
                number = sum(start <= first for start in run.shared_arrays)
                title = f"Shared memory: array {number} of {len(run.shared_arrays)}, by its {BANKS} banks"
                picture = partial(bank_picture, access, title)
                show_chart(picture, of, key=f"chart.banks.{index}")
    with right:
        _show_instructions(run, steps_of(run, step.warp), step)
    _show_arrays(run, step)
    if not step.is_barrier and any(other.is_barrier for other in run.steps):
        _show_warps(run, step)


def _button(label: str, place: int, icon: str | None = None) -> None:
    st.button(label, key=f"interpreter.{label}", icon=icon, on_click=link.write, args=("step", str(place)))


def _show_instructions(run: BlockRun, steps: Sequence[TraceStep], now: TraceStep) -> None:
    """Show the steps of the warp around the one that is chosen."""
    around = 6  # instructions before and after the step
    place = 1 + next(at for at, step in enumerate(steps) if step is now)
    start = max(0, min(place - 1 - around, len(steps) - 2 * around - 1))
    shown = steps[start : start + 2 * around + 1]
    show_table(
        lambda: [
            {
                " ": "▶" if step is now else "",
                "Step": step.number,
                "Warp": step.warp,
                "Line": step.line,
                "Effect": effect(step, run),
                "Instruction": " ".join(step.text.split()),
                "Others": step.others,
            }
            for step in shown
        ],
        (run.request, now.number),
        {},
        alt=f"Table of {len(shown)} steps of warp {now.warp} around step {place}: {effect(now, run)}",
        config={
            name: st.column_config.Column(width=pixels)
            for name, pixels in {" ": 24, "Step": 48, "Warp": 48, "Line": 48, "Effect": 168}.items()
        },
    )
    st.caption(
        "Step: number among the steps of all warps. Line: line of the PTX. Others: instructions before the step "
        "that compute or jump."
    )


def _show_arrays(run: BlockRun, step: TraceStep) -> None:
    """Show every array as a whole, with the last access of the warp to each."""
    last: dict[str, Access] = {}
    for other in run.steps[: step.number]:
        if other.warp == step.warp:
            for access in other.accesses:
                if access.memory == "global" and (array := array_of(access, run.arrays)):
                    last[array.name] = access
    before = run.steps[: step.number]
    st.caption(f"Whole arrays: the last access of warp {step.warp} to each, and earlier accesses of the block.")
    for column, array in zip(st.columns(len(run.arrays)), run.arrays, strict=True):
        with column:
            show_chart(
                partial(array_overview, array, last.get(array.name), before),
                (run.request, step.number, array),
                key=f"chart.overview.{array.name}",
            )


def _show_warps(run: BlockRun, step: TraceStep) -> None:
    show_chart(
        lambda: warp_timeline(barrier_intervals(run), step.number, len(run.steps)),
        (run.request, step.number),
        key="chart.warps",
    )
    st.caption(
        "The interpreter runs each warp to its next barrier before the next warp; a GPU interleaves warps in any order."
    )
