"""Every block shape of a kernel side by side on a page: what it does to occupancy, and here to time."""

from collections.abc import Mapping, Sequence

import streamlit as st

from gpuexplore.analysis.kernels.occupancy import BlockShape, TargetGpu, block_shapes
from gpuexplore.charts.blocks import block_name, block_occupancy, block_times
from gpuexplore.core.model import Device, Experiment, Options, Result, Run
from gpuexplore.kernels.geometry import Block, Geometry, Launch
from gpuexplore.ui.kernels.choice import KernelChoice
from gpuexplore.ui.kernels.facts import compiled, show_on_its_way, target
from gpuexplore.ui.run.submit import start, started
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

SWEEP = "sweep"  # the URL's parameter: the runs of a sweep, one a block shape
TICK_S = 1.0
SHAPES: Shared[tuple[BlockShape, ...]] = Shared(100)
UNITS = {"Shared": "B", "Blocks": "count", "Slot utilization": "%"}


def show_blocks(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu, devices: Sequence[Device]) -> None:
    """Show the block shapes the kernel can be compiled for, with a button to measure them where the GPU is here."""
    st.subheader("Block shapes", anchor="blocks")
    here = next((device for device in devices if device.spec_key == gpu.key), None)
    if here and st.button(f"Measure every block shape on {here.id}", icon=":material/timer:"):
        _submit(choice, geometry, here)
    active = any(run.active for run in started(SWEEP))
    st.fragment(_draw, run_every=TICK_S if active else None)(choice, geometry, gpu, active)
    if here is None:
        st.caption(f"{gpu.name} is not in this machine, so block shapes are compared by their theoretical occupancy.")


def _draw(choice: KernelChoice, geometry: Geometry, gpu: TargetGpu, registered: bool) -> None:
    runs = started(SWEEP)
    if any(run.active for run in runs) != registered:
        st.rerun()
    output = choice.operation.output(choice.shape)
    launches: dict[Block, Launch] = {block: geometry.launch(output, block) for block in geometry.blocks}
    kernels = compiled([target(choice, block, gpu) for block in launches])
    if kernels is None:
        show_on_its_way("Compiling every block shape: their comparison follows")
        return
    name, problems = choice.implementation.name, tuple(kernel for kernel in kernels if isinstance(kernel, str))
    measured = tuple((run.id, run.progress.done, run.progress.provisional) for run in runs)
    of = (choice.operation.name, name, choice.dtype, choice.shape, gpu, problems, measured)
    shapes = SHAPES.get(of, lambda: block_shapes(launches, kernels, gpu, _measured(runs, choice)))
    left, right = st.columns([2, 3], gap="medium")
    with left:
        show_chart(lambda: block_occupancy(name, shapes), of, key="chart.blocks")
    with right:
        if any(shape.result and shape.result.measurement for shape in shapes):
            show_chart(lambda: block_times(name, shapes), of, key="chart.block_times")
        else:
            alt = f"Table of {len(shapes)} block shapes"
            show_table(lambda: [_row(shape) for shape in shapes], of, UNITS, alt=alt)


def _row(shape: BlockShape) -> dict[str, object]:
    return {
        "Block": block_name(shape),
        "Registers": shape.compiled.registers_per_thread if shape.compiled else None,
        "Shared": shape.compiled.shared_bytes if shape.compiled else None,
        "Blocks": shape.launch.blocks,
        "Waves": shape.waves.count if shape.waves else None,
        "Slot utilization": shape.waves.efficiency if shape.waves else None,
        "Remarks": shape.reason or (shape.occupancy.limited_by if shape.occupancy else ""),
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
