"""What is known on the page of what-ifs beside the table: results measured here or recorded, and a button for more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import streamlit as st

from gpuexplore.analysis.prediction import Calibration, calibrate
from gpuexplore.analysis.what_if.what_if import Known, WhatIf, fastest, format_in
from gpuexplore.analysis.what_if.workload import Layer, Workload
from gpuexplore.dtypes import DTYPES, format_named
from gpuexplore.model import Device, Experiment, Result, Run
from gpuexplore.recorded import recorded_results
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.submit import show_what_ended, start, started
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.session import store
from gpuexplore.ui.what_if.choice import Places


@dataclass(frozen=True, slots=True)
class _Measured:
    """Results of this machine, told apart by their runs and places."""

    ids: tuple[object, ...]
    results: tuple[Result, ...] = field(compare=False, repr=False)


def known(here: Sequence[Device], places: Places) -> Known:
    """Return what is known of the devices of this machine, recorded results, and what the visitor entered."""
    found = [
        (run_id, result)
        for device in here
        for run_id, result in reversed(store().measured_results(device))  # newest last
    ]
    measured = _Measured(tuple((run_id, result.case) for run_id, result in found), tuple(result for _, result in found))
    return Known(
        calibration=_calibration(measured),
        measured=measured.results,
        recorded=tuple(result for _, result in recorded_results()),
        times_s=places.times_s,
        prices_per_hour=places.prices_per_hour,
    )


@lru_cache(maxsize=4)  # shared by all sessions: it takes a noticeable time, and depends on nobody
def _calibration(measured: _Measured) -> Calibration:
    return calibrate(measured.results)


def offer_measuring(workload: Workload, rows: Sequence[WhatIf], measured: Sequence[Result]) -> None:
    """Draw a button that measures what is missing on each device of this machine, and the runs that were started."""
    runs = started()
    show_what_ended(runs, measured)
    if not any(run.active for run in runs):
        for device in dict.fromkeys(row.device for row in rows if not row.device.is_hypothetical):
            dtypes = [row.dtype for row in rows if row.device == device and row.support != "unsupported"]
            _offer(experiments(workload, device, dtypes, measured), device)
    for run in runs:
        if run.active or any(result.measurement is None for result in run.results):
            show_run(run.id, _not_measured)


def _offer(missing: Sequence[Experiment], device: Device) -> None:
    names = ", ".join(dict.fromkeys(dtype for experiment in missing for dtype in experiment.dtypes))
    if missing and st.button(f"Measure it here: {names} on {device.id}", type="primary", icon=":material/timer:"):
        start(missing, [device])


def experiments(
    workload: Workload, device: Device, dtypes: Sequence[str], measured: Sequence[Result]
) -> tuple[Experiment, ...]:
    """Return what is to be measured so that no layer has to be predicted: an experiment for each operation."""
    missing: dict[str, list[tuple[Layer, str]]] = {}
    for layer in workload.layers:
        for name in dict.fromkeys(format_in(layer, format_named(dtype)).name for dtype in dtypes):
            if _can_measure(layer, name) and fastest(measured, device, layer, name) is None:
                missing.setdefault(layer.operation, []).append((layer, name))
    return tuple(_experiment(found, device) for found in missing.values())


def _can_measure(layer: Layer, dtype: str) -> bool:
    return dtype in DTYPES and layer.contract.unsupported(DTYPES[dtype]) is None


def _experiment(found: Sequence[tuple[Layer, str]], device: Device) -> Experiment:
    layer = found[0][0]
    return Experiment(
        layer.operation,
        tuple(dict.fromkeys(layer.shape for layer, _ in found)),
        tuple(dict.fromkeys(dtype for _, dtype in found)),
        (layer.contract.vendor_library.name,),
        (device.id,),
    )


def _not_measured(run: Run) -> None:
    """Say why cases of a run have no time; the others are in the charts once it has ended."""
    for result in run.results:
        if result.measurement is None:
            st.caption(
                f"{result.case.dtype} at {result.case.shape}: {result.status.value}: {plain(result.reason or '')}."
            )
