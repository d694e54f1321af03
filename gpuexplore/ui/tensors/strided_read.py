"""What reading a strided tensor costs, measured in the worker: nothing yet, waiting, measured or failed."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from gpuexplore.activity import ActivityRun
from gpuexplore.analysis.tensors import TensorView
from gpuexplore.analysis.tensors.reading import activity_of
from gpuexplore.ui.activity.offer import offer, started_or_newest
from gpuexplore.ui.activity.view import show_activity
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.units import format_interval, format_ratio

KNOWN_FOR = timedelta(hours=1)  # after that somebody measures it again
WAYS: Mapping[str, str] = {
    "loop": "A loop in row order, on one thread",
    "copy": "torch's copy into a contiguous tensor, which may go through it in another order",
}


def show_measured(view: TensorView) -> None:
    """Show what reading the tensor costs, as it was measured here, and the button that measures it."""
    asked = activity_of(view, known_devices()[0].id)
    if asked is None:
        st.caption("Such a tensor is not read here: it has no axis, too many or too many cells.")
        return
    run = started_or_newest(asked, KNOWN_FOR)
    if run is None:
        st.caption("Not measured yet.")
    else:
        show_activity(run, _draw)
    offer(asked, run, "Measure it", icon=":material/play_arrow:")


def _draw(run: ActivityRun) -> None:
    for report in run.payloads[-1:]:
        _show_report(report)


def _show_report(report: Mapping[str, Any]) -> None:
    device = report["environment"]["device"]["name"]
    for way, title in WAYS.items():
        found = report["ratios"][way]
        between = format_interval(found["ci95"], format_ratio)
        st.markdown(f"- {title}: **{format_ratio(found['median'])}** the time of the contiguous one ({between}, 95 %)")
    show_table(
        lambda: _rows(report["readings"]),
        repr(report["readings"]),
        {"Median": "s", "Low": "s", "High": "s", "Bandwidth": "B/s"},
        alt=f"Table of the times to read the tensor contiguous and strided on {device}",
    )
    for flag in _flags(report["readings"]):
        st.warning(plain(flag), icon=":material/warning:")
    st.caption(f"Measured on {plain(device)} with {report['cache']} caches; the interval of each median is 95 %.")


def _flags(readings: Mapping[str, Mapping[str, Any]]) -> Sequence[str]:
    """Return what casts doubt on the readings, the same evidence once."""
    found: dict[str, list[str]] = {}
    for reading, measured in readings.items():
        for flag in measured["flags"]:
            found.setdefault(f"{flag['name']}: {flag['evidence']}", []).append(reading)
    return [f"{words} ({', '.join(names)})" for words, names in found.items()]


def _rows(readings: Mapping[str, Mapping[str, Any]]) -> Sequence[dict[str, object]]:
    return [
        {
            "Read": name,
            "Median": found["median_s"],
            "Low": found["ci95_s"] and found["ci95_s"][0],
            "High": found["ci95_s"] and found["ci95_s"][1],
            "Bandwidth": found["bytes_per_s"],
            "Samples": found["n"],
        }
        for name, found in readings.items()
    ]
