"""What came out when a mistake was made here: nothing yet, a wait, wrong beside right, or why it failed."""

import streamlit as st

from gpuexplore.charts.mistake import wrong_and_right
from gpuexplore.mistakes.contract import Mistake, Observation
from gpuexplore.model import Device
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.timing_mistakes.state import Failed, State, Waiting, observation_for, submit
from gpuexplore.units import format_interval, format_multiple

TICK_S = 1.0
VERDICTS = {
    True: ":green-badge[given away]",
    False: ":orange-badge[not given away]",
    None: ":gray-badge[undecided]",
}


def show_observation(mistake: Mistake, device: Device) -> None:
    """Show what is known of a mistake on a device, and the button that makes it."""
    waits = isinstance(observation_for(mistake.name, device), Waiting)
    st.fragment(_draw, run_every=TICK_S if waits else None)(mistake, device, waits)


def _draw(mistake: Mistake, device: Device, waited: bool) -> None:
    state = observation_for(mistake.name, device)
    waits = isinstance(state, Waiting)
    if waits != waited:
        st.rerun()
    again = "again " if isinstance(state, Observation) else ""
    is_live = device.kind in mistake.live_on
    verb = f"Make this mistake {again}on {device.id}" if is_live else "Show the values"
    if st.button(verb, type="secondary" if again else "primary", icon=":material/play_arrow:", disabled=waits):
        submit(mistake.name, device)
        st.rerun()
    _show(state, mistake)


def _show(state: State, mistake: Mistake) -> None:
    if state is None:
        st.caption("Nothing was observed on this server yet. Wrong and right take turns, for a few seconds.")
    elif isinstance(state, Waiting):
        st.info(
            "Both ways take turns on the device; they wait while others measure on it.", icon=":material/hourglass_top:"
        )
    elif isinstance(state, Failed):
        st.error(f"{plain(state.reason)}. Nothing was observed.", icon=":material/error:")
    else:
        _show_seen(state, mistake)


def _show_seen(observation: Observation, mistake: Mistake) -> None:
    st.markdown(f"**{plain(observation.what)}** :blue-badge[{observation.origin}]")
    show_chart(lambda: wrong_and_right(observation), repr(observation), key="chart.mistake")
    st.markdown(_factor(observation))
    st.markdown(f"{VERDICTS[observation.detection.found]} {plain(observation.detection.evidence)}.")
    notes = [
        observation.note,
        observation.source and f"Source: {observation.source}",
        _rounds(observation),
        _elsewhere(observation, mistake),
    ]
    st.caption("  \n".join(plain(note) for note in notes if note))


def _factor(observation: Observation) -> str:
    """Return how far the wrong value is off, with its interval, or that this cannot be told."""
    factor = observation.factor
    if factor is None:
        wrong, right = (plain(observation.words(reading)) for reading in (observation.wrong, observation.right))
        return f"Wrong: **{wrong}**, right: **{right}**."
    words = f"The wrong value is **{format_multiple(factor.ratio)} times** the right one"
    interval = f" (95 % interval {format_interval(factor.ci95, format_multiple)})" if factor.ci95 else ""
    noise = ": within the noise on this machine, no difference was shown" if factor.is_within_noise else ""
    return f"{words}{interval}{noise}."


def _rounds(observation: Observation) -> str | None:
    return f"{observation.rounds} rounds in turns; medians with 95 % intervals." if observation.rounds else None


def _elsewhere(observation: Observation, mistake: Mistake) -> str | None:
    """Return why a value comes from elsewhere."""
    if observation.how != "published" or mistake.elsewhere is None:
        return None
    return f"Not measured here: {mistake.elsewhere}"
