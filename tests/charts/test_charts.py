import json
from dataclasses import replace
from functools import cache, partial
from itertools import pairwise
from math import log10

import pytest

import gpuexplore.charts as chart
from gpuexplore.analysis.model import Comparison, Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.api import Outcome
from gpuexplore.charts.lines import _series_order
from gpuexplore.charts.points import panels
from gpuexplore.charts.series import RING
from gpuexplore.core.model import Contrast, Experiment, Measurement, Origin, Shape, Status
from tests.analysis.made import failed, ok, with_contrasts

pytestmark = pytest.mark.long  # Altair checks every specification against its schema

mfu = partial(chart.share, by_memory=False)
ALL = (chart.time, chart.speedup, mfu, chart.bandwidth, chart.throughput)


def sweep(sizes=(64, 128, 256), dtypes=("fp32", "bf16"), implementations=("numpy", "torch"), on=("cpu",)):
    speed = {"numpy": 1e-9, "torch": 5e-10}
    return tuple(
        ok(speed[implementation] * size**2, size=size, dtype=dtype, implementation=implementation, on=device)
        for size in sizes
        for device in on
        for dtype in dtypes
        for implementation in implementations
    )


def swept(baseline=None, context=Context(), **about):
    """Return the analysis of a sweep."""
    return analyze(sweep(**about), Comparison(baseline), context)


def beside(live=(), **about):
    """Return the analysis of live results with recorded ones of a device that has the same id beside them."""
    return analyze(live or sweep(), context=Context(recorded=sweep(**about)))


@cache
def plain(draw):
    """Return the chart of a sweep."""
    return draw(swept())


@cache
def with_recorded(draw):
    """Return the chart of a sweep with recorded results beside it."""
    return draw(beside())


SPECIFICATIONS = {}  # with their charts, which keeps these alive


def spec_of(made):
    """Return the specification of a chart, which is checked against the schema once."""
    if id(made) not in SPECIFICATIONS:
        SPECIFICATIONS[id(made)] = (made, made.to_dict())
    return SPECIFICATIONS[id(made)][1]


def layers(made, kind):
    return [one for one in spec_of(made)["layer"] if one["mark"]["type"] == kind]


def data_of(made, layer):
    spec = spec_of(made)
    return spec["datasets"][layer.get("data", spec.get("data"))["name"]]


def points_of(made):
    return data_of(made, layers(made, "point")[0])


def rules_of(made):
    return [
        data_of(made, layer)[0]["value"] for layer in layers(made, "rule") if layer["encoding"]["y"]["field"] == "value"
    ]


@pytest.mark.parametrize("draw", ALL)
def test_every_chart_fills_its_container_and_has_alternative_text(draw):
    spec = spec_of(plain(draw))
    assert spec["width"] == "container"
    assert "at 256 × 256 × 256" in spec["description"]


@pytest.mark.parametrize("draw", ALL)
@pytest.mark.parametrize(("results", "said"), [((), "no results yet"), ((failed(),), "nothing to draw yet")])
def test_nothing_measured_draws_nothing_and_says_so(draw, results, said):
    made = draw(analyze(results))
    assert points_of(made) == []
    assert said in made.to_dict()["description"]


@pytest.mark.parametrize("draw", ALL)
def test_the_same_results_give_the_same_specification(draw):
    assert draw(analyze(sweep())).to_dict() == spec_of(plain(draw))


@pytest.mark.parametrize("draw", ALL)
def test_failed_and_incorrect_cases_are_never_drawn(draw):
    results = (*sweep(), failed(Status.INCORRECT, "wrong", size=512), failed(size=512, implementation="numpy"))
    assert {point["size"] for point in points_of(draw(analyze(results)))} == {64, 128, 256}


def test_a_run_can_be_drawn_like_its_results():
    asked = Experiment("matmul", (Shape.of(m=1, k=1, n=1),), ("fp32",), ("numpy", "torch"))
    assert chart.time(Outcome(asked, sweep())).to_dict() == spec_of(plain(chart.time))


def test_what_is_neither_a_run_nor_its_analysis_is_named_with_what_is_accepted():
    with pytest.raises(TypeError, match=r"takes a run or what run.analyze\(\) returns, not a tuple"):
        chart.time(sweep())


def test_sizes_are_on_a_log_scale_and_other_shapes_on_an_ordinal_one_in_order_of_work():
    x = layers(plain(chart.time), "point")[0]["encoding"]["x"]
    assert x["axis"]["values"] == [64, 128, 256]
    assert x["scale"]["type"] == "log"
    assert x["title"] == "m = k = n"

    wide, tall = Shape.of(m=10, k=90, n=90), Shape.of(m=20, k=20, n=20)
    x = layers(chart.time(analyze((ok(shape=wide), ok(shape=tall)))), "point")[0]["encoding"]["x"]
    assert (x["type"], x["title"]) == ("ordinal", "m × k × n")
    assert x["sort"] == ["20 × 20 × 20", "10 × 90 × 90"]


def names_of(made):
    """Return the names at the ends of the lines."""
    _, texts = (layer for layer in layers(made, "text") if layer["encoding"]["text"]["field"] == "name")  # a rim below
    return [row["name"] for row in data_of(made, texts)]


def test_colours_do_not_depend_on_what_else_is_shown():
    alone = layers(chart.time(swept(implementations=("torch",))), "point")[0]["encoding"]["color"]
    both = layers(plain(chart.time), "point")[0]["encoding"]["color"]
    assert alone["scale"] == both["scale"]
    assert both["legend"] is None
    assert names_of(plain(chart.time)) == ["numpy fp32", "torch fp32", "numpy bf16", "torch bf16"]


def test_legends_select_and_a_single_series_has_none():
    made = chart.time(swept(dtypes=("fp32",), implementations=("torch",)))
    encoding = layers(made, "line")[0]["encoding"]
    assert encoding["color"]["legend"] is None
    assert "strokeDash" not in encoding
    assert "params" not in made.to_dict()

    assert {one["name"]: one["bind"] for one in plain(chart.time).to_dict()["params"]} == {
        "pick_dtype": "legend",
    }

    line, point = (layers(plain(chart.time), kind)[0]["encoding"] for kind in ("line", "point"))
    assert line["strokeDash"]["legend"] == point["shape"]["legend"]
    assert point["shape"]["legend"]["values"] == ["fp32", "bf16"]


def test_names_at_the_ends_of_lines_keep_apart_and_within_the_axes():
    heights = {"numpy": 1e-3, "torch": 1.001e-3, "numba-cpu": 1.002e-3}
    made = analyze(
        [
            ok(factor * seconds, size=size, implementation=name)
            for size, factor in ((64, 0.1), (128, 1.0))
            for name, seconds in heights.items()
        ]
    )
    found = chart.time(made)
    _, texts = (layer for layer in layers(found, "text") if layer["encoding"]["text"]["field"] == "name")
    places = sorted(log10(row["value"]) for row in data_of(found, texts))
    low, high = (log10(end) for end in texts["encoding"]["y"]["scale"]["domain"])

    assert names_of(found) == ["numpy", "torch", "numba-cpu"]
    assert min(second - first for first, second in pairwise(places)) >= 0.99 * 13 / (0.8 * 440) * (high - low)
    assert low <= places[0] <= places[-1] <= high


def test_a_panel_shows_one_dtype_on_the_axes_of_all():
    whole, panel = plain(chart.time), chart.time(swept(), "bf16")

    assert {row["dtype"] for row in data_of(panel, layers(panel, "line")[0])} == {"bf16"}
    assert layers(panel, "line")[0]["encoding"]["y"]["scale"] == layers(whole, "line")[0]["encoding"]["y"]["scale"]
    assert names_of(panel) == ["numpy", "torch"]


def test_more_lines_than_can_be_told_apart_get_a_panel_for_each_dtype():
    many = {"dtypes": ("fp32", "bf16", "fp16"), "on": ("cpu", "cuda:0")}

    assert list(panels(swept(**many))) == ["fp32", "bf16", "fp16"]
    assert panels(swept()) == panels(swept(sizes=(64,), **many)) == {None: None}


def test_one_size_puts_the_series_or_the_dtypes_of_one_side_by_side():
    made = chart.time(swept(sizes=(64,)))
    x = layers(made, "point")[0]["encoding"]["x"]
    assert (x["field"], x["title"]) == ("series", "64 × 64 × 64")
    assert layers(made, "line") == []

    assert (
        layers(chart.time(swept(sizes=(64,), implementations=("torch",))), "point")[0]["encoding"]["x"]["field"]
        == "dtype"
    )


def test_several_devices_are_part_of_the_series():
    made = chart.time(swept(on=("cpu", "cuda:0")))
    assert layers(made, "point")[0]["encoding"]["color"]["legend"]["values"] == [
        "numpy · cpu",
        "torch · cpu",
        "numpy · cuda:0",
        "torch · cuda:0",
    ]


@pytest.mark.parametrize(("draw", "column"), [(chart.time, "interval"), (chart.throughput, "rate")])
def test_bars_span_the_interval_that_tooltips_and_tables_say(draw, column):
    analysis = analyze((ok(1e-3, spread=0.1),))
    one = points_of(draw(analysis))[0]
    low_s, high_s = analysis.shown[0].time.low, analysis.shown[0].time.high

    assert low_s < 1e-3 < high_s
    assert one[column]
    factor = one["value"] / 1e-3 if column == "interval" else one["value"] * 1e-3
    ends = [low_s * factor, high_s * factor] if column == "interval" else [factor / high_s, factor / low_s]
    assert [one["low"], one["high"]] == pytest.approx(ends)


def test_interval_far_wider_than_the_points_leaves_the_chart_and_does_not_stretch_it():
    steady, uncertain = sweep(sizes=(64, 128), dtypes=("fp32",), implementations=("torch",))
    samples = (1e-7, 1e-6, 1e-3, 1.0, 1e3)
    wild = replace(uncertain, measurement=replace(uncertain.measurement, samples_s=samples))
    made = chart.time(analyze((steady, wild)))
    low, high = layers(made, "point")[0]["encoding"]["y"]["scale"]["domain"]

    values = [point["value"] for point in points_of(made)]
    assert max(point["high"] for point in points_of(made)) > 100 * max(values)
    assert min(values) / 10 < low < high < 10 * max(values)
    assert all(layer["mark"]["clip"] for layer in layers(made, "rule") if layer["encoding"]["y"]["field"] == "low")


def test_other_conditions_are_short_strokes_with_a_note_and_their_own_words():
    plain = sweep(sizes=(64, 128), dtypes=("fp32",), implementations=("torch",))
    results = [with_contrasts(plain[0], Contrast("warm", (2e-6,)), Contrast("graph", reason="no")), plain[1]]
    made = chart.time(analyze(results))
    (stroke,) = data_of(made, layers(made, "tick")[0])

    assert (stroke["value"], stroke["case"]) == (2e-6, "torch in fp32, from warm caches")
    assert len(points_of(made)) == 2
    assert points_of(made)[0]["also"] == "2.00 µs from warm caches, not replayed from a graph, without launches: no"
    assert "from warm caches" in chart.time_notes(analyze(results))
    assert layers(chart.time(analyze(plain)), "tick") == []
    assert chart.time_notes(analyze(plain)) == "Bars: 95 % interval of the median."


def test_tooltips_say_what_was_measured():
    one = points_of(plain(chart.time))[0]
    assert one["case"] == "numpy in fp32"
    assert one["samples"] == "9"
    assert one["share"].endswith("of the measured peak")


def test_speedup_draws_all_but_its_baseline_over_a_rule_at_one():
    made = plain(chart.speedup)
    assert {point["series"] for point in points_of(made)} == {"torch"}
    assert rules_of(made) == [1.0]

    assert {point["dtype"] for point in points_of(chart.speedup(swept("fp32")))} == {"bf16"}


@pytest.mark.parametrize(("slow_s", "scale"), [(2e-3, "linear"), (1.0, "log")])
def test_speedups_that_differ_much_are_on_a_log_scale(slow_s, scale):
    y = layers(chart.speedup(analyze((ok(slow_s, implementation="numpy"), ok(1e-3)))), "point")[0]["encoding"]["y"]
    assert y["scale"].get("type", "linear") == scale


def test_mfu_names_the_kind_of_peak_where_there_is_one_and_shows_full_only_when_near():
    low, high = mfu(analyze((ok(1e-3),))), mfu(analyze((ok(2.2e-6),)))
    assert layers(low, "point")[0]["encoding"]["y"]["title"] == "MFU, % of the measured peak"
    assert (rules_of(low), rules_of(high)) == ([], [1.0])

    results = (ok(), ok(implementation="numba-cuda"))
    assert layers(mfu(analyze(results)), "point")[0]["encoding"]["y"]["title"] == "MFU, % of the peak"


def test_rates_have_a_line_for_each_peak_and_that_of_the_memory():
    assert rules_of(plain(chart.throughput)) == [4e12, 1e12]

    made = plain(chart.bandwidth)
    assert rules_of(made) == [1e11]
    labels = [data_of(made, layer)[0] for layer in layers(made, "text")]
    assert any(row.get("label") == "measured memory bandwidth: 100 GB/s" for row in labels)


def test_what_is_left_out_is_counted_with_its_reason():
    assert chart.left_out(swept().results) is None
    assert chart.left_out(analyze((ok(), failed())).results) == "1 of 2 cases is not drawn: 1 skipped."

    results = (ok(), ok(dtype="fp64"), failed(implementation="numpy"))
    assert (
        chart.share_left_out(analyze(results), by_memory=False)
        == "2 of 3 cases are not drawn: 1 skipped, 1 without a known peak."
    )
    assert "1 without" not in str(chart.speedup_left_out(swept()))
    assert chart.speedup_left_out(analyze(results)) == "3 of 3 cases are not drawn: 2 without a baseline, 1 skipped."


def test_alternative_text_gives_the_main_figures_and_says_what_is_recorded():
    assert chart.time(swept(dtypes=("fp32",))).to_dict()["description"] == (
        "Time per call of matrix multiplication, 3 sizes; at 256 × 256 × 256: "
        "torch in fp32 32.8 µs, numpy in fp32 65.5 µs."
    )

    assert (
        "torch · recorded: a made-up processor in fp32" in chart.time(beside(dtypes=("fp32",))).to_dict()["description"]
    )


def test_frame_has_a_row_per_result():
    frame = chart.to_frame(analyze((*sweep(), failed())))
    assert len(frame) == 13
    assert frame["median_s"].isna().sum() == 1
    assert frame["speedup"].max() == pytest.approx(2)


def test_default_implementations_come_first_whatever_rungs_an_operation_has():
    names = list(_series_order(analyze([ok()]).shown))

    assert names[:4] == ["numpy", "numba-cpu", "numba-cuda", "torch"]
    assert "numba-cpu-naive" in names[4:]


def test_recorded_devices_are_named_so_and_stay_apart():
    drawn = points_of(chart.time(analyze(sweep(), context=Context(origin=Origin.RECORDED))))
    assert {point["series"] for point in drawn} == {
        "numpy · recorded: a made-up processor",
        "torch · recorded: a made-up processor",
    }

    analysis = analyze(sweep(on=("cuda:0", "cuda:1")), context=Context(origin=Origin.RECORDED))
    devices = {analyzed.device_label for analyzed in analysis.results}
    assert devices == {"a made-up processor (cuda:0)", "a made-up processor (cuda:1)"}

    assert {analyzed.case.device for analyzed in beside().shown} == {"cpu"}


def test_the_legend_says_what_is_recorded_with_hollow_symbols_in_a_taller_chart():
    legend = layers(with_recorded(chart.time), "point")[0]["encoding"]["color"]["legend"]
    assert legend["values"] == [
        "numpy · cpu",
        "numpy · recorded: a made-up processor",
        "torch · cpu",
        "torch · recorded: a made-up processor",
    ]
    assert '"torch · recorded: a made-up processor": "torch · recorded"' in legend["labelExpr"]

    legend = layers(chart.time(beside(on=("cuda:0", "cuda:1"))), "point")[0]["encoding"]["color"]["legend"]
    assert 'torch · recorded: a made-up processor (cuda:1)"}' in legend["labelExpr"]

    symbol = layers(with_recorded(chart.time), "point")[0]["encoding"]["color"]["legend"]["symbolType"]["expr"]
    recorded = json.dumps(
        [f"{name} · recorded: a made-up processor" for name in ("numpy", "torch")], ensure_ascii=False
    )
    assert symbol == f"indexof({recorded}, datum.value) < 0 ? 'circle' : '{RING}'"

    solid, hollow = layers(with_recorded(chart.time), "point")
    assert hollow["encoding"]["color"]["legend"] is hollow["encoding"]["shape"]["legend"] is None
    assert solid["encoding"]["shape"]["legend"]["values"] == ["fp32", "bf16"]

    alone, both = plain(chart.time), with_recorded(chart.time)
    assert layers(both, "point")[0]["encoding"]["color"]["legend"]["columns"] == 2
    assert both.to_dict()["height"] > alone.to_dict()["height"]


@pytest.mark.parametrize("draw", ALL)
def test_recorded_points_are_hollow_and_their_lines_thin(draw):
    made = with_recorded(draw)
    solid, hollow = layers(made, "point")
    thick, thin = layers(made, "line")

    assert (solid["mark"]["filled"], hollow["mark"]["filled"]) == (True, False)
    assert thin["mark"]["strokeWidth"] < thick["mark"]["strokeWidth"]
    assert {point["origin"] for point in data_of(made, solid)} == {"live"}
    assert {point["origin"] for point in data_of(made, hollow)} == {"recorded"}


@pytest.mark.parametrize("draw", ALL)
def test_without_recorded_results_nothing_is_hollow(draw):
    assert len(layers(plain(draw), "point")) == 1


def colors_of(made):
    """Return the colour of each series."""
    scale = layers(made, "point")[0]["encoding"]["color"]["scale"]
    return dict(zip(scale["domain"], (color["expr"] for color in scale["range"]), strict=True))


@pytest.mark.parametrize("draw", ALL)
def test_an_implementation_has_one_colour_live_and_recorded_on_every_chart(draw):
    alone, both = colors_of(plain(chart.time)), colors_of(with_recorded(draw))
    for name in ("numpy", "torch"):
        for device in ("cpu", "recorded: a made-up processor"):
            assert both[f"{name} · {device}"] == alone[name]


def test_every_implementation_and_every_recorded_device_has_another_colour():
    colors = colors_of(plain(chart.time))
    assert len(set(colors.values())) == len(colors)

    colors = colors_of(chart.time(beside(on=("cuda:0", "cuda:1"))))
    recorded = [color for series, color in colors.items() if "recorded" in series]
    assert len(set(recorded)) == len(recorded) == 4


def test_recorded_and_live_results_are_never_paired():
    found = beside(sweep(dtypes=("fp32",)), dtypes=("fp32",), implementations=("torch",)).recorded

    assert {analyzed.speedup.paired for analyzed in found} == {False}
    assert {analyzed.speedup.baseline for analyzed in found} == {"numpy on cpu"}


def test_recorded_results_alone_are_solid_in_their_own_colours_and_say_what_they_are():
    analysis = analyze(sweep(), context=Context(origin=Origin.RECORDED))
    made = chart.time(analysis)
    (point,) = layers(made, "point")

    assert point["mark"]["filled"]
    assert point["encoding"]["color"]["legend"]["values"] == [
        "numpy · recorded: a made-up processor",
        "torch · recorded: a made-up processor",
    ]
    for name in ("numpy", "torch"):
        assert colors_of(made)[f"{name} · recorded: a made-up processor"] == colors_of(plain(chart.time))[name]


def test_one_size_with_recorded_series_has_a_legend_instead_of_crowded_labels():
    made = chart.time(beside(sweep(sizes=(64,)), sizes=(64,)))
    solid, hollow = layers(made, "point")

    assert solid["encoding"]["x"]["axis"]["labels"] is False
    assert len(solid["encoding"]["color"]["legend"]["values"]) == 4
    assert not hollow["mark"]["filled"]


@pytest.mark.parametrize("draw", ALL)
def test_the_names_of_layers_do_not_go_by_what_is_drawn(draw):
    names = [layer.name for layer in plain(draw).layer]

    assert names == [f"layer_{place}" for place in range(len(names))]


def test_points_of_a_first_pass_are_hollow_with_the_interval_of_their_median():
    first, *others = sweep()
    made = chart.time(analyze((replace(first, provisional=True), *others), running=True))

    filled, hollow = layers(made, "point")
    (point,) = data_of(made, hollow)
    assert (filled["mark"]["filled"], hollow["mark"]["filled"]) == (True, False)
    assert len(data_of(made, filled)) == len(others)
    assert (point["implementation"], point["dtype"]) == (first.case.implementation, first.case.dtype)
    assert point["interval"].endswith("first pass, being refined")
    assert "Hollow points" in chart.time_notes(analyze((replace(first, provisional=True),)))
    assert len(layers(chart.time(analyze(sweep())), "point")) == 1


@pytest.mark.parametrize("draw", [chart.time, chart.throughput, chart.bandwidth])
def test_one_sample_is_a_hollow_point_without_a_bar(draw):
    first, *others = sweep()
    single = replace(first, measurement=Measurement((1e-3,), 1.0))
    made = draw(analyze((single, *others)))

    _, hollow = layers(made, "point")
    (point,) = data_of(made, hollow)
    assert (point["low"], point["high"], point["interval"]) == (None, None, "none: 1 sample")
    assert "one_sample" in point["flags"].replace(" ", "_")
    assert "a single sample, no interval" in chart.time_notes(analyze((single, *others)))


def labels_of(made):
    return [row["label"] for layer in layers(made, "text") for row in data_of(made, layer) if row.get("label")]


@pytest.mark.parametrize(("dtype", "peak"), [("fp32", 1e12), ("bf16", 4e12)])
def test_a_peak_is_drawn_only_in_the_panel_where_it_holds(dtype, peak):
    analysis = swept(implementations=("torch",))
    by_dtype, by_lines = (chart.throughput(analysis, panel) for panel in (dtype, frozenset({("torch", dtype)})))
    whole = chart.throughput(analysis)

    assert rules_of(by_dtype) == rules_of(by_lines) == [peak]
    assert rules_of(whole) == [4e12, 1e12]


def test_a_bandwidth_is_drawn_only_where_its_device_is():
    far = ok(1e-3, on="cuda:0", dtype="bf16", spec={"bandwidth": 9e11})
    analysis = analyze(
        (ok(2e-3), far, ok(2e-3, size=64), replace(far, case=replace(far.case, shape=Shape.of(m=64, k=64, n=64))))
    )

    assert rules_of(chart.bandwidth(analysis, "fp32")) == [1e11]
    assert rules_of(chart.bandwidth(analysis, "bf16")) == [9e11]


def test_two_peaks_of_one_panel_say_whose_they_are():
    analysis = swept()  # NumPy widens bf16 and computes in fp32

    assert set(labels_of(chart.throughput(analysis, "bf16"))) == {
        "measured peak: 4.00 TFLOP/s",
        "fp32, measured peak: 1.00 TFLOP/s",
    }
    assert set(labels_of(chart.throughput(analysis, "fp32"))) == {"measured peak: 1.00 TFLOP/s"}
    assert chart.peak_notes(analysis) == (
        "1.00 TFLOP/s is the peak of numpy in fp32, torch in fp32, numpy in bf16; "
        "4.00 TFLOP/s is the peak of torch in bf16."
    )


def test_dtypes_whose_peaks_differ_have_a_panel_each_on_an_axis_cut_to_it():
    analysis = swept()
    shown = panels(analysis, by_peak=True)
    domains = {
        panel: layers(chart.throughput(analysis, lines), "point")[0]["encoding"]["y"]["scale"]["domain"]
        for panel, lines in shown.items()
    }

    assert list(shown) == ["fp32", "bf16"]
    assert domains["fp32"] != domains["bf16"]
    assert rules_of(chart.throughput(analysis, shown["fp32"])) == [1e12]


@pytest.mark.parametrize("sizes", [(64, 128), (64,)])
def test_lines_of_one_panel_that_are_shares_of_different_peaks_say_of_which(sizes):
    said = json.dumps(mfu(swept(sizes=sizes, dtypes=("bf16",))).to_dict(), ensure_ascii=False)
    alike = json.dumps(mfu(swept(sizes=sizes, dtypes=("fp32",))).to_dict(), ensure_ascii=False)

    assert "numpy, of 1.00 TFLOP/s" in said.replace("\\", "")
    assert "torch, of 4.00 TFLOP/s" in said.replace("\\", "")
    assert ", of 1.00 TFLOP/s" not in alike
