"""The mistakes as a table, and below it the chosen one: wrong beside right, why, and what gives it away."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.mistakes import KIND, MISTAKES
from gpuexplore.mistakes.contract import Mistake
from gpuexplore.model import Device
from gpuexplore.ui import link
from gpuexplore.ui.activity.view import PARAMETER as ACTIVITY
from gpuexplore.ui.activity.view import started_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.timing_mistakes.observation import show_observation
from gpuexplore.ui.timing_mistakes.state import NAME
from gpuexplore.ui.url_widgets import select

PARAMETER = "mistake"
NOTHING = "nothing"
NAME_WIDTH, QUESTION_WIDTH, ROWS_WIDTH = 150, 330, 90  # pixels


def show_mistakes() -> None:
    """Show every mistake in a table, and the one that is chosen."""
    show_table(
        lambda: [_row(mistake) for mistake in MISTAKES.values()],
        "mistakes",
        {},
        alt=f"Table of {len(MISTAKES)} measuring mistakes, the rows of the notebooks that make them and their signs",
        config={
            "Mistake": st.column_config.TextColumn(width=NAME_WIDTH),
            "Question": st.column_config.TextColumn(width=QUESTION_WIDTH),
            "Notebooks": st.column_config.TextColumn(width=ROWS_WIDTH),
            "Given away by": st.column_config.TextColumn(width="large"),
        },
    )
    asked = started_activity(KIND)
    _show(MISTAKES[_chosen(asked)], known_devices(), asked)


def _chosen(asked: ActivityRun | None) -> str:
    """Return the mistake that is chosen: by default the one whose activity the link names, which another one drops."""
    if asked is not None and PARAMETER not in link.parameters():
        link.write(PARAMETER, asked.arguments[NAME])
    name = select("Mistake", PARAMETER, list(MISTAKES), shown=lambda name: f"{name}: {MISTAKES[name].title}")
    if asked is not None and asked.arguments[NAME] != name:
        link.write(ACTIVITY, None)
    return name


def _show(mistake: Mistake, devices: Sequence[Device], asked: ActivityRun | None) -> None:
    st.subheader(mistake.title, anchor="mistake")
    wrong, right = st.columns(2, gap="medium")
    with wrong:
        st.markdown(f":material/close: **Wrong.** {plain(mistake.wrong)}")
        st.code(mistake.wrong_code, language="python")
    with right:
        st.markdown(f":material/check: **Right.** {plain(mistake.right)}")
        st.code(mistake.right_code, language="python")
    st.markdown(plain(mistake.why))
    st.markdown(_sign(mistake))
    show_observation(mistake, _device_for(mistake, devices), asked)


def _sign(mistake: Mistake) -> str:
    """Return what gives it away, or why nothing does."""
    if mistake.gives_away is None:
        return f"**Nothing gives it away.** {plain(mistake.why_none or '')}."
    name = mistake.gives_away.name
    told = plain(name) if mistake.gives_away.kind == "check" else f"`{name}`"
    return f"**Given away by** the {mistake.gives_away.kind} {told}."


def _device_for(mistake: Mistake, devices: Sequence[Device]) -> Device:
    """Return the device to make it on: the first one on which it is live, else the first."""
    return next((device for device in devices if device.kind in mistake.live_on), devices[0])


def _row(mistake: Mistake) -> dict[str, object]:
    return {
        "Mistake": mistake.name,
        "Question": mistake.title,
        "Notebooks": ", ".join(mistake.rows),
        "Given away by": str(mistake.gives_away or NOTHING),
    }
