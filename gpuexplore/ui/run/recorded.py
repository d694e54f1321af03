"""Recorded runs on a page: the badge above one, the choice of one to draw with a live run, the way to a first one."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.analysis.model import Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.summary_rules import missing_sentence
from gpuexplore.charts import time
from gpuexplore.core import DOUBTFUL, InvalidInput, Origin, Result, Run
from gpuexplore.hardware.identity import is_namesake, why_other_device
from gpuexplore.operations import operation_named
from gpuexplore.recorded import (
    Recording,
    recorded_run,
    recording_named,
    recording_of_run,
    recordings,
    recordings_of,
    refusals,
    run_id_of,
)
from gpuexplore.ui import link
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.navigation import file_of
from gpuexplore.ui.shared.charts import show_chart

WITH = "with"  # the URL parameter that names a recording
ICON = ":material/album:"
RECORDED = "Not measured by this server."


@dataclass(frozen=True, slots=True)
class RecordedOverlay:
    """The recorded results drawn with a live run; none unless the visitor chose a recording.

    Attributes:
        name: of the recording; empty for none.
        results: of the recording, in the dtypes of the run.
        about: whose they are and what is left out, as Markdown.
    """

    name: str = ""
    results: tuple[Result, ...] = ()
    about: str = ""


def show_badge(run: Run) -> None:
    """Say above a recorded run that it is one, and whose."""
    recording = recording_of_run(run.id)
    if recording is None:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge("Recorded", icon=ICON, color="violet", help=RECORDED)
        st.caption(f"{origin_words(recording, run)}. {RECORDED}")


def origin_words(recording: Recording, run: Run) -> str:
    """Return on what a recorded run was measured, when and by whom, as Markdown."""
    return f"on {_devices(recording, run.experiment.devices)}, {_signed(recording)}"


def origin_of(run: Run) -> Origin:
    """Return where the results of a run come from."""
    return Origin.RECORDED if recording_of_run(run.id) else Origin.LIVE


def choose_overlay(run: Run) -> RecordedOverlay:
    """Draw the choice of a recording to compare a live run with."""
    known = recordings_of(run.experiment.operation)
    if recording_of_run(run.id) or not (known or WITH in st.query_params):
        return RecordedOverlay()
    chosen = _asked(run)
    if known:
        key = f"{WITH}.{run.id}"
        titles = {recording.name: f"recorded: {recording.title}" for recording in known}
        st.session_state[key] = chosen.name if chosen else ""
        st.selectbox(
            "Compare with",
            ["", *titles],
            key=key,
            format_func=lambda name: titles.get(name, "None"),
            on_change=lambda: link.write(WITH, st.session_state[key] or None),
        )
    return _overlay(run, chosen) if chosen else RecordedOverlay()


def offer_recorded_runs(operation: str, *, is_first_drawn: bool) -> None:
    """Offer recorded runs of `operation`, else of any, to visitors without a run: the cleanest first.

    Args:
        operation: its name.
        is_first_drawn: whether the vendor library's results of the first one are drawn.
    """
    found = [(recording, operation) for recording in recordings_of(operation)]
    found = found or [
        (recording, experiment.operation) for recording in recordings() for experiment in recording.experiments
    ]
    found = sorted(found, key=lambda pair: _flagged_share(*pair))[:3]
    if found and is_first_drawn:
        run = recorded_run(run_id_of(found[0][0].name, found[0][1]))
        library = operation_named(run.experiment.operation).vendor_library.name
        results = [result for result in run.results if result.case.implementation == library] or run.results
        analysis = analyze(results, context=Context(origin=Origin.RECORDED))
        show_badge(run)
        st.markdown(f"#### {analysis.summary.headline}")
        show_chart(lambda: time(analysis), run.id, key="chart.recorded")
    with st.container(horizontal=True):
        for recording, name in found:
            label = f"Recorded on {recording.title}: {operation_named(name).title.lower()}"
            if st.button(label, key=f"see.{recording.name}", icon=ICON):
                st.switch_page(file_of("benchmark"), query_params={"run": run_id_of(recording.name, name)})
    for reason in refusals():
        st.warning(f"A recording is not shown. {plain(reason)}", icon=":material/gpp_bad:")


def _flagged_share(recording: Recording, operation: str) -> float:
    """Return which share of a recording's results of `operation` is in doubt, or was not measured."""
    results = [result for result in recording.results if result.case.operation == operation]
    clean = sum(
        result.measurement is not None and not any(flag.name in DOUBTFUL for flag in result.flags) for result in results
    )
    return 1 - clean / len(results)


def _asked(run: Run) -> Recording | None:
    """Return the recording the URL names; None, with a message where it cannot be used."""
    name = st.query_params.get(WITH, "")
    if not name:
        return None
    try:
        return recording_named(name, run.experiment.operation)
    except InvalidInput as error:
        st.warning(
            f"The link compares with a recording that does not exist: {plain(str(error))}", icon=":material/link:"
        )
        return None


def _overlay(run: Run, recording: Recording) -> RecordedOverlay:
    """Return the recorded results in the dtypes of the run."""
    recorded = recorded_run(run_id_of(recording.name, run.experiment.operation))
    every = recorded.results
    fitting = [result for result in every if result.case.dtype in run.experiment.dtypes]
    devices = _devices(recording, recorded.experiment.devices)
    words = [
        f"Hollow points and thin lines are **recorded** on {devices}, {_signed(recording)}; see "
        f"[its own page](?run={recorded.id}) for all its results."
    ]
    if reason := _other_processor(run, recorded):
        words.append(f"That is {plain(reason)}, so these results do not apply to the device of this run.")
    if len(fitting) < len(every):
        words.append("Only the dtypes of this run are drawn.")
    if missing := missing_sentence(fitting):
        words.append(f"In the recording, {missing}")
    return RecordedOverlay(recording.name, tuple(fitting), " ".join(words))


def _other_processor(run: Run, recorded: Run) -> str | None:
    """Return how a recording's processor differs from one of this run that has its name; None where none has."""
    here, there = (
        [result.environment.device for result in shown.results if result.environment] for shown in (run, recorded)
    )
    pairs = ((its, ours) for its in dict.fromkeys(there) for ours in dict.fromkeys(here))
    return next((why_other_device(its, ours) for its, ours in pairs if is_namesake(its, ours)), None)


def _devices(recording: Recording, ids: Sequence[str]) -> str:
    return ", ".join(f"**{plain(device.title)}**" for device in recording.provenance.devices if device.id in ids)


def _signed(recording: Recording) -> str:
    provenance = recording.provenance
    return f"{recording.date}, by {plain(provenance.recorded_by)}, commit `{provenance.commit}`"
