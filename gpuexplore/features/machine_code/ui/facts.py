"""The meaning of a kernel's launch and compiled code: grid, waves, registers, occupancy; and of every block shape."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.analysis.occupancy import BlockShape, Occupancy, TargetGpu, kernel_occupancy, waves
from gpuexplore.charts import NEUTRAL
from gpuexplore.core import (
    Device,
    Experiment,
    InvalidInput,
    Options,
    Result,
    format_bytes,
    format_percent,
    format_seconds,
)
from gpuexplore.features.machine_code.chart import REQUESTED_COLOR
from gpuexplore.features.machine_code.compiling import Target, compiled_kernels, known_kernels
from gpuexplore.features.machine_code.ui import KernelChoice, show_figures
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import WARP, Block, Geometry, Launch
from gpuexplore.operations.compiled import recorded
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.state import start, started
from gpuexplore.ui.session import live_supervisor
from gpuexplore.ui.shared import Shared, moment
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.later import Later, redrawn
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.turns import MEASURING

COMPILED: Shared[list[CompiledKernel | str] | None] = Shared(100)
COMPILING: Later[list[CompiledKernel | str]] = Later()


def show_launch(choice: KernelChoice, launch: Launch, gpu: TargetGpu) -> None:
    """Show what the compiler made of the kernel, how the grid passes through the GPU, and what it leaves out."""
    if launch.uncovered:
        total = prod(launch.domain)
        st.error(
            f"This grid does not cover the output: {launch.uncovered:,} of {total:,} elements "
            f"({format_percent(launch.uncovered / total)}) would never be written. The call would still return, and "
            "sooner, so its time would be wrong. It is shown here and never timed.",
            icon=":material/grid_off:",
        )
    made: Any = compile_choice(choice, gpu)
    full = None
    geometry = choice.implementation.geometry
    if made is None and geometry and choice.block == geometry.blocks[0]:
        made = recorded(choice.operation.name, choice.implementation.name, choice.dtype, gpu.compute_capability)
    if made is None:
        show_on_its_way(f"Compiling for compute capability {gpu.compute_capability}: registers and occupancy follow")
    elif isinstance(made, str):
        st.warning(f"{gpu.name}: {plain(made)}. Registers and occupancy stay unknown.", icon=":material/block:")
        made = None
    else:
        try:
            full = kernel_occupancy(made, launch, gpu)
        except InvalidInput as error:
            st.warning(f"{gpu.name}: {plain(str(error))}.", icon=":material/block:")
    _metrics(launch, made, full)
    if full:
        st.markdown("\n".join(f"- {sentence}" for sentence in _sentences(launch, made, full, gpu)))
    if made and not isinstance(made, CompiledKernel):
        st.caption("Recorded when the kernels were last compiled; compiling here takes some seconds.")


def compile_choice(choice: KernelChoice, gpu: TargetGpu) -> CompiledKernel | str | None:
    """Return the compiled kernel, or the reason why there is none; None while it is compiled.

    The block shapes that the page compares further down are compiled along: one compiler is sooner done than two.
    """
    geometry = choice.implementation.geometry
    found = compiled([_target(choice, block, gpu) for block in [choice.block, *(geometry.blocks if geometry else ())]])
    return found[0] if found else None


def compiled_here(choice: KernelChoice, gpu: TargetGpu, on_its_way: str) -> CompiledKernel | None:
    """Return the compiled kernel; None where there is none yet, which `on_its_way` says, or never, and then why."""
    made = compile_choice(choice, gpu)
    if made is None:
        show_on_its_way(on_its_way)
    if isinstance(made, str):
        st.warning(plain(made), icon=":material/block:")
        return None
    return made


def _target(choice: KernelChoice, block: Block | None, gpu: TargetGpu) -> Target:
    """Return the kernel of a choice with these threads of a block, None for its own, and what it is compiled for."""
    return Target(choice.operation.name, choice.implementation.name, choice.dtype, gpu.compute_capability, block)


def compiled(targets: Sequence[Target]) -> list[CompiledKernel | str] | None:
    """Return each target compiled, or the reason why it cannot be; None while they are compiled, see `Later`."""
    known = COMPILED.get((*targets, moment(30)), lambda: known_kernels(targets))
    return known or COMPILING.get(tuple(targets), lambda: compiled_kernels(targets))


def show_on_its_way(what: str) -> None:
    """Say what is missing of the page, that it comes by itself, and what it waits for."""
    supervisor = live_supervisor()
    why = f" {MEASURING}." if (supervisor is not None and supervisor.state == "measuring") else ""
    st.info(f"{what} in some seconds.{why}", icon=":material/hourglass_top:")


def _metrics(launch: Launch, compiled: CompiledKernel | None, full: Occupancy | None) -> None:
    show_figures(
        {
            "Occupancy": (
                format_percent(full.occupancy) if full else "–",
                "Active warps per multiprocessor, relative to its maximum",
            ),
            "Registers": (str(compiled.registers_per_thread) if compiled else "–", "32-bit registers per thread"),
            "Shared memory": (format_bytes(compiled.shared_bytes) if compiled else "–", "Per block"),
            "Spills": (
                spills_words(compiled.spill_bytes if compiled else None),
                "Registers the compiler spilled to memory",
            ),
            "Grid": (" × ".join(f"{length:,}" for length in launch.grid if length > 1) or "1", "Blocks along x, y, z"),
            "Block": (" × ".join(str(length) for length in launch.block if length > 1) or "1", "Threads along x, y, z"),
        }
    )


def spills_words(size_bytes: int | None) -> str:
    """Return what the compiler spilled, for a reader."""
    if size_bytes is None:
        return "–"
    return format_bytes(size_bytes) if size_bytes else "none"


def _sentences(launch: Launch, compiled: CompiledKernel, full: Occupancy, gpu: TargetGpu) -> list[str]:
    """Return what the figures mean, a sentence each."""
    domain = " × ".join(f"{length:,}" for length in launch.domain)
    threads = launch.threads_per_block
    sentences = [f"{launch.blocks:,} blocks of {threads} threads stride over {domain} elements."]
    if launch.tile is not None:
        each = prod(launch.tile) / threads
        share = f"{each:g} per thread" if each >= 1 else f"{1 / each:g} threads per element"
        sentences = [
            f"Each block of {threads} threads ({-(-threads // WARP)} warps) covers {' × '.join(map(str, launch.tile))} "
            f"of the {domain} elements, {share}; the grid has {launch.blocks:,} blocks."
        ]
    blocks = full.blocks_per_multiprocessor
    said = (
        f"{blocks} block{'s' if blocks > 1 else ''} per multiprocessor, {full.active_warps} of {full.max_warps} warps"
    )
    no_room = f"No block fits on a multiprocessor: {full.reason}."
    sentences.append(no_room if full.limiter is None else f"{said}: {full.limited_by}.")
    if gpu.multiprocessors and full.blocks_per_multiprocessor:
        sentences.append(_waves(launch, full, gpu.multiprocessors))
    if compiled.spill_bytes:
        sentences.append(f"{format_bytes(compiled.spill_bytes)} of registers spill to memory: use a smaller tile.")
    return sentences


def _waves(launch: Launch, full: Occupancy, multiprocessors: int) -> str:
    found = waves(launch.blocks, full.blocks_per_multiprocessor, multiprocessors)
    start = f"{multiprocessors} multiprocessors run {found.blocks_per_wave:,} blocks at once: "
    if found.full_waves == 0:
        return f"{start}this grid is smaller, so {format_percent(found.tail_idle_share)} of the slots are idle."
    if not found.tail_blocks:
        return f"{start}{found.full_waves} full waves, no idle tail."
    last = f"{found.tail_blocks:,} block{'s' if found.tail_blocks > 1 else ''}"
    return (
        f"{start}{found.count:,} waves, {found.full_waves:,} full and a last one of {last} that leaves "
        f"{format_percent(found.tail_idle_share)} of the slots idle; slot utilization over all waves is "
        f"{format_percent(found.efficiency)}."
    )


SWEEP = "sweep"  # the URL's parameter: the runs of a sweep, one a block shape
SHAPES: Shared[tuple[BlockShape, ...]] = Shared(100)


def show_blocks(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu, devices: Sequence[Device]) -> None:
    """Show the block shapes the kernel can be compiled for, with a button to measure them where the GPU is here."""
    st.subheader("Block shapes", anchor="blocks")
    here = next((device for device in devices if device.spec_key == gpu.key), None)
    if here and st.button(f"Measure every block shape on {here.id}", icon=":material/timer:"):
        experiments = [
            Experiment(
                choice.operation.name,
                (choice.shape,),
                (choice.dtype,),
                (choice.implementation.name,),
                (here.id,),
                Options(block=block),
            )
            for block in geometry.blocks
        ]
        start(experiments, [here], SWEEP)
    active = any(run.active for run in started(SWEEP))
    redrawn(_draw, 1.0 if active else None)(choice, geometry, gpu, active)
    if here is None:
        st.caption(f"{gpu.name} is not in this machine, so block shapes are compared by their theoretical occupancy.")


def _draw(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu, registered: bool) -> None:
    runs = started(SWEEP)
    if any(run.active for run in runs) != registered:
        st.rerun()
    output = choice.operation.output(choice.shape)
    launches: dict[Block, Launch] = {block: geometry.launch(output, block) for block in geometry.blocks}
    kernels = compiled([_target(choice, block, gpu) for block in launches])
    if kernels is None:
        show_on_its_way("Compiling every block shape: their comparison follows")
        return
    name = choice.implementation.name
    problems = tuple(kernel for kernel in kernels if isinstance(kernel, str))
    measured = tuple((run.id, run.progress.done, run.progress.provisional) for run in runs)
    of = (choice.operation.name, name, choice.dtype, choice.shape, gpu, problems, measured)
    cases = {result.case: result for run in runs for result in run.results}
    wanted = (choice.operation.name, choice.shape, choice.dtype, name)
    fitting = [case for case in cases if (case.operation, case.shape, case.dtype, case.implementation) == wanted]
    results = {case.options.block: cases[case] for case in fitting if case.options.block}
    shapes = SHAPES.get(of, lambda: _block_shapes(launches, kernels, gpu, results))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        show_chart(lambda: _block_occupancy(shapes), of, key="chart.blocks")
    with right:
        if any(shape.result and shape.result.measurement for shape in shapes):
            show_chart(lambda: _block_times(shapes), of, key="chart.block_times")
        else:
            show_table(
                lambda: [
                    {
                        "Block": _block_name(shape),
                        "Registers": shape.compiled.registers_per_thread if shape.compiled else None,
                        "Shared": shape.compiled.shared_bytes if shape.compiled else None,
                        "Blocks": shape.launch.blocks,
                        "Waves": shape.waves.count if shape.waves else None,
                        "Slot utilization": shape.waves.efficiency if shape.waves else None,
                        "Remarks": shape.reason or (shape.occupancy.limited_by if shape.occupancy else ""),
                    }
                    for shape in shapes
                ],
                of,
                {"Shared": "B", "Blocks": "count", "Slot utilization": "%"},
                alt=f"Table of {len(shapes)} block shapes",
            )


def _block_name(shape: BlockShape) -> str:
    """Return e.g. ``16 × 16``."""
    return " × ".join(map(str, shape.block))


def _block_times(shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the measured median seconds per call of each block shape of a kernel."""
    drawn = [
        (shape, shape.result.measurement.median_s) for shape in shapes if shape.result and shape.result.measurement
    ]
    scale = alt.Scale(domain=[0, max((seconds for _, seconds in drawn), default=1.0) * 1.2])
    x = alt.X("value:Q", title="Time per call", axis=alt.Axis(labels=False, ticks=False), scale=scale)
    return labelled_bars(_block_frame(drawn, format_seconds), x, BLOCK_TOOLTIPS, "Time per call by block shape")


def _block_frame(drawn: Sequence[tuple[BlockShape, float]], words: Callable[[float], str]) -> pd.DataFrame:
    rows = [
        {
            "block": _block_name(shape),
            "value": value,
            "said": words(value),
            "registers": shape.compiled.registers_per_thread if shape.compiled else None,
            "limiter": ", ".join(shape.occupancy.limiters) if shape.occupancy else None,
        }
        for shape, value in drawn
    ]
    return pd.DataFrame(rows, columns=["value", *BLOCK_TOOLTIPS])


def labelled_bars(
    frame: pd.DataFrame, x: alt.X, tooltips: Mapping[str, str], about: str, **style: Any
) -> alt.LayerChart:
    """Return a bar for each row with the words of its column `said`, by the first column of `tooltips`."""
    name = next(iter(tooltips))
    axis = alt.Axis(labelLimit=240, labelFlush=False)
    y = alt.Y(f"{name}:N", sort=list(frame[name]), title=None, axis=axis)
    words = [alt.Tooltip(f"{column}:N", title=heading) for column, heading in tooltips.items()]
    base = alt.Chart(frame).encode(y=y, x=x, tooltip=words)
    bars = base.mark_bar(height={"band": 0.55}, color=REQUESTED_COLOR, **style)
    labels = base.mark_text(align="left", dx=6, fontSize=13, color=NEUTRAL).encode(text=alt.Text("said:N"))
    listed = ", ".join(map(" ".join, zip(frame[name], frame["said"], strict=True))) or "nothing is known"
    return alt.LayerChart(layer=[bars, labels]).properties(
        width="container", height=36 * max(1, len(frame)) + 50, description=f"{about}: {listed}"
    )


def _block_occupancy(shapes: Sequence[BlockShape]) -> alt.LayerChart:
    """Return the theoretical occupancy of each block shape of a kernel."""
    drawn = [(shape, shape.occupancy.occupancy) for shape in shapes if shape.occupancy]
    x = alt.X("value:Q", title="Occupancy", axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1.12]))
    return labelled_bars(_block_frame(drawn, format_percent), x, BLOCK_TOOLTIPS, "Occupancy by block shape")


def _block_shapes(
    launches: Mapping[Block, Launch],
    compiled: Sequence[CompiledKernel | str],
    gpu: TargetGpu,
    results: Mapping[Block, Result],
) -> tuple[BlockShape, ...]:
    """Return each block shape with what follows from it.

    Args:
        launches: by block shape.
        compiled: of each block shape, in the same order: the kernel, or why there is none.
        gpu: the target.
        results: measured ones by block shape.
    """
    return tuple(
        _block_shape(BlockShape(block, launch, result=results.get(block)), made, gpu)
        for (block, launch), made in zip(launches.items(), compiled, strict=True)
    )


def _block_shape(bare: BlockShape, made: CompiledKernel | str, gpu: TargetGpu) -> BlockShape:
    if isinstance(made, str):
        return replace(bare, reason=made)
    try:
        full = kernel_occupancy(made, bare.launch, gpu)
    except InvalidInput as error:
        return replace(bare, compiled=made, reason=str(error))
    known = gpu.multiprocessors and full.blocks_per_multiprocessor
    passing = waves(bare.launch.blocks, full.blocks_per_multiprocessor, gpu.multiprocessors or 1) if known else None
    return replace(bare, compiled=made, occupancy=full, waves=passing, reason=full.reason)


BLOCK_TOOLTIPS = {"block": "Block", "said": "Value", "registers": "Registers", "limiter": "Limited by"}
