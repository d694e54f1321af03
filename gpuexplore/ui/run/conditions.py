"""Under which conditions a run was measured, for whoever doubts or repeats it."""

import streamlit as st

from gpuexplore.devices import TORCH_KINDS
from gpuexplore.model import Environment, Run
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.recorded import provenance_facts
from gpuexplore.units import format_flop_per_s


def show_conditions(run: Run) -> None:
    """Show the environment of a run, folded away."""
    environment = next((result.environment for result in run.results if result.environment), None)
    if environment is None:
        return
    with st.expander("Conditions and sources", icon=":material/fact_check:"):
        facts = [*provenance_facts(run), *_facts(environment)]
        left, right = st.columns(2)
        left.markdown("\n".join(f"- **{name}**: {value}" for name, value in facts))
        right.markdown("\n".join(_peak_lines(environment)))


def _facts(environment: Environment) -> list[tuple[str, str]]:
    settings = ", ".join(f"`{name}={value}`" for name, value in environment.settings.items())
    return [
        ("Device", f"{environment.device.title} (`{environment.device.id}`)"),
        ("Measured", f"{environment.started_utc.replace('T', ' ').removesuffix('+00:00')} UTC"),
        *([("Threads", str(environment.threads or "unknown"))] if environment.device.kind == "cpu" else []),
        ("Governor", environment.governor or "unknown"),
        ("Libraries", ", ".join(f"{name} {version}" for name, version in environment.libraries.items())),
        ("Variables that change speed", settings or "none set"),
        ("System", f"Python {environment.python}, {environment.platform}"),
        ("gpuexplore", f"{environment.app_version}, commit {environment.commit or 'unknown'}"),
    ]


def _peak_lines(environment: Environment) -> list[str]:
    device = environment.device
    lines = [
        f"- **{peak.dtype}**, {peak.unit} units: {format_flop_per_s(peak.flop_per_s)}: {peak.source}"
        for peak in device.peaks
    ]
    known = (
        ["**The peaks of the device, as they were then**", "", *lines]
        if lines
        else ["No peak of this device is known."]
    )
    notes = device.notes if device.kind in TORCH_KINDS else ()  # of others they tell of the peaks alone
    return [*known, "", *(f"- {plain(note)}" for note in notes)]
