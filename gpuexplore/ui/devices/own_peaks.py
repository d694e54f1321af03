"""Peaks and bandwidths of a visitor's own: entered, listed and deleted; they replace the device's for that visitor."""

from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.dtypes import DTYPES
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Bandwidth, Device, Peak, Unit
from gpuexplore.typed_text import check_text
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check
from gpuexplore.ui.session import OWN_PEAKS, own_peaks, owner, store
from gpuexplore.units import format_bytes_per_s, format_flop_per_s, read_number

GIGA, TERA = 1e9, 1e12
MOST = 1e6  # TFLOP/s or GB/s: beyond any machine
UNITS: dict[Unit, str] = {
    "matrix": "matmul (tensor cores; CPU dot-product units)",
    "vector": "element-wise (vector units)",
}
DEFAULT_SOURCE = "entered by you"


def edit_own_peaks(devices: Sequence[Device]) -> None:
    """Draw the forms and the list of what was entered."""
    st.caption(
        "From a datasheet, a vendor or your best run. MFU and bandwidth utilization on your pages are then relative to "
        "it; other visitors keep theirs."
    )
    compute, memory = st.tabs(["Compute peak", "Memory bandwidth"])
    with compute:
        _compute_form(devices)
    with memory:
        _memory_form(devices)
    for device in devices:
        own = own_peaks(device)
        for peak in own.compute:
            _compute_row(device, peak)
        if own.bandwidth:
            _memory_row(device, own.bandwidth)


def parse_tflop_per_s(text: str) -> float:
    """Return FLOP/s from what was typed as TFLOP/s.

    Raises:
        InvalidInput: no positive number, or beyond any machine.
    """
    return _parse(text, "peak", "TFLOP/s") * TERA


def parse_gb_per_s(text: str) -> float:
    """Return bytes/s from what was typed as GB/s, 1e9 bytes each.

    Raises:
        InvalidInput: no positive number, or beyond any machine.
    """
    return _parse(text, "bandwidth", "GB/s") * GIGA


def _parse(text: str, what: str, unit: str) -> float:
    check_text(what, text)
    number = read_number(text)
    if number is None or not 0 < number <= MOST:
        raise InvalidInput.of(what, text, f"numbers above 0, up to {MOST:,.0f} ({unit})")
    return number


def _source(text: str) -> str:
    check_text("source", text)
    return text.strip() or DEFAULT_SOURCE


def _compute_form(devices: Sequence[Device]) -> None:
    with st.form("own_peak", clear_on_submit=True):
        place, dtype, units, rate, source = st.columns([3, 2, 5, 2, 3])
        device = _choose(place, devices)
        format_name = dtype.selectbox("Dtype", list(DTYPES), index=list(DTYPES).index("fp32"))
        unit = units.selectbox("Of", list(UNITS), format_func=UNITS.__getitem__)
        text = rate.text_input("TFLOP/s", placeholder="0.53")
        said_by = source.text_input("Source", placeholder="datasheet, page 2")
        if st.form_submit_button("Save", icon=":material/save:"):
            _save(lambda: _save_peak(device, Peak(format_name, unit, parse_tflop_per_s(text), "own", _source(said_by))))


def _memory_form(devices: Sequence[Device]) -> None:
    with st.form("own_bandwidth", clear_on_submit=True):
        place, rate, source = st.columns([5, 2, 4])
        device = _choose(place, devices)
        text = rate.text_input("GB/s", placeholder="3350")
        said_by = source.text_input("Source", placeholder="datasheet, page 2")
        if st.form_submit_button("Save", icon=":material/save:"):
            _save(lambda: _save_bandwidth(device, text, _source(said_by)))


def _choose(place: DeltaGenerator, devices: Sequence[Device]) -> Device:
    """Draw the choice of a device by its id: a device itself changes as its ceilings are measured."""
    by_id = {device.id: device for device in devices}
    return by_id[place.selectbox("Device", list(by_id), format_func=lambda device_id: by_id[device_id].title)]


def _save(save: Callable[[], str]) -> None:
    try:
        check(Right.KEEP)
        saved = save()
        OWN_PEAKS.forget()
    except InvalidInput as error:
        st.error(plain(str(error)), icon=":material/error:")
    else:
        st.success(f"Saved: {saved}", icon=":material/check:")


def _save_peak(device: Device, peak: Peak) -> str:
    store().set_own_peak(owner(), device, peak=peak)
    return f"{format_flop_per_s(peak.flop_per_s)} in {peak.dtype}, {UNITS[peak.unit]}, for {device.title}"


def _save_bandwidth(device: Device, text: str, source: str) -> str:
    bytes_per_s = parse_gb_per_s(text)
    store().set_own_bandwidth(owner(), device, bandwidth=Bandwidth(bytes_per_s, "own", source))
    return f"{format_bytes_per_s(bytes_per_s)} of memory for {device.title}"


def _compute_row(device: Device, peak: Peak) -> None:
    def delete() -> None:
        store().delete_own_peak(owner(), device, dtype=peak.dtype, unit=peak.unit)

    what = f"**{peak.dtype}**, {UNITS[peak.unit]}"
    text = f"{device.title}, {what}: {format_flop_per_s(peak.flop_per_s)}, {plain(peak.source)}"
    _row(text, f"delete.{device.id}.{peak.dtype}.{peak.unit}", delete)


def _memory_row(device: Device, bandwidth: Bandwidth) -> None:
    text = f"{device.title}, **memory**: {format_bytes_per_s(bandwidth.bytes_per_s)}, {plain(bandwidth.source)}"
    _row(text, f"delete.{device.id}.memory", lambda: store().delete_own_bandwidth(owner(), device))


def _row(text: str, key: str, delete: Callable[[], None]) -> None:
    words, button = st.columns([6, 1], vertical_alignment="center")
    words.markdown(text)
    if button.button("Delete", key=key, icon=":material/delete:"):
        delete()
        OWN_PEAKS.forget()
        st.rerun()
