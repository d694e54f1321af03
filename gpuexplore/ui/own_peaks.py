"""Peaks a visitor knows better: entered, listed and deleted; they replace the device's for that visitor."""

from collections.abc import Sequence

import streamlit as st

from gpuexplore.dtypes import DTYPES
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Device, Peak
from gpuexplore.ui.session import own_peaks, owner, store
from gpuexplore.ui.text import plain
from gpuexplore.units import format_flop_per_s

TERA = 1e12
MOST_TFLOP_PER_S = 1e6


def edit_own_peaks(devices: Sequence[Device]) -> None:
    """Draw the form and the list of what was entered."""
    st.caption(
        "A datasheet, a vendor's promise or your best run: your number becomes the denominator of every MFU you see. "
        "Other visitors keep theirs."
    )
    with st.form("own_peak", clear_on_submit=True):
        place, dtype, rate, source = st.columns([3, 2, 2, 4])
        name = place.selectbox("Device", [device.name for device in devices])
        format_name = dtype.selectbox("Dtype", list(DTYPES), index=list(DTYPES).index("fp32"))
        text = rate.text_input("TFLOP/s", placeholder="0.53")
        said_by = source.text_input("Source", placeholder="data sheet, page 2")
        if st.form_submit_button("Keep this peak", icon=":material/save:"):
            _keep(name, format_name, text, said_by)
    for device in devices:
        for peak in own_peaks(device.name):
            _row(device, peak)


def parse_tflop_per_s(text: str) -> float:
    """Return FLOP/s from what was typed as TFLOP/s.

    Raises:
        InvalidInput: no positive number, or beyond any machine.
    """
    accepted = f"numbers above 0, up to {MOST_TFLOP_PER_S:g} (TFLOP/s)"
    try:
        tera = float(text)
    except ValueError as error:
        raise InvalidInput.of("peak", text, accepted) from error
    if not 0 < tera <= MOST_TFLOP_PER_S:
        raise InvalidInput.of("peak", text, accepted)
    return tera * TERA


def _keep(device_name: str, dtype: str, text: str, source: str) -> None:
    try:
        flop_per_s = parse_tflop_per_s(text)
        for unit in ("matrix", "vector"):
            peak = Peak(dtype, unit, flop_per_s, "own", source.strip() or "entered by you")
            store().set_own_peak(owner(), device_name, peak=peak)
    except InvalidInput as error:
        st.error(plain(str(error)), icon=":material/error:")
    else:
        st.success(f"Kept: {format_flop_per_s(flop_per_s)} in {dtype} for {device_name}", icon=":material/check:")


def _row(device: Device, peak: Peak) -> None:
    if peak.unit != "matrix":  # both units are kept and shown as one
        return
    words, button = st.columns([6, 1], vertical_alignment="center")
    words.markdown(f"{device.name}, **{peak.dtype}**: {format_flop_per_s(peak.flop_per_s)}, {plain(peak.source)}")
    if button.button("Delete", key=f"delete.{device.id}.{peak.dtype}", icon=":material/delete:"):
        for unit in ("matrix", "vector"):
            store().delete_own_peak(owner(), device.name, dtype=peak.dtype, unit=unit)
        st.rerun()
