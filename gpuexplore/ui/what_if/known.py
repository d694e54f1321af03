"""Facts on the page of what-ifs apart from the table: results measured here or recorded, and a button for more."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.analysis.prediction import Calibration, calibrate
from gpuexplore.analysis.what_if.what_if import Known, WhatIf, fastest, format_in, what_if
from gpuexplore.analysis.what_if.workload import Workload, WorkloadLayer
from gpuexplore.core.dtypes import DTYPES, format_named
from gpuexplore.core.model import Device, Experiment, Result
from gpuexplore.recorded import recorded_results
from gpuexplore.ui.run.state import show_what_ended, start, started
from gpuexplore.ui.run.view import show_unmeasured
from gpuexplore.ui.session import DeviceResults, measured_results
from gpuexplore.ui.shared import shared_values
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


def facts_of(workload: Workload, here: Sequence[Device], choice: WhatIfChoice) -> WhatIfFacts:
    """Return what is known and predicted, from results of this machine, recorded ones and what the visitor entered."""
    return _facts(workload, choice, tuple(measured_results(device) for device in here))


@shared_values(100)
def _facts(workload: Workload, choice: WhatIfChoice, known: tuple[DeviceResults, ...]) -> WhatIfFacts:
    measured = _results_of(known)
    facts = Known(
        calibration=calibration_on(known),
        measured=measured,
        recorded=tuple(result for _, result in recorded_results()),
        times_s=choice.times_s,
        prices_per_hour=choice.prices_per_hour,
        calls=choice.calls,
    )
    rows = what_if(workload, choice.devices, dtypes=choice.dtypes, baseline=choice.baseline, known=facts)
    return WhatIfFacts(tuple(rows), measured)


def _results_of(known: tuple[DeviceResults, ...]) -> tuple[Result, ...]:
    return tuple(result for device in known for _, result in reversed(device.found))


@shared_values(4)
def calibration_on(known: tuple[DeviceResults, ...]) -> Calibration:
    """Return the calibration on results of this machine too, one for every page: its processes take as long again."""
    return calibrate(_results_of(known))


def offer_measuring(workload: Workload, facts: WhatIfFacts) -> None:
    """Draw a button that measures what is missing on each device of this machine, and the runs that were started."""
    runs = started()
    show_what_ended(runs, facts.measured)
    if not any(run.active for run in runs):
        for device in dict.fromkeys(row.device for row in facts.rows if not row.device.is_hypothetical):
            missing = _missing(workload, device, facts)
            names = ", ".join(dict.fromkeys(dtype for experiment in missing for dtype in experiment.dtypes))
            words = f"Measure it here: {names} on {device.id}"
            if missing and st.button(words, type="primary", icon=":material/timer:"):
                start(missing, [device])
    show_unmeasured(runs)


@shared_values(300)
def _missing(workload: Workload, device: Device, facts: WhatIfFacts) -> tuple[Experiment, ...]:
    dtypes = [row.dtype for row in facts.rows if row.device == device and row.support != "unsupported"]
    missing: dict[str, list[tuple[WorkloadLayer, str]]] = {}
    for layer in workload.layers:
        for name in dict.fromkeys(format_in(layer, format_named(dtype)).name for dtype in dtypes):
            can_measure = name in DTYPES and layer.contract.unsupported(DTYPES[name]) is None
            if can_measure and fastest(facts.measured, device, layer, name) is None:
                missing.setdefault(layer.operation, []).append((layer, name))
    return tuple(_experiment(found, device) for found in missing.values())


def _experiment(found: Sequence[tuple[WorkloadLayer, str]], device: Device) -> Experiment:
    layer = found[0][0]
    return Experiment(
        layer.operation,
        tuple(dict.fromkeys(layer.shape for layer, _ in found)),
        tuple(dict.fromkeys(dtype for _, dtype in found)),
        (layer.contract.vendor_library.name,),
        (device.id,),
    )
