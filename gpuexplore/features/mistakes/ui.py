"""The page Timing mistakes: the chosen one: code, explanation, the wrong and the right figure; a table of all."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.charts import LABEL_LIMIT, NEUTRAL, WIDE, log_ticks, si_label, x_value
from gpuexplore.core import Device, decode, format_interval, format_multiple
from gpuexplore.core.notebooks import titles
from gpuexplore.features.mistakes.catalog import (
    KIND,
    MISTAKES,
    UNITS,
    Mistake,
    MistakeObservation,
    Quantity,
    activity_of,
)
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
    show_chart(lambda: _wrong_and_right(observation), repr(observation), key="chart.mistake")
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
    """Show the mistake that is chosen, and every one in a table."""
    asked = started_activity(KIND)
    _show(MISTAKES[_chosen(asked)], known_devices(), asked)
    st.subheader("All mistakes", anchor="mistakes")
    show_table(
        lambda: [
            {
                "Mistake": mistake.name,
                "Question": mistake.title,
                "Detected by": str(mistake.gives_away or "nothing"),
                "Notebooks": " ".join(mistake.rows),
            }
            for mistake in MISTAKES.values()
        ],
        "mistakes",
        {},
        alt=f"Table of {len(MISTAKES)} timing mistakes, the notebook rows that make them, and what detects them",
        config={
            "Mistake": st.column_config.TextColumn(width=120),
            "Question": st.column_config.TextColumn(width=300),
            "Detected by": st.column_config.TextColumn(width=250),
            "Notebooks": st.column_config.TextColumn(width=70, help="Rows of the notebooks, named below"),
        },
    )


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
    if mistake.rows:
        st.caption(f"In the notebooks: {plain(titles(mistake.rows))}.")
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
    show_chart(lambda: _wrong_and_right(seen), repr(seen), key=f"{key}.mistake")
    st.caption(plain(seen.detection.evidence))


def lesson_block_query(block: Any) -> dict[str, str]:
    """Return the parameters of the page Timing mistakes with the choice of a block."""
    return {"mistake": block.mistake}


# The wrong value of a mistake and the right one, each with its interval, on one axis.


SI_UNITS: dict[Quantity, str] = {"time": "s", "compute rate": "FLOP/s", "memory rate": "B/s"}


def _wrong_and_right(observation: MistakeObservation) -> alt.LayerChart:
    """Return a point for each of the two ways, with its 95 % interval and its value in words."""
    rows = []
    for way, reading in (("Wrong", observation.wrong), ("Right", observation.right)):
        low, high = reading.ci95 or (reading.value, reading.value)
        interval = format_interval(reading.ci95, observation.format) if reading.ci95 else ""
        shown = observation.words(reading)
        rows.append((way, reading.value, low, high, shown, interval, shown if reading.value is None else ""))
    frame = pd.DataFrame(rows, columns=["way", "value", "low", "high", "shown", "interval", "unknown"])
    base = alt.Chart(frame).encode(
        y=alt.Y(
            "way:N", sort=["Wrong", "Right"], title=None, scale=alt.Scale(padding=0.6), axis=alt.Axis(labelFontSize=13)
        )
    )
    x = _axis(observation, frame)
    intervals = base.mark_rule(color=NEUTRAL, strokeWidth=3, opacity=0.6).encode(x=x, x2=alt.X2("high:Q"))
    shape = alt.Shape("way:N", scale=alt.Scale(domain=["Wrong", "Right"], range=["cross", "circle"]), legend=None)
    points = base.mark_point(filled=True, size=130, opacity=1).encode(
        x=alt.X("value:Q"), shape=shape, tooltip=[alt.Tooltip(f"{name}:N") for name in ("way", "shown", "interval")]
    )
    words = base.mark_text(dy=-17, fontSize=13, color=NEUTRAL).encode(x=alt.X("value:Q"), text=alt.Text("shown:N"))
    unknown = base.mark_text(align="left", fontSize=13, color=NEUTRAL).encode(x=x_value(6), text=alt.Text("unknown:N"))
    return alt.LayerChart(layer=[intervals, points, words, unknown]).properties(
        width="container", height=2 * 58 + 56, description=_described_observation(observation, frame)
    )


def _described_observation(observation: MistakeObservation, frame: pd.DataFrame) -> str:
    """Return the alternative text."""
    intervals = frame["interval"].map(lambda interval: f", 95 % interval {interval}" if interval else "")
    said = "; ".join(frame["way"].str.lower() + " " + frame["shown"] + intervals)
    return f"{_title(observation)} of {observation.what}, {observation.origin}: {said}."


def _axis(observation: MistakeObservation, frame: pd.DataFrame) -> alt.X:
    values = [value for name in ("low", "value", "high") for value in frame[name].dropna()]
    labels: dict[Quantity, str] = {
        "share": "format(datum.value, '.3~%')",
        "error": "datum.value == 0 ? '0' : format(datum.value, '.1~e')",
        "count": "format(datum.value, ',')",
        "sum": "format(datum.value, ',')",
        "ratio": "format(datum.value, '.3~r') + '×'",
    }
    unit = SI_UNITS.get(observation.quantity)
    label = si_label(unit) if unit else labels[observation.quantity]
    title = _title(observation)
    if values and min(values) > 0 and max(values) / min(values) > WIDE:
        ticks = log_ticks(values)
        if len(ticks) > 7:
            ticks = [tick for tick in ticks if f"{tick:e}".startswith("1.000")]  # powers of ten
        scale = alt.Scale(type="log", nice=False, domain=[min(values) / 1.6, max(values) * 1.6])
        axis = alt.Axis(values=ticks, labelExpr=label, labelOverlap="greedy", labelLimit=LABEL_LIMIT)
        return alt.X("low:Q", title=title, axis=axis, scale=scale)
    scale = alt.Scale(domain=[0, 1.15 * max([*values, 1e-300])], nice=False)
    axis = alt.Axis(labelExpr=label, tickCount=5, labelLimit=LABEL_LIMIT, labelOverlap="greedy")
    return alt.X("low:Q", title=title, axis=axis, scale=scale)


def _title(observation: MistakeObservation) -> str:
    """Return what the axis measures, with the unit where its labels do not carry it."""
    name = "Relative error" if observation.quantity == "error" else observation.quantity.capitalize()
    return f"{name} ({UNITS[observation.quantity]})" if observation.quantity in SI_UNITS else name
