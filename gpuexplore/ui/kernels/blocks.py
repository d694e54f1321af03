"""Every block shape of a kernel side by side on a page: what it does to occupancy, and here to time."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from gpuexplore.analysis.kernels.blocks import BlockShape, block_shapes
from gpuexplore.charts.blocks import block_name, block_occupancy, block_times
from gpuexplore.devices import Accelerator
from gpuexplore.jobs.compiling import Target, compiled_kernels
from gpuexplore.kernels.geometry import Block, Geometry, Launch
from gpuexplore.model import Device, Experiment, Options, Result, Run
from gpuexplore.ui.kernels.choice import KernelChoice
from gpuexplore.ui.run.submit import start, started
from gpuexplore.units import format_bytes, format_percent, format_seconds

SWEEP = "sweep"  # the URL's parameter: the runs of a sweep, one a block shape
TICK_S = 1.0


def show_blocks(choice: KernelChoice, geometry: Geometry, gpu: Accelerator, devices: Sequence[Device]) -> None:
    """Show the block shapes the kernel can be compiled for; the GPU's own page entry can measure them here."""
    st.subheader("Block shapes", anchor="blocks")
    here = next((device for device in devices if device.spec_key == gpu.key), None)
    if here and st.button(f"Measure every block shape on {here.id}", icon=":material/timer:"):
        _submit(choice, geometry, here)
    active = any(run.active for run in started(SWEEP))
    st.fragment(_draw, run_every=TICK_S if active else None)(choice, geometry, gpu, active)
    if here is None:
        st.caption(f"{gpu.name} is not here, so block shapes are compared by what the compiler and the GPU allow.")


def _draw(choice: KernelChoice, geometry: Geometry, gpu: Accelerator, registered: bool) -> None:
    runs = started(SWEEP)
    if any(run.active for run in runs) != registered:
        st.rerun()
    output = choice.operation.output(choice.shape)
    launches: dict[Block, Launch] = {block: geometry.launch(output, block) for block in geometry.blocks}
    with st.spinner("Compiling every block shape …"):
        compiled = compiled_kernels([_target(choice, block, gpu) for block in launches])
    shapes = block_shapes(launches, compiled, gpu, _measured(runs, choice))
    name = choice.implementation.name
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.altair_chart(block_occupancy(name, shapes), key="chart.blocks")
    with right:
        if any(shape.result and shape.result.measurement for shape in shapes):
            st.altair_chart(block_times(name, shapes), key="chart.block_times")
        else:
            st.dataframe(_table(shapes), hide_index=True, alt=f"Table of {len(shapes)} block shapes")


def _target(choice: KernelChoice, block: Block, gpu: Accelerator) -> Target:
    return Target(choice.operation.name, choice.implementation.name, choice.dtype, gpu.compute_capability, block)


def _table(shapes: Sequence[BlockShape]) -> pd.DataFrame:
    frame = pd.DataFrame([_row(shape) for shape in shapes])
    return frame.drop(columns=[name for name in frame if frame[name].isna().all()])


def _row(one: BlockShape) -> dict[str, object]:
    return {
        "Block": block_name(one),
        "Registers": one.compiled.registers_per_thread if one.compiled else None,
        "Shared": format_bytes(one.compiled.shared_bytes) if one.compiled else None,
        "Blocks": f"{one.launch.blocks:,}",
        "Waves": one.waves.count if one.waves else None,
        "Places used": format_percent(one.waves.efficiency) if one.waves else None,
        "Time": format_seconds(one.result.measurement.median_s) if one.result and one.result.measurement else None,
        "Remarks": one.reason or (f"limited by {one.occupancy.limiter}" if one.occupancy else ""),
    }


def _submit(choice: KernelChoice, geometry: Geometry, device: Device) -> None:
    """Queue a run for each block shape: the block is a condition of a run."""
    names = (choice.implementation.name,)
    experiments = [
        Experiment(choice.operation.name, (choice.shape,), (choice.dtype,), names, (device.id,), Options(block=block))
        for block in geometry.blocks
    ]
    start(experiments, [device], SWEEP)


def _measured(runs: Sequence[Run], choice: KernelChoice) -> Mapping[Block, Result]:
    cases = {result.case: result for run in runs for result in run.results}
    wanted = (choice.operation.name, choice.shape, choice.dtype, choice.implementation.name)
    fitting = [case for case in cases if (case.operation, case.shape, case.dtype, case.implementation) == wanted]
    return {case.options.block: cases[case] for case in fitting if case.options.block}
