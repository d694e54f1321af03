"""The basis of predictions on a page: the measurements nearest to each, with their sources, and what would help."""

from collections.abc import Iterable

import streamlit as st

from gpuexplore.analysis.prediction import Nearest, Prediction
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.core import Case, format_interval, format_seconds
from gpuexplore.ui.markdown import plain


def show_rests_on(predictions: Iterable[Prediction]) -> None:
    """Show a line for each prediction, and once what would make the first of them better that can be."""
    listed = tuple(predictions)
    st.markdown("\n".join(f"- {_basis_text(prediction)}" for prediction in listed))
    better = next((prediction.better for prediction in listed if prediction.better), None)
    if better:
        st.caption(f"To improve predictions: {better}.")


def _basis_text(prediction: Prediction) -> str:
    """Return the basis of one prediction, as Markdown."""
    name = f"**{plain(prediction.device.name)}**, {prediction.case.dtype}"
    if prediction.time_s is None:
        return f"{name}: unknown, {plain(prediction.reason or '')}"
    interval = format_interval(prediction.interval_s, format_seconds)
    emulated = f" {prediction.support}, {plain(prediction.reason)}." if prediction.reason else ""
    nearest = ", ".join(_linked(nearest, prediction.case) for nearest in prediction.nearest[:3])
    return (
        f"{name}: {format_seconds(prediction.time_s)}, {interval}, limited by {prediction.bound};{emulated} "
        f"based on {plain(prediction.basis)}{f'. Nearest: {nearest}' if nearest else ''}"
    )


def _linked(nearest: Nearest, predicted: Case) -> str:
    """Return e.g. ``512 × 512 × 512 in 12 µs on L40S``, with a link to its source."""
    case = nearest.case
    other = "" if case.operation == predicted.operation else f"{case.operation} "
    dtype = "" if case.dtype == predicted.dtype else f" {case.dtype}"
    time = format_seconds(nearest.time_s)
    words = plain(f"{other}{shape_label(case.shape)}{dtype} in {time} on {nearest.device}")
    return f"[{words}]({nearest.url})" if nearest.url.startswith("https://") else words
