"""The ladder on a page: what each rung changed, and its measured share of the library where the device is here."""

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.analysis.model import Context, RunAnalysis
from gpuexplore.analysis.occupancy import occupancy
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.utilization.utilization import flop_per_s, shape_label
from gpuexplore.charts import NEUTRAL, si_label
from gpuexplore.core import (
    Device,
    Experiment,
    Result,
    Run,
    Shape,
    format_flop_per_s,
    format_interval,
    format_percent,
    format_seconds,
)
from gpuexplore.features.machine_code.analysis import InstructionBound, flop_per_byte, instruction_bound
from gpuexplore.features.machine_code.analysis.ladder import Rung, kernels, ladder, libraries, published
from gpuexplore.features.machine_code.chart import REQUESTED_COLOR
from gpuexplore.features.machine_code.ui import KernelChoice
from gpuexplore.features.machine_code.ui.facts import labelled_bars
from gpuexplore.hardware import TORCH_KINDS, Accelerator, accelerator_named, capability_of
from gpuexplore.operations import operation_named
from gpuexplore.operations.compiled import recorded, recorded_elsewhere, toolchain
from gpuexplore.operations.contract import Operation
from gpuexplore.recorded import recorded_results, recorded_run
from gpuexplore.recorded.recording import run_id
from gpuexplore.ui.markdown import small
from gpuexplore.ui.run.recorded import origin_of, show_badge
from gpuexplore.ui.run.results import show_diagnosis
from gpuexplore.ui.run.state import start
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.run_head import show_small_head
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

ROW_HEIGHT = 40
TOOLTIPS = {"rung": "Kernel", "percent": "Share", "interval": "95 % interval", "time": "Median time", "baseline": "Of"}
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
    st.subheader(f"The ladder: {choice.operation.title.lower()} in {choice.dtype}", anchor="ladder")
    here = [
        device
        for device in devices
        if (device.kind == "cpu" if choice.gpu is None else device.kind not in ("cpu", *TORCH_KINDS))
    ]
    place = f"{choice.dtype} at {shape_label(choice.shape)} on {here[0].id}" if here else ""
    if here and st.button(f"Measure the ladder in {place}", type="primary", icon=":material/stairs:"):
        backend = choice.implementation.backend
        asked = _ladder_experiment(choice.operation, backend, choice.shape, dtype=choice.dtype, device=here[0].id)
        start([asked], here[:1], "run")
    if given := st.query_params.get("run"):
        show_run(given, lambda run: _show_measured(choice, run), above=show_small_head)
    else:
        gpu = choice.gpu.key if choice.gpu else ""
        results, seen = _recorded(choice.operation.name, choice.implementation.backend, choice.dtype, gpu)
        for recorded_id in seen:
            show_badge(recorded_run(recorded_id))
        _show(choice, results, seen)
    if not here:
        st.caption(
            "No CUDA device was found, so this ladder cannot be measured here. "
            "Choose `numba-cpu` to measure a ladder on this machine."
        )


@cache
def _recorded(operation: str, backend: str, dtype: str, gpu: str) -> tuple[tuple[Result, ...], tuple[str, ...]]:
    """Return what a recording has of a ladder on a GPU, at its largest shape, and the id of its run; neither if none.

    Of several recordings it is the newest.
    """
    own = {row.name for row in operation_named(operation).implementations if row.backend == backend}
    found = [
        (recording.date, result.case.group, recording, run_id(recording, result))
        for recording, result in recorded_results()
        if (result.case.operation, result.case.dtype) == (operation, dtype) and result.case.implementation in own
        if result.measurement and result.environment and result.environment.device.spec_key == gpu
    ]
    if not found:
        return (), ()
    _, group, recording, found_id = max(found, key=lambda each: (prod(each[1][1]), each[0]))
    return tuple(result for result in recording.results if result.case.group == group), (found_id,)


def _ladder_experiment(operation: Operation, backend: str, shape: Shape, *, dtype: str, device: str) -> Experiment:
    """Return the experiment that measures a whole ladder and the libraries in the same rounds."""
    names = tuple(row.name for found in (libraries, kernels) for row in found(operation, backend))
    return Experiment(operation.name, (shape,), (dtype,), names, (device,))


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
    measured = [(rung.share, f"The fastest step, {rung.implementation.name},", "") for rung in rungs if rung.share]
    others = [(float(row["share"]), f"A kernel like {name}", f" on {row['device']}") for name, row in known.items()]
    if measured or any(rung.implementation.name in known for rung in rungs):
        share, name, where = max(measured or others)
        published_words = "" if measured else ", as others published"
        st.markdown(f"#### {name} reaches {format_percent(share)} of the library's speed{where}{published_words}.")
        show_chart(lambda: _ladder_chart(rungs, known), of, key="chart.ladder")
    names = [library.name for library in libraries(choice.operation, backend)]
    words = f"Each step adds one optimization; 100 % is {names[0] if len(names) == 1 else 'the fastest library'}."
    if results:
        case = results[0].case
        device = results[0].environment.device.title if results[0].environment else case.device
        words += f" Bars: measured in {case.dtype} at {shape_label(case.shape)} on {device}, in the same rounds."
    st.caption(words)
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


def _ladder_chart(rungs: Sequence[Rung], published: Mapping[str, Mapping[str, str]] | None = None) -> alt.LayerChart:
    """Return a bar for each measured rung, in order, and the library itself as a line.

    Args:
        published: what other authors' kernels of that kind reached, by implementation; drawn as ticks.
    """
    columns = ["rung", "share", "low", "high", *(name for name in TOOLTIPS if name != "rung")]
    frame = pd.DataFrame([_bar(rung) for rung in rungs if rung.share is not None], columns=columns)
    names = [rung.implementation.name for rung in rungs]
    known = [(name, float(row["share"]), row["device"]) for name in names if (row := (published or {}).get(name))]
    said = [(name, share, f"{format_percent(share)} on {device}") for name, share, device in known]
    other = pd.DataFrame(said, columns=["rung", "share", "said"])
    largest = max([1.0, *frame["share"], *other["share"]])
    y = alt.Y(
        "rung:N", sort=names, title=None, axis=alt.Axis(labelLimit=240, labelFlush=False), scale=alt.Scale(domain=names)
    )
    x = alt.X(
        "share:Q",
        title="Share of the library's speed",
        axis=alt.Axis(format=".0%", tickCount=6),
        scale=alt.Scale(domain=[0, largest * 1.15]),
    )
    base = alt.Chart(frame).encode(y=y, x=x)
    words = [alt.Tooltip(f"{name}:N", title=title) for name, title in TOOLTIPS.items()]
    bars = base.mark_bar(height={"band": 0.55}, color=REQUESTED_COLOR).encode(tooltip=words)
    spans = base.mark_rule(strokeWidth=2, color=NEUTRAL, clip=True).encode(x=alt.X("low:Q"), x2=alt.X2("high:Q"))
    labels = base.mark_text(align="left", dx=8, fontSize=13, color=NEUTRAL).encode(x="high:Q", text="percent:N")
    line = (
        alt.Chart(pd.DataFrame({"share": [1.0]})).mark_rule(color=NEUTRAL, strokeDash=[4, 3]).encode(x=alt.X("share:Q"))
    )
    publications = alt.Chart(other).encode(y=y, x=x, tooltip=[alt.Tooltip("said:N", title="Published")])
    ticks = publications.mark_tick(thickness=3, size=24, color=NEUTRAL, orient="vertical")
    paths = publications.mark_bar(height={"band": 0.55}, color=NEUTRAL, opacity=0.2)
    shares = [f"{rung.implementation.name} {format_percent(rung.share)}" for rung in rungs if rung.share is not None]
    described = f"Share of the library's speed: {', '.join(shares) or 'nothing is measured'}"
    return alt.LayerChart(layer=[paths, bars, spans, line, ticks, labels]).properties(
        width="container", height=ROW_HEIGHT * len(names) + 50, description=described
    )


def _bar(rung: Rung) -> dict[str, object]:
    low, high = rung.ci95 or (rung.share, rung.share)
    median_s = rung.result.measurement.median_s if rung.result and rung.result.measurement else None
    return {
        "rung": rung.implementation.name,
        "share": rung.share,
        "low": low,
        "high": high,
        "percent": format_percent(rung.share),
        "interval": format_interval(rung.ci95, format_percent) if rung.ci95 else "too few samples",
        "time": format_seconds(median_s),
        "baseline": rung.baseline,
    }


def _show_other_toolkits(choice: KernelChoice, rungs: Sequence[Rung]) -> None:
    """Say what another CUDA toolkit makes of the kernels, as torch brings one along."""
    kernels_by_toolkit: dict[str, list[str]] = {}
    for rung in rungs:
        names = (choice.operation.name, rung.implementation.name, choice.dtype)
        for toolkit, made in recorded_elsewhere(*names, choice.gpu.compute_capability if choice.gpu else "").items():
            spills = f", {made.spill_bytes} B of spills" if made.spill_bytes else ""
            words = f"registers{spills}, main loop of {made.main_loop.instructions}"
            listed = kernels_by_toolkit.setdefault(toolkit, [])
            listed.append(f"{rung.implementation.name} ({made.registers_per_thread} {words})")
    for toolkit, listed in kernels_by_toolkit.items():
        st.caption(f"CUDA {toolkit} compiles these differently: {', '.join(listed)}.")


def _bounds(choice: KernelChoice) -> dict[str, InstructionBound]:
    """Return what machine code allows on the chosen GPU of the table; nothing on a CPU or a GPU of one's own."""
    row = accelerator_named(choice.gpu.key) if choice.gpu else None
    if row is None:
        return {}
    backend = choice.implementation.backend
    of = (choice.operation.name, backend, choice.dtype, choice.shape, row.key)
    return BOUNDS.get(of, lambda: _rung_bounds(choice.operation, backend, choice.shape, dtype=choice.dtype, gpu=row))


def _rung_bounds(
    operation: Operation, backend: str, shape: Shape, *, dtype: str, gpu: Accelerator
) -> dict[str, InstructionBound]:
    """Return the bound of each rung that is recorded for the compute capability of `gpu`, from the naive one up."""
    intensity = flop_per_byte(operation, shape, dtype)
    bounds = {}
    for row in kernels(operation, backend):
        compiled = recorded(operation.name, row.name, dtype, gpu.compute_capability)
        if compiled is None:
            continue
        full = occupancy(
            capability_of(gpu),
            threads_per_block=prod(row.geometry.blocks[0]) if row.geometry else 1,
            registers_per_thread=compiled.registers_per_thread,
            shared_bytes_per_block=compiled.shared_bytes,
        )
        bounds[row.name] = instruction_bound(compiled.main_loop, gpu, full, intensity)
    return bounds


def _show_bounds(choice: KernelChoice, bounds: Mapping[str, InstructionBound]) -> None:
    if choice.gpu is None or not any(bound.flop_per_s for bound in bounds.values()):
        return
    of = (choice.operation.name, choice.implementation.backend, choice.dtype, choice.shape, choice.gpu.key)
    show_chart(lambda: _rung_bounds_chart(bounds), of, key="chart.bounds")
    st.caption(
        f"Upper bounds at the rated clock of {choice.gpu.name}, unless the arrays stay in the caches: the limits of "
        "each kernel's main loop and of the roofline at this shape. Cache misses, bank conflicts, barriers and edges "
        "cost extra time. Not measured."
    )


def _rung_bounds_chart(bounds: Mapping[str, InstructionBound]) -> alt.LayerChart:
    """Return a bar for each rung whose bound is known, hollow, for nothing of it is measured.

    It is in FLOP/s, for rungs use units of different peaks.
    """
    known = {name: bound for name, bound in bounds.items() if bound.flop_per_s is not None}
    tooltips = {"rung": "Kernel", "said": "At most", "percent": "Of its units' peak", "evidence": "First bottleneck"}
    frame = pd.DataFrame(
        [
            {
                "rate": bound.flop_per_s,
                "rung": name,
                "said": f"≤ {format_flop_per_s(bound.flop_per_s)}",
                "percent": format_percent(bound.share_of_peak),
                "evidence": bound.evidence,
            }
            for name, bound in known.items()
        ],
        columns=["rate", *tooltips],
    )
    x = alt.X(
        "rate:Q",
        title="Bound by the machine code",
        axis=alt.Axis(labelExpr=si_label("FLOP/s"), tickCount=6),
        scale=alt.Scale(domain=[0, 1.25 * max(frame["rate"], default=1.0)]),
    )
    hollow = {"fillOpacity": 0.15, "stroke": REQUESTED_COLOR, "strokeWidth": 2, "strokeDash": [5, 3]}
    return labelled_bars(frame, x, tooltips, "Upper bound by the machine code", **hollow)


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
    names = (choice.operation.name, rung.implementation.name, choice.dtype)
    known = recorded(*names, gpu.compute_capability) if gpu else None
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
