"""Facts on the page of what-ifs apart from the table: results measured here or recorded, and a button for more."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.analysis.prediction import Calibration, calibrate
from gpuexplore.analysis.what_if.what_if import Known, WhatIf, fastest, format_in, what_if
from gpuexplore.analysis.what_if.workload import Workload, WorkloadLayer
from gpuexplore.core.dtypes import DTYPES, format_named
from gpuexplore.core.model import Device, Experiment, Result, Run
from gpuexplore.recorded import recorded_results
from gpuexplore.ui.known_results import DeviceResults, measured_results
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.submit import show_what_ended, start, started
from gpuexplore.ui.run.view import show_run
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.what_if.choice import WhatIfChoice


@dataclass(frozen=True, slots=True, eq=False)
class WhatIfFacts:
    """The facts for the choices of the page: one object for all who made the same.

    Attributes:
        rows: the workload on every device in every format.
        measured: results of this machine, newest last.
    """

    rows: tuple[WhatIf, ...]
    measured: tuple[Result, ...]


CALIBRATIONS: Shared[Calibration] = Shared(4)
FACTS: Shared[WhatIfFacts] = Shared(100)
MISSING: Shared[tuple[Experiment, ...]] = Shared(300)


def facts_of(workload: Workload, here: Sequence[Device], choice: WhatIfChoice) -> WhatIfFacts:
    """Return what is known and predicted, from results of this machine, recorded ones and what the visitor entered."""
    known = tuple(measured_results(device) for device in here)
    return FACTS.get((workload, choice, known), lambda: _facts(workload, choice, known))


def _facts(workload: Workload, choice: WhatIfChoice, known: tuple[DeviceResults, ...]) -> WhatIfFacts:
    measured = tuple(result for device in known for _, result in reversed(device.found))
    facts = Known(
        calibration=CALIBRATIONS.get(known, lambda: calibrate(measured)),
        measured=measured,
        recorded=tuple(result for _, result in recorded_results()),
        times_s=choice.times_s,
        prices_per_hour=choice.prices_per_hour,
        calls=choice.calls,
    )
    rows = what_if(workload, choice.devices, dtypes=choice.dtypes, baseline=choice.baseline, known=facts)
    return WhatIfFacts(tuple(rows), measured)


def offer_measuring(workload: Workload, facts: WhatIfFacts) -> None:
    """Draw a button that measures what is missing on each device of this machine, and the runs that were started."""
    runs = started()
    show_what_ended(runs, facts.measured)
    if not any(run.active for run in runs):
        for device in dict.fromkeys(row.device for row in facts.rows if not row.device.is_hypothetical):
            _offer(_missing(workload, device, facts), device)
    for run in runs:
        if run.active or any(result.measurement is None for result in run.results):
            show_run(run.id, _not_measured)


def _missing(workload: Workload, device: Device, facts: WhatIfFacts) -> tuple[Experiment, ...]:
    dtypes = [row.dtype for row in facts.rows if row.device == device and row.support != "unsupported"]
    return MISSING.get((facts, device), lambda: experiments(workload, device, dtypes, facts.measured))


def _offer(missing: Sequence[Experiment], device: Device) -> None:
    names = ", ".join(dict.fromkeys(dtype for experiment in missing for dtype in experiment.dtypes))
    if missing and st.button(f"Measure it here: {names} on {device.id}", type="primary", icon=":material/timer:"):
        start(missing, [device])


def experiments(
    workload: Workload, device: Device, dtypes: Sequence[str], measured: Sequence[Result]
) -> tuple[Experiment, ...]:
    """Return what is to be measured so that no layer has to be predicted: an experiment for each operation."""
    missing: dict[str, list[tuple[WorkloadLayer, str]]] = {}
    for layer in workload.layers:
        for name in dict.fromkeys(format_in(layer, format_named(dtype)).name for dtype in dtypes):
            if _can_measure(layer, name) and fastest(measured, device, layer, name) is None:
                missing.setdefault(layer.operation, []).append((layer, name))
    return tuple(_experiment(found, device) for found in missing.values())


def _can_measure(layer: WorkloadLayer, dtype: str) -> bool:
    return dtype in DTYPES and layer.contract.unsupported(DTYPES[dtype]) is None


def _experiment(found: Sequence[tuple[WorkloadLayer, str]], device: Device) -> Experiment:
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
