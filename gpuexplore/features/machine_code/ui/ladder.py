"""The ladder on a page: what each rung changed, and its measured share of the library where the device is here."""

from collections.abc import Mapping, Sequence
from math import prod

import streamlit as st

from gpuexplore.analysis.model import Context, RunAnalysis
from gpuexplore.analysis.occupancy import occupancy
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization.utilization import flop_per_s, shape_label
from gpuexplore.core.model import Device, Result, Run
from gpuexplore.features.machine_code.analysis import InstructionBound
from gpuexplore.features.machine_code.analysis.ladder import (
    Rung,
    ladder,
    ladder_experiment,
    libraries,
    published,
    rung_bounds,
)
from gpuexplore.features.machine_code.chart import ladder as ladder_chart
from gpuexplore.features.machine_code.chart import rung_bounds_chart
from gpuexplore.features.machine_code.ui import KernelChoice
from gpuexplore.hardware import TORCH_KINDS, accelerator_named
from gpuexplore.operations.compiled import recorded, recorded_elsewhere, toolchain
from gpuexplore.ui.markdown import small
from gpuexplore.ui.run.recorded import origin_of
from gpuexplore.ui.run.results import show_diagnosis
from gpuexplore.ui.run.state import start
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.run_head import show_small_head
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

UNITS = {
    "Share": "%",
    "Time": "s",
    "Rate": "FLOP/s",
    "First call": "s",
    "Shared": "B",
    "Spills": "B",
    "Occupancy": "%",
    "At most": "FLOP/s",
}
BOUNDS: Shared[dict[str, InstructionBound]] = Shared(100)
LADDERS: Shared[tuple[Rung, ...]] = Shared(100)
ANALYSES: Shared[RunAnalysis] = Shared(30)


def show_ladder(choice: KernelChoice, devices: Sequence[Device]) -> None:
    """Show the ladder the kernel belongs to; measured, where the run in the URL is one of this ladder."""
    st.header(f"The ladder: {choice.operation.title.lower()} in {choice.dtype}", anchor="ladder")
    names = [library.name for library in libraries(choice.operation, choice.implementation.backend)]
    library = names[0] if len(names) == 1 else f"the fastest of {' and '.join(names)}"
    st.caption(f"Each step adds one optimization. 100 % is {library}.")
    here = [
        device
        for device in devices
        if (device.kind == "cpu" if choice.gpu is None else device.kind not in ("cpu", *TORCH_KINDS))
    ]
    if here:
        _offer(choice, here[0])
    else:
        published_words = "Grey ticks: published results for comparable kernels. "
        known = published(choice.operation.name, choice.dtype)
        st.info(
            f"No CUDA device was found, so this ladder cannot be measured here. {published_words if known else ''}"
            "Choose `numba-cpu` to measure a ladder on this machine.",
            icon=":material/info:",
        )
    run_id = st.query_params.get("run")
    if run_id:
        show_run(run_id, lambda run: _show_measured(choice, run), above=show_small_head)
    else:
        _show(choice, (), ())


def _offer(choice: KernelChoice, device: Device) -> None:
    place = f"{choice.dtype} at {shape_label(choice.shape)} on {device.id}"
    if st.button(f"Measure the ladder in {place}", type="primary", icon=":material/stairs:"):
        backend = choice.implementation.backend
        shape = choice.shape
        asked = ladder_experiment(choice.operation, backend, shape, dtype=choice.dtype, device=device.id)
        start([asked], [device], "run")


def _show_measured(choice: KernelChoice, run: Run) -> None:
    results = tuple(
        result
        for result in run.results
        if (result.case.operation, result.case.dtype) == (choice.operation.name, choice.dtype)
    )
    seen = (run.id, run.progress.done, run.progress.provisional, run.active)
    _show(choice, results, seen)
    context = Context(origin=origin_of(run))
    analysis = ANALYSES.get(
        (choice.operation.name, choice.dtype, *seen), lambda: analyze(results, context=context, running=run.active)
    )
    show_diagnosis(analysis, running=run.active)


def _show(choice: KernelChoice, results: Sequence[Result], seen: tuple[object, ...]) -> None:
    """Show a ladder with its `results`, which `seen` stands for."""
    backend = choice.implementation.backend
    of = (choice.operation.name, backend, choice.dtype, choice.gpu, choice.shape, *seen)
    rungs = LADDERS.get(of, lambda: ladder(choice.operation, backend, results))
    known = published(choice.operation.name, choice.dtype)
    if any(rung.share is not None or rung.implementation.name in known for rung in rungs):
        show_chart(lambda: ladder_chart(rungs, known), of, key="chart.ladder")
    if results:
        case = results[0].case
        st.caption(f"Measured in {case.dtype} at {shape_label(case.shape)} on {case.device}, in the same rounds.")
    if any(rung.implementation.name in known for rung in rungs):
        first = next(iter(known.values()))
        words = (
            f"Grey ticks: published results for comparable kernels on {first['device']} ({first['conditions']}), "
            f"[source]({first['source']}); not measured here."
        )
        st.markdown(small(words))
    st.markdown("\n".join(f"1. **{rung.implementation.name}**: {rung.implementation.about}." for rung in rungs))
    bounds = _bounds(choice)
    if results or choice.gpu:
        alt = f"Table of the {len(rungs)} kernels of the ladder"
        show_table(lambda: [_row(rung, choice, bounds) for rung in rungs], of, UNITS, alt=alt)
    if choice.gpu:
        _show_bounds(choice, bounds)
        made_with = ", ".join(f"{name} {version}" for name, version in toolchain().items())
        st.caption(f"Registers, shared memory and spills: default blocks in {choice.dtype}, recorded with {made_with}.")
        _show_other_toolkits(choice, rungs)


def _show_other_toolkits(choice: KernelChoice, rungs: Sequence[Rung]) -> None:
    """Say what another CUDA toolkit makes of the kernels, as torch brings one along."""
    kernels_by_toolkit: dict[str, list[str]] = {}
    for rung in rungs:
        capability = choice.gpu.compute_capability if choice.gpu else ""
        names = choice.operation.name, rung.implementation.name, choice.dtype, capability
        for toolkit, made in recorded_elsewhere(*names).items():
            spills = f", {made.spill_bytes} B of spills" if made.spill_bytes else ""
            loop = f"main loop of {made.main_loop.instructions}"
            words = f"{rung.implementation.name} ({made.registers_per_thread} registers{spills}, {loop})"
            kernels_by_toolkit.setdefault(toolkit, []).append(words)
    for toolkit, kernels in kernels_by_toolkit.items():
        st.caption(f"CUDA {toolkit} compiles these differently: {', '.join(kernels)}.")


def _bounds(choice: KernelChoice) -> dict[str, InstructionBound]:
    """Return what machine code allows on the chosen GPU of the table; nothing on a CPU or a GPU of one's own."""
    row = accelerator_named(choice.gpu.key) if choice.gpu else None
    if row is None:
        return {}
    backend = choice.implementation.backend
    of = (choice.operation.name, backend, choice.dtype, choice.shape, row.key)
    return BOUNDS.get(of, lambda: rung_bounds(choice.operation, backend, choice.shape, dtype=choice.dtype, gpu=row))


def _show_bounds(choice: KernelChoice, bounds: Mapping[str, InstructionBound]) -> None:
    if choice.gpu is None or not any(bound.flop_per_s for bound in bounds.values()):
        return
    of = (choice.operation.name, choice.implementation.backend, choice.dtype, choice.shape, choice.gpu.key)
    show_chart(lambda: rung_bounds_chart(bounds), of, key="chart.bounds")
    st.caption(
        f"Upper bounds at the rated clock of {choice.gpu.name}, unless the arrays stay in the caches: the limits of "
        "each kernel's main loop and of the roofline at this shape. Cache misses, bank conflicts, barriers and edges "
        "cost extra time. Not measured."
    )


def _row(rung: Rung, choice: KernelChoice, bounds: Mapping[str, InstructionBound]) -> dict[str, object]:
    name = rung.implementation.name
    known = bounds.get(name, InstructionBound())
    allowed = {
        "At most": known.flop_per_s,
        "First bottleneck": known.bottleneck.replace("_", " ") if known.bottleneck else None,
    }
    return {"Kernel": name} | _measured(rung) | _compiled(rung, choice) | allowed


def _measured(rung: Rung) -> dict[str, object]:
    """Return the columns of a measured ladder, unknown where it was not measured."""
    result = rung.result
    if result is None:
        return dict.fromkeys(("Share", "Of", "Time", "Rate", "First call", "Status"))
    median_s = result.measurement.median_s if result.measurement else None
    return {
        "Share": rung.share,
        "Of": rung.baseline,
        "Time": median_s,
        "Rate": flop_per_s(result),
        "First call": result.measurement.first_call_s if result.measurement else None,
        "Status": result.reason or result.status.value,
    }


def _compiled(rung: Rung, choice: KernelChoice) -> dict[str, object]:
    """Return the columns of compiled kernels, unknown on a CPU and for targets nothing is recorded for."""
    geometry = rung.implementation.geometry
    gpu = choice.gpu
    known = None
    if gpu:
        known = recorded(choice.operation.name, rung.implementation.name, choice.dtype, gpu.compute_capability)
    if geometry is None or gpu is None or known is None:
        return dict.fromkeys(("Block", "Registers", "Shared", "Spills", "Occupancy"))
    full = occupancy(
        gpu.limits,
        threads_per_block=prod(geometry.blocks[0]),
        registers_per_thread=known.registers_per_thread,
        shared_bytes_per_block=known.shared_bytes,
    )
    return {
        "Block": " × ".join(map(str, geometry.blocks[0])),
        "Registers": known.registers_per_thread,
        "Shared": known.shared_bytes,
        "Spills": known.spill_bytes,
        "Occupancy": full.occupancy,
    }
