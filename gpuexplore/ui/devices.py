"""The page Devices: those of this machine, the table of accelerators, and the peaks that a visitor enters."""

from collections.abc import Callable, Sequence
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction.request import TITLE, columns_of, compared, sweep_of, unlike_its_kind
from gpuexplore.analysis.run.estimate import estimate
from gpuexplore.analysis.utilization.peak_sources import PEAK_SOURCES
from gpuexplore.core import (
    Bandwidth,
    Device,
    InvalidInput,
    Peak,
    Run,
    Unit,
    check_text,
    format_bytes,
    format_bytes_per_s,
    format_flop_per_s,
    read_number,
)
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware import TORCH_KINDS, Accelerator, bandwidth_of, peaks_of
from gpuexplore.store import Description
from gpuexplore.ui.identity import address
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.roles import Right, check, is_admin
from gpuexplore.ui.run.state import queue_and_show, started
from gpuexplore.ui.session import live_supervisor, own_peaks, owner, store, stored_peaks
from gpuexplore.ui.shared.later import redrawn
from gpuexplore.ui.shared.tables import show_table
from gpuexplore.ui.url_widgets import show_problem

CALIBRATING = "calibrating"  # the URL's parameter of the runs of a calibration
UNIT_WORDS: dict[Unit, str] = {
    "matrix": "matmul (tensor cores; CPU dot-product units)",
    "vector": "element-wise (vector units)",
}
SHOWN: tuple[tuple[str, Unit], ...] = (
    ("fp64", "vector"),
    ("fp32", "vector"),
    ("tf32", "matrix"),
    ("bf16", "matrix"),
    ("fp16", "matrix"),
)


def show_warming_up() -> None:
    """Say that peaks are being measured, and draw the page anew once they are."""
    supervisor = live_supervisor()
    if supervisor is None or supervisor.state != "warming":
        st.rerun()
    st.info("The peaks of this machine are being measured: they appear in a few seconds.", icon=":material/speed:")


def show_device(device: Device) -> None:
    """Show a device as a card: its facts, its peaks and their sources."""
    with st.container(border=True):
        st.subheader(device.short_title, anchor=device.id.replace(":", "-"))
        st.caption(" · ".join(_facts(device)))
        row = st.container(horizontal=True, gap="small")
        for dtype in ("fp64", "fp32", "bf16", "fp16") if device.peaks else ():
            peak = device.peak(dtype, "matrix") or (device.peak(dtype, "vector") if dtype == "fp64" else None)
            row.metric(
                f"{dtype} matmul",
                format_flop_per_s(peak.flop_per_s if peak else None),
                delta=peak.rate_note or None if peak else None,
                delta_color="off",
                delta_arrow="off",
                help=f"{PEAK_SOURCES[peak.kind].label}: {peak.source}" if peak else "no peak is known for this dtype",
                width=150,
            )
        if bandwidth := device.bandwidth:
            row.metric(
                "Memory",
                format_bytes_per_s(bandwidth.bytes_per_s),
                help=f"{PEAK_SOURCES[bandwidth.kind].label}: {bandwidth.source}",
                width=150,
            )
        for note in device.notes:
            st.caption(note)
        if device.peaks:
            with st.expander("Every peak and its source", icon=":material/receipt_long:"):
                show_table(
                    lambda: [
                        {
                            "Dtype": peak.dtype,
                            "Rate": peak.rate_note or "own",
                            "Units": peak.unit,
                            "Peak": peak.flop_per_s,
                            "Kind": PEAK_SOURCES[peak.kind].label,
                            "Source": peak.source,
                        }
                        for peak in device.peaks
                    ],
                    device.peaks,
                    {"Peak": "FLOP/s"},
                    alt=f"Peaks of {device.title} with kind and source",
                )


def _facts(device: Device) -> list[str]:
    unit = "cores" if device.kind == "cpu" else "multiprocessors"
    generation = "architecture" if device.kind in TORCH_KINDS else "compute capability"
    found = [
        f"`{device.id}`",
        plain(device.title) if device.title != device.short_title else None,
        f"{device.cores} {unit}" if device.cores else None,
        f"{format_bytes(device.memory_bytes)} memory" if device.memory_bytes else None,
        f"{format_bytes(device.cache_bytes)} last-level cache" if device.cache_bytes else None,
        f"{generation} {device.compute_capability}" if device.compute_capability else None,
        f"driver {device.driver}" if device.driver else None,
        f"native: {', '.join(device.native)}" if device.native else None,
    ]
    return [fact for fact in found if fact]


def show_calibration(devices: Sequence[Device]) -> None:
    """Draw a button for each device that measures a sweep of it, and what the runs that it started changed."""
    with st.container(horizontal=True):
        for device in devices:
            label = f"Calibrate {plain(device.short_title)}"
            if st.button(label, key=f"calibrate.{device.id}", icon=":material/tune:", disabled=device.is_simulated):
                queue_and_show(partial(_queued, device, devices), CALIBRATING)
    runs = started(CALIBRATING)
    if any(run.active for run in runs):
        redrawn(_show_measuring, 2.0)()
    elif runs:
        _show_calibrated(runs)


def _show_measuring() -> None:
    """Show how many runs have ended, until all have: the page is drawn again then."""
    runs = started(CALIBRATING)
    if not any(run.active for run in runs):
        st.rerun()
    st.info(f"Measuring: {sum(not run.active for run in runs)} of {len(runs)} runs ended.", icon=":material/timer:")


def _queued(device: Device, devices: Sequence[Device]) -> Sequence[str]:
    check(Right.MEASURE)
    seconds = {experiment: estimate(experiment, devices).seconds for experiment in sweep_of(device)}
    queued = store().submit_all(seconds, owner(), address=address())
    for run_id in queued:
        store().describe(run_id, owner(), Description(title=TITLE), admin=is_admin())
    return queued


def _show_calibrated(runs: Sequence[Run]) -> None:
    results = [result for run in runs for result in run.results if result.environment]
    if not results or results[0].environment is None:
        st.warning("No case was measured.", icon=":material/warning:")
        return
    device = results[0].environment.device
    earlier = [result for run_id, result in store().measured_results(device) if run_id not in {run.id for run in runs}]
    show_table(
        lambda: [columns_of(row) for row in compared(device, results, earlier[::-1])],
        tuple(run.id for run in runs),
        {},
        alt=f"Calibration of {device.title}: predicted before, measured, and predicted now",
    )
    for sentence in unlike_its_kind(device, results):
        st.warning(plain(sentence), icon=":material/warning:")


def show_accelerators(accelerators: Sequence[Accelerator]) -> None:
    """Show `accelerators` as a table with peaks, memory and the source of each row.

    Where there are few, what their rows say of themselves follows in full: a cell of the table cuts it off.
    """
    show_table(
        lambda: [_accelerator_row(accelerator) for accelerator in accelerators],
        tuple(accelerator.key for accelerator in accelerators),
        {**{dtype: "FLOP/s" for dtype, _ in SHOWN}, "Bandwidth": "B/s", "Memory": "B", "Power": "W"},
        alt=f"Table of {len(accelerators)} accelerators with dense peaks by dtype, memory and source",
        config={
            "Name": st.column_config.TextColumn(width=220),
            # A column whose first rows are unknown would be too narrow for the others
            **{dtype: st.column_config.Column(width=100) for dtype, _ in SHOWN},
            "Year": st.column_config.NumberColumn(format="%d"),
            "Source": st.column_config.LinkColumn(display_text="source"),
            "Derived": st.column_config.TextColumn(help="Figures of this row that the vendor does not publish"),
            "Confidence": st.column_config.TextColumn(help="How reliable the row is; see the notes for the reasons"),
            "Notes": st.column_config.TextColumn(width="large"),
        },
    )
    for accelerator in accelerators if len(accelerators) <= 6 else ():
        if accelerator.notes:
            st.caption(f"**{plain(accelerator.name)}**: {plain(accelerator.notes)}")


def _accelerator_row(accelerator: Accelerator) -> dict[str, object]:
    rates = {(peak.dtype, peak.unit): peak for peak in peaks_of(accelerator)}
    shown = {dtype: rates.get((dtype, unit)) for dtype, unit in SHOWN}
    bandwidth = bandwidth_of(accelerator)
    figures = {**shown, "Bandwidth": bandwidth}
    return {
        "Name": accelerator.name,
        "Architecture": accelerator.architecture,
        "Year": accelerator.release_year,
        **{dtype: peak.flop_per_s if peak else None for dtype, peak in shown.items()},
        "Bandwidth": bandwidth.bytes_per_s if bandwidth else None,
        "Memory": accelerator.memory_bytes,
        "Power": accelerator.power_w,
        "Derived": ", ".join(name for name, figure in figures.items() if figure and figure.kind == "formula"),
        "Confidence": accelerator.confidence,
        "Source": accelerator.source_url,
        "Notes": accelerator.notes,
    }


def edit_own_peaks(devices: Sequence[Device]) -> None:
    """Draw the forms and the list of peaks and bandwidths of a visitor's own, which replace the device's for them."""
    st.caption(
        "From a datasheet, a vendor or your best run. MFU and bandwidth utilization on your pages are then relative to "
        "it; other visitors are not affected."
    )
    compute, memory = st.tabs(["Compute peak", "Memory bandwidth"])
    with compute, st.form("own_peak", clear_on_submit=True):
        target, dtype, units, rate, source = st.columns([3, 2, 5, 2, 3])
        device = _choose(target, devices)
        format_name = dtype.selectbox("Dtype", list(DTYPES), index=list(DTYPES).index("fp32"))
        unit = units.selectbox("Of", list(UNIT_WORDS), format_func=UNIT_WORDS.__getitem__)
        text = rate.text_input("TFLOP/s", placeholder="0.53")
        said_by = source.text_input("Source", placeholder="datasheet, page 2")
        if st.form_submit_button("Save", icon=":material/save:"):

            def save() -> str:
                peak = Peak(format_name, unit, _rate(text, "peak", "TFLOP/s"), "own", _said_in(said_by))
                store().set_own_peak(owner(), device, peak=peak)
                rate = format_flop_per_s(peak.flop_per_s)
                return f"{rate} in {peak.dtype}, {UNIT_WORDS[peak.unit]}, for {device.title}"

            _save(save)
    with memory, st.form("own_bandwidth", clear_on_submit=True):
        target, rate, source = st.columns([5, 2, 4])
        device = _choose(target, devices)
        text = rate.text_input("GB/s", placeholder="3350")
        said_by = source.text_input("Source", placeholder="datasheet, page 2")
        if st.form_submit_button("Save", icon=":material/save:"):

            def save() -> str:
                bandwidth = Bandwidth(_rate(text, "bandwidth", "GB/s"), "own", _said_in(said_by))
                store().set_own_bandwidth(owner(), device, bandwidth=bandwidth)
                return f"{format_bytes_per_s(bandwidth.bytes_per_s)} of memory for {device.title}"

            _save(save)
    for device in devices:
        own = own_peaks(device)
        for peak in own.compute:
            what = f"**{peak.dtype}**, {UNIT_WORDS[peak.unit]}: {format_flop_per_s(peak.flop_per_s)}"
            delete = partial(store().delete_own_peak, owner(), device, dtype=peak.dtype, unit=peak.unit)
            key = f"delete.{device.id}.{peak.dtype}.{peak.unit}"
            _own_row(f"{device.title}, {what}, {plain(peak.source)}", key, delete)
        if own.bandwidth:
            what = f"**memory**: {format_bytes_per_s(own.bandwidth.bytes_per_s)}"
            delete = partial(store().delete_own_bandwidth, owner(), device)
            _own_row(f"{device.title}, {what}, {plain(own.bandwidth.source)}", f"delete.{device.id}.memory", delete)


def _rate(text: str, what: str, unit: str) -> float:
    """Return what was typed in TFLOP/s or GB/s, of 1e9 bytes each, in the base unit.

    Raises:
        InvalidInput: no positive number, or beyond any machine.
    """
    check_text(what, text)
    number = read_number(text)
    if number is None or not 0 < number <= 1e6:
        raise InvalidInput.of(what, text, f"numbers above 0, up to 1,000,000 ({unit})")
    return number * {"TFLOP/s": 1e12, "GB/s": 1e9}[unit]


def _said_in(text: str) -> str:
    check_text("source", text)
    return text.strip() or "entered by you"


def _choose(target: DeltaGenerator, devices: Sequence[Device]) -> Device:
    """Draw the choice of a device by its id: a device itself changes as its ceilings are measured."""
    by_id = {device.id: device for device in devices}
    return by_id[target.selectbox("Device", list(by_id), format_func=lambda device_id: by_id[device_id].title)]


def _save(save: Callable[[], str]) -> None:
    try:
        check(Right.KEEP)
        saved = save()
        stored_peaks.forget()
    except InvalidInput as error:
        show_problem(error)
    else:
        st.success(f"Saved: {saved}", icon=":material/check:")


def _own_row(text: str, key: str, delete: Callable[[], object]) -> None:
    words, button = st.columns([6, 1], vertical_alignment="center")
    words.markdown(text)
    if button.button("Delete", key=key, icon=":material/delete:"):
        delete()
        stored_peaks.forget()
        st.rerun()
