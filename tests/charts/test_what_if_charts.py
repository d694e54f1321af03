from dataclasses import replace

import altair as alt
import pytest

from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.analysis.what_if.summary import entered_results
from gpuexplore.analysis.what_if.what_if import Known, what_if
from gpuexplore.analysis.what_if.workload import of_operation
from gpuexplore.charts.what_if import (
    ComparedQuantity,
    _name_is_left,
    across_devices,
    entered_shares,
    trade_off,
    what_if_speedups,
    what_if_times,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.core.model import Origin
from gpuexplore.core.units import format_seconds
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.operations import OPERATIONS
from gpuexplore.ui.shared.charts import spec_of
from tests.analysis.made import calibration
from tests.analysis.what_if.test_entered_results import PROMISED, T4, TIMES, WORKLOAD

H100 = next(as_device(accelerator) for accelerator in ACCELERATORS if accelerator.key == "h100-sxm5-80gb")
TIME = ComparedQuantity("Time", "Time", lambda row: row.time, format_seconds, "datum.value", "unknown")


@pytest.fixture(scope="module")
def rows():
    known = Known(calibration(), times_s=TIMES)
    return what_if(WORKLOAD, [T4, H100], dtypes=list(FORMATS), baseline="fp32", known=known)


@pytest.fixture(scope="module")
def own(rows):
    return [row for row in rows if row.device == T4]


def layers(spec, kind):
    return [one for one in spec["layer"] if one["mark"]["type"] == kind]


def data(spec, layer):
    return layer.get("data", spec["data"])["values"]


def test_times_are_drawn_filled_where_measured_here_and_hollow_elsewhere_on_a_log_scale(own):
    spec = what_if_times(own)
    filled, hollow = layers(spec, "point")

    assert (filled["mark"]["filled"], hollow["mark"]["filled"]) == (True, False)
    assert filled["transform"][0]["filter"] == "datum.origin == 'measured here'"
    assert hollow["transform"][0]["filter"] == "!(datum.origin == 'measured here')"
    assert filled["encoding"]["x"]["scale"]["type"] == "log"
    drawn = {one["dtype"]: one for one in data(spec, filled)}
    assert set(drawn) == {"fp64", "fp32", "bf16", "fp16"}
    assert (drawn["fp32"]["origin"], drawn["fp16"]["origin"]) == ("entered", "predicted")


def test_every_format_has_a_row_that_says_where_its_time_is_from_or_why_there_is_none(own):
    spec = what_if_times(own)
    _, labels = layers(spec, "text")
    said = {one["dtype"]: one["said"] for one in data(spec, labels)}

    assert said["fp32"] == "1.73 s, entered"
    assert said["bf16"] == "3.87 s, entered, emulated"
    assert said["fp16"].endswith(", predicted")
    assert said["tf32"] == said["fp8"] == "unsupported"
    assert "bf16 3.87 s, entered, emulated" in spec["description"]


def test_tooltip_says_of_which_calls_a_measurement_is(own):
    row = replace(own[0], basis="measured here with torch", notes=("measured with queued calls",))
    spec = what_if_times([row])
    (drawn,) = data(spec, layers(spec, "point")[0])

    assert drawn["basis"] == "measured here with torch; measured with queued calls"


def test_axis_of_times_says_of_which_calls_they_are_where_they_are_of_one_kind(own, rows):
    single = [replace(row, calls="single") for row in own]
    several = [*single[1:], replace(single[0], calls="graph")]
    at_a_cpu = [replace(row, calls=None) for row in own]

    said = [layers(what_if_times(some), "point")[0]["encoding"]["x"]["title"] for some in (single, several, at_a_cpu)]
    assert said == ["Time, single calls", "Time", "Time"]
    spec = across_devices([replace(row, calls="graph") for row in rows], TIME)
    assert spec["description"].startswith("Time, calls in a CUDA graph by device and dtype")


def test_speedups_are_bars_from_zero_with_their_interval(own):
    spec = what_if_speedups(own, "fp32")
    filled, outlined, hollow = layers(spec, "bar")
    whiskers = [layer for layer in layers(spec, "rule") if "x2" in layer["encoding"]]

    assert filled["encoding"]["x"]["scale"]["domain"][0] == 0
    assert outlined["mark"]["fillOpacity"] == hollow["mark"]["fillOpacity"] < 0.5
    assert (outlined["mark"]["strokeDash"], hollow["mark"]["strokeDash"]) == ([1, 0], [4, 2])
    assert len(whiskers) == 1
    assert "Speedup over fp32" in spec["description"]


def test_trade_off_joins_what_nothing_beats(own):
    spec = trade_off(own, "fp32")
    (line,) = layers(spec, "line")

    assert [one["dtype"] for one in data(spec, line)] == ["fp64", "fp32", "fp16"]  # bf16 is slower and less exact
    assert "Unbeaten: fp64, fp32, fp16." in spec["description"]
    scale = spec["layer"][0]["encoding"]["x"]["scale"]
    assert (scale["type"], len(scale["domain"])) == ("log", 2)  # a layer without rows has no extent


def test_devices_stand_below_each_other_with_every_format_that_has_the_quantity(rows):
    spec = across_devices(rows, TIME)
    points = data(spec, layers(spec, "point")[0])

    assert {point["device"] for point in points} == {"Tesla T4", "H100 SXM5 80GB"}
    assert len(points) == 4 + 6
    assert "Tesla T4: least in fp16" in spec["description"]

    only_h100 = replace(TIME, of=lambda row: row.time if row.device == H100 else None)
    spec = across_devices(rows, only_h100)

    assert spec["layer"][0]["encoding"]["y"]["scale"]["domain"] == ["H100 SXM5 80GB"]


def test_charts_are_valid_vega_lite_whose_rows_are_sent_once(own, rows):
    drawn = [what_if_times(own), what_if_speedups(own, "fp32"), trade_off(own, "fp32"), across_devices(rows, TIME)]
    for chart in (*drawn, entered_shares(entered_results(WORKLOAD, own, PROMISED))):
        alt.LayerChart.from_dict(chart).to_dict()

    sent = spec_of(lambda: drawn[0])
    assert len(sent["datasets"]) == 2  # of marks, and of the labels: formats without a time have those alone
    assert all("values" not in layer.get("data", {}) for layer in sent["layer"])


def test_nothing_to_draw_is_drawn_and_said(own):
    nothing = [replace(one, time=None, speedup=None, origin=None) for one in own]

    for chart in (what_if_times(nothing), what_if_speedups(nothing, "fp32"), trade_off(nothing, "fp32")):
        assert chart["description"]
        assert data(chart, layers(chart, "rule")[-1]) == []
    assert "Nothing to draw" in across_devices(nothing, TIME)["description"]


def test_measured_recorded_entered_and_predicted_have_points_of_their_own(own):
    origins = (Origin.LIVE, Origin.RECORDED, Origin.ENTERED, Origin.PREDICTED)
    made = [
        replace(row, origin=origin, time=UncertainValue(1, 1, 1)) for row, origin in zip(own, origins, strict=False)
    ]
    spec = what_if_times(made)

    shapes = layers(spec, "point")[0]["encoding"]["shape"]["scale"]
    assert [one["origin"] for one in data(spec, layers(spec, "point")[0])] == [origin.label for origin in origins]
    assert dict(zip(shapes["domain"], shapes["range"], strict=True)) == {
        "measured here": "circle",
        "recorded": "square",
        "entered": "diamond",
        "predicted": "circle",
    }


def test_claims_are_bars_against_each_peak(own):
    found = entered_results(WORKLOAD, own, PROMISED)
    spec = entered_shares(found)
    (bars,) = layers(spec, "bar")

    assert [(one["dtype"], one["against"], one["said"]) for one in data(spec, bars)] == [
        ("fp32", "promised", "63.5 %"),
        ("fp32", "peak", "62.7 %"),
        ("bf16", "promised", "14.2 %"),
        ("bf16", "peak", "28.0 %"),
    ]
    assert "bf16 of the datasheet peak of fp32, 8.10 TFLOP/s 28.0 %" in spec["description"]
    assert entered_shares([])["description"].endswith("nothing to draw.")


@pytest.mark.long
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_every_operation_can_be_drawn(operation):
    contract = OPERATIONS[operation]
    workload = of_operation(contract, contract.shape_of_size(contract.default_sizes[-1]))
    rows = what_if(workload, [H100], dtypes=list(FORMATS), baseline="fp32", known=Known(calibration()))

    assert all(row.error is not None for row in rows)
    for chart in (what_if_times(rows), what_if_speedups(rows, "fp32"), trade_off(rows, "fp32")):
        assert chart["description"]


def test_a_copy_that_loses_nothing_has_no_place_on_a_log_scale():
    contract = OPERATIONS["copy"]
    workload = of_operation(contract, contract.shape_of_size(10**6))
    rows = what_if(workload, [H100], dtypes=["fp64", "fp32"], baseline="fp32", known=Known(calibration()))
    spec = trade_off(rows, "fp32")

    assert rows[0].error == 0
    assert {one["dtype"] for one in data(spec, layers(spec, "line")[0])} == {"fp32"}


def test_a_chart_of_one_row_is_high_enough_for_the_label_above_it(own):
    (alone,) = [row for row in own if row.dtype == "fp32"]
    (entered,) = entered_results(WORKLOAD, [alone], {})

    for spec in (entered_shares([entered]), what_if_times([alone])):
        label = max(-layer["mark"]["dy"] for layer in layers(spec, "text") if "dy" in layer["mark"])
        of_axis = 62  # pixels of its labels and title
        assert (spec["height"] - of_axis) / 2 > label + 8


def test_a_time_that_is_impossible_says_so_in_its_row():
    known = Known(calibration(), times_s={"fp32": 1e-6})
    (row,) = what_if(WORKLOAD, [T4], dtypes=["fp32"], baseline="fp32", known=known)

    _, labels = layers(what_if_times([row]), "text")
    assert data(what_if_times([row]), labels)[0]["said"] == "1.00 µs, entered, impossible"
    _, labels = layers(what_if_speedups([row], "fp32"), "text")
    assert data(what_if_speedups([row], "fp32"), labels)[0]["said"] == "not compared: impossible"


def test_the_name_of_a_point_gives_way_to_a_point_at_its_right():
    pairs = ((1e-15, 1.2), (4e-4, 14.3), (3e-3, 14.6), (3e-2, 21.6))
    points = [{"error": error, "value": value} for error, value in pairs]

    assert _name_is_left(points) == [False, True, False, False]
    assert _name_is_left([]) == []
