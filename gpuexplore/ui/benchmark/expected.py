"""The picture before a first run: predicted times of the cases of the form, else those of a recorded run."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import Prediction, predict_each
from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.analysis.utilization.utilization import shape_label, size_of
from gpuexplore.charts import LAYERED, Spec, color_of, layer, log_axis, nominal, number
from gpuexplore.charts.exports.picture import columns_of
from gpuexplore.core import Device, Experiment, InvalidInput, format_interval, format_seconds
from gpuexplore.request import Request, resolve
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.run.recorded import offer_recorded_runs
from gpuexplore.ui.session import DeviceResults, measured_results
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.what_if.known import calibration_on


def show_expected(request: Request, devices: Sequence[Device], said: DeltaGenerator) -> None:
    """Draw the times that the request is predicted to take here, a panel for each dtype, and offer recorded runs.

    Args:
        request: of the form.
        devices: of this machine.
        said: where the sentence about them stands.
    """
    found: tuple[Prediction, ...] = ()
    with suppress(InvalidInput):  # the form names it
        experiment = resolve(request, [device.id for device in devices])
        check_limits(experiment, devices)
        used = tuple(device for device in devices if device.id in experiment.devices)
        found = _predicted(experiment, used, tuple(measured_results(device) for device in used))
    if found:
        said.markdown(f"#### {_best_words(found)}")
        dtypes = list(dict.fromkeys(each.case.dtype for each in found))
        row = st.columns(columns_of(len(dtypes)), gap="small")
        for at, dtype in enumerate(dtypes):
            with row[at % len(row)]:
                st.markdown(f"**{dtype}**")
                show_chart(partial(_expected, found, dtype), found, key=f"chart.expected.{dtype}")
    words = "these are predictions with 90 % intervals, which **Run** replaces with results."
    st.caption(f"Nothing is measured yet: {words if found else 'press **Run**.'}")
    offer_recorded_runs(request.operation, is_first_drawn=not found)


@shared_values(100)
def _predicted(
    experiment: Experiment, devices: tuple[Device, ...], known: tuple[DeviceResults, ...]
) -> tuple[Prediction, ...]:
    """Return the predictions that have a time, from what ships and what was measured on the devices."""
    by_id = {device.id: device for device in devices}
    found = predict_each(
        [(case, by_id[case.device]) for case in experiment.cases()], calibration_on(known), explained=False
    )
    return tuple(each for each in found if each.time_s is not None)


def _best_words(found: Sequence[Prediction]) -> str:
    """Return which case of the last shape has the smallest predicted time, as Markdown."""
    last = [each for each in found if each.case.shape == found[-1].case.shape]
    best = min(last, key=lambda each: each.time_s or 0.0)
    interval = f" ({format_interval(best.interval_s, format_seconds)})" if best.interval_s else ""
    where = "this machine" if len({each.case.device for each in found}) == 1 else best.case.device
    return (
        f"Predicted for {plain(where)}: at {shape_label(best.case.shape)}, {plain(best.case.implementation)} in "
        f"{best.case.dtype} takes the least time, {format_seconds(best.time_s)}{interval}."
    )


def _expected(found: Sequence[Prediction], dtype: str) -> Spec:
    """Return the predicted times of one dtype over the sizes with their intervals, on the axis of all dtypes."""
    devices = list(dict.fromkeys(each.case.device for each in found))
    names = {
        (each.case.implementation, each.case.device): f"{each.case.implementation} · {each.case.device}"
        if len(devices) > 1
        else each.case.implementation
        for each in found
    }
    rows: list[Spec] = [
        {
            "series": names[each.case.implementation, each.case.device],
            "size": f"{size:,}" if (size := size_of(each.case)) else shape_label(each.case.shape),
            "value": each.time_s,
            "low": each.low_s,
            "high": each.high_s,
            "time": format_seconds(each.time_s),
            "interval": format_interval(each.interval_s, format_seconds) if each.interval_s else None,
        }
        for each in found
        if each.case.dtype == dtype
    ]
    sizes = len({row["size"] for row in rows})
    y = log_axis("Time per call", [end for each in found for end in each.interval_s or ()], "s")
    colors = [color_of(implementation, devices.index(device)).to_dict() for implementation, device in names]
    base = {
        "x": nominal("size", sort=None, title=None, axis={"labelAngle": 0, "labelLimit": 300 // sizes}),
        "y": y,
        "color": nominal(
            "series",
            scale={"domain": list(names.values()), "range": colors},
            legend={"title": None, "orient": "top", "columns": 3, "symbolOpacity": 1},
        ),
    }
    band = {**base, "y": number("low", title="Time per call", scale=y["scale"]), "y2": {"field": "high"}}
    words = {"series": "Predicted for", "size": "Size", "time": "Time", "interval": "90 % interval"}
    points = {**base, "tooltip": [nominal(name, title=title) for name, title in words.items()]}
    layers = [
        layer("rule" if sizes == 1 else "area", band, opacity=0.15, tooltip=None),
        layer("line", base, strokeDash=[5, 3], strokeWidth=1.5, tooltip=None),
        layer("point", points, size=50, strokeWidth=2),
    ]
    said = f"Predicted times in {dtype}. {_best_words(found)}"
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": 330, "description": said}
