"""What came out when a mistake was made here: nothing yet, a wait, wrong beside right, or why it failed."""

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.analysis.mistakes import difference
from gpuexplore.charts.mistake import wrong_and_right
from gpuexplore.mistakes import activity_of
from gpuexplore.mistakes.contract import Mistake, Observation
from gpuexplore.model import Device
from gpuexplore.ui.activity.view import show_activity, start_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.timing_mistakes.state import observation_for, seen_in
from gpuexplore.units import format_multiple

NO_SIGN = ":gray-badge[no sign]"
VERDICTS = {
    True: ":green-badge[given away]",
    False: ":orange-badge[not given away]",
    None: ":gray-badge[undecided]",
}


def show_observation(mistake: Mistake, device: Device, asked: ActivityRun | None) -> None:
    """Show what is known of a mistake on a device, and the button that makes it.

    Args:
        asked: what the link names.
    """
    run = observation_for(mistake.name, device, asked)
    is_live = device.kind in mistake.live_on
    again = "again " if run and run.payloads else ""
    label = f"Make this mistake {again}on {device.id}" if is_live else "Show the values"
    waits = run is not None and run.active
    if st.button(label, type="secondary" if again else "primary", icon=":material/play_arrow:", disabled=waits):
        start_activity(activity_of(mistake.name, device.id))
    if run is None:
        st.caption("Nothing was observed here in the last hour. Wrong and right take turns, for a few seconds.")
    else:
        show_activity(run, lambda run: _show_seen(seen_in(run), mistake))


def _show_seen(observation: Observation, mistake: Mistake) -> None:
    st.markdown(f"**{plain(observation.what)}** :blue-badge[{observation.origin}]")
    show_chart(lambda: wrong_and_right(observation), repr(observation), key="chart.mistake")
    st.markdown(_factor(observation))
    verdict = VERDICTS[observation.detection.found] if mistake.gives_away else NO_SIGN
    st.markdown(f"{verdict} {plain(observation.detection.evidence)}.")
    notes = [
        observation.note,
        observation.source and f"Source: {observation.source}",
        _rounds(observation),
        _elsewhere(observation, mistake),
    ]
    st.caption("  \n".join(plain(note) for note in notes if note))


def _factor(observation: Observation) -> str:
    """Return how far the wrong value is off, with its interval and the verdict on it."""
    factor = observation.factor
    if factor is None:
        wrong, right = (plain(observation.words(reading)) for reading in (observation.wrong, observation.right))
        return f"Wrong: **{wrong}**, right: **{right}**."
    verdict = difference(observation)
    if verdict is None:
        return f"The wrong value is **{format_multiple(factor.ratio)} times** the right one."
    return f"The wrong value over the right one: **{verdict.statement}**."


def _rounds(observation: Observation) -> str | None:
    return f"{observation.rounds} rounds in turns; medians with 95 % intervals." if observation.rounds else None


def _elsewhere(observation: Observation, mistake: Mistake) -> str | None:
    """Return why a value comes from elsewhere."""
    if observation.how != "published" or mistake.elsewhere is None:
        return None
    return f"Not measured here: {mistake.elsewhere}"
