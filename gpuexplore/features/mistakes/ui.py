"""The page Timing mistakes: a table, and the chosen one: code, explanation, the wrong and the right figure."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.core.model import Device
from gpuexplore.core.notebooks import titles
from gpuexplore.core.serialization import decode
from gpuexplore.core.units import format_multiple
from gpuexplore.features.mistakes.catalog import KIND, activity_of
from gpuexplore.features.mistakes.catalog.contract import MISTAKES, Mistake, MistakeObservation
from gpuexplore.features.mistakes.chart import wrong_and_right
from gpuexplore.features.mistakes.mistake_command import difference
from gpuexplore.ui import link
from gpuexplore.ui.activity import PARAMETER, newest_done, show_activity, start_activity, started_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.url_widgets import select


def _show_observation(mistake: Mistake, device: Device, asked: ActivityRun | None) -> None:
    """Show what is known of a mistake on a device, and the button that makes it.

    Args:
        asked: what the link names.
    """
    if asked is not None and asked.arguments["name"] == mistake.name:
        run: ActivityRun | None = asked
    else:
        run = newest_done(activity_of(mistake.name, device.id), timedelta(hours=1))
    is_live = device.kind in mistake.live_on
    again = "again " if run and run.payloads else ""
    label = f"Reproduce this mistake {again}on {device.id}" if is_live else "Show the values"
    waits = run is not None and run.active
    if st.button(label, type="secondary" if again else "primary", icon=":material/play_arrow:", disabled=waits):
        start_activity(activity_of(mistake.name, device.id))
    if run is None:
        st.caption("Not measured here in the last hour. A measurement interleaves both ways for a few seconds.")
    else:
        show_activity(run, lambda run: _show_seen(decode(MistakeObservation, run.payloads[-1]), mistake))


def _show_seen(observation: MistakeObservation, mistake: Mistake) -> None:
    st.markdown(f"**{plain(observation.what)}** :blue-badge[{observation.origin}]")
    show_chart(lambda: wrong_and_right(observation), repr(observation), key="chart.mistake")
    st.markdown(_factor(observation))
    badges = {
        True: ":green-badge[detected]",
        False: ":orange-badge[not detected]",
        None: ":gray-badge[undecided]",
    }
    verdict = badges[observation.detection.found] if mistake.gives_away else ":gray-badge[not detectable]"
    st.markdown(f"{verdict} {plain(observation.detection.evidence)}.")
    notes = [
        observation.note,
        observation.source and f"Source: {observation.source}",
        f"{observation.rounds} interleaved rounds; medians with 95 % intervals." if observation.rounds else None,
        f"Not measured here: {mistake.elsewhere}" if observation.how == "published" and mistake.elsewhere else None,
    ]
    st.caption("  \n".join(plain(note) for note in notes if note))


def _factor(observation: MistakeObservation) -> str:
    """Return how far the wrong value is off, with its interval and the verdict on it."""
    factor = observation.factor
    if factor is None:
        wrong, right = (plain(observation.words(reading)) for reading in (observation.wrong, observation.right))
        return f"Wrong: **{wrong}**, right: **{right}**."
    verdict = difference(observation)
    if verdict is None:
        return f"The wrong value is **{format_multiple(factor.ratio)} times** the right one."
    return f"Wrong value over right value: **{verdict.statement}**."


def show_mistakes() -> None:
    """Show every mistake in a table, and the one that is chosen."""
    show_table(
        lambda: [
            {
                "Mistake": mistake.name,
                "Question": mistake.title,
                "Detected by": str(mistake.gives_away or "nothing"),
                "Notebooks": titles(mistake.rows),
            }
            for mistake in MISTAKES.values()
        ],
        "mistakes",
        {},
        alt=f"Table of {len(MISTAKES)} timing mistakes, the notebook rows that make them, and what detects them",
        config={
            "Mistake": st.column_config.TextColumn(width=150),
            "Question": st.column_config.TextColumn(width=330),
            "Detected by": st.column_config.TextColumn(width=150),
            "Notebooks": st.column_config.TextColumn(width="large"),
        },
    )
    asked = started_activity(KIND)
    _show(MISTAKES[_chosen(asked)], known_devices(), asked)


def _chosen(asked: ActivityRun | None) -> str:
    """Return the mistake that is chosen: by default the one whose activity the link names, which another one drops."""
    if asked is not None and "mistake" not in link.parameters():
        link.write("mistake", asked.arguments["name"])
    name = select("Mistake", "mistake", list(MISTAKES), shown=lambda name: f"{name}: {MISTAKES[name].title}")
    if asked is not None and asked.arguments["name"] != name:
        link.write(PARAMETER, None)
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
    _show_observation(
        mistake, next((device for device in devices if device.kind in mistake.live_on), devices[0]), asked
    )


def _sign(mistake: Mistake) -> str:
    """Return what gives it away, or why nothing does."""
    if mistake.gives_away is None:
        return f"**Cannot be detected.** {plain(mistake.why_none or '')}."
    name = mistake.gives_away.name
    sign = plain(name) if mistake.gives_away.kind == "check" else f"`{name}`"
    return f"**Detected by** the {mistake.gives_away.kind} {sign}."


def show_lesson_measurement(_block: Any, payload: Any, key: str) -> None:
    """Show what the block `mistake` of a lesson found."""
    if not payload:
        return
    seen = decode(MistakeObservation, payload)
    st.markdown(f"**{plain(seen.what)}** · {seen.origin}")
    show_chart(lambda: wrong_and_right(seen), repr(seen), key=f"{key}.mistake")
    st.caption(plain(seen.detection.evidence))


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Timing mistakes with the choice of a block."""
    return {"mistake": block.mistake}
