"""What the predictions of the atlas rest on, for each GPU and dtype that is drawn."""

import streamlit as st

from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.utilization.rates import shape_label
from gpuexplore.ui.atlas.choice import AtlasChoice
from gpuexplore.ui.atlas.known import Facts
from gpuexplore.ui.markdown import plain
from gpuexplore.units import format_interval, format_seconds


def show_basis(choice: AtlasChoice, facts: Facts) -> None:
    """Show what was measured that the predictions of the shape in question rest on."""
    st.subheader("What the predictions rest on", anchor="basis")
    st.caption(
        f"Those of {shape_label(choice.shape)}, at the dotted line; elsewhere on a line other results can count."
    )
    st.markdown("\n".join(f"- {_told(prediction)}" for prediction in facts.predictions))


def _told(prediction: Prediction) -> str:
    """Return what a reader is told about one prediction, as Markdown."""
    name = f"**{plain(prediction.device.name)}**, {prediction.case.dtype}"
    if prediction.time_s is None:
        return f"{name}: unknown, {plain(prediction.reason or '')}"
    interval = format_interval(prediction.interval_s, format_seconds)
    emulated = f" {prediction.support}, {plain(prediction.reason)}." if prediction.reason else ""
    return (
        f"{name}: {format_seconds(prediction.time_s)}, {interval}, limited by {prediction.bound};{emulated} "
        f"rests on {plain(prediction.basis)}"
    )
