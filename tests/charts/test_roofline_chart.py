"""The roofline as data: lines, ridges, labels and points, by what Vega-Lite is told."""

from dataclasses import replace
from itertools import pairwise
from math import log10

import pytest

from gpuexplore.analysis.roofline import point_of, published_points
from gpuexplore.analysis.roofs import roofs
from gpuexplore.analysis.run.analyze import analyze_alone
from gpuexplore.charts.quick_altair import quick_altair
from gpuexplore.charts.roofline import LABELS_FROM, LABELS_TO, OPENED, _labels_of_flat, _window, roofline
from gpuexplore.core.model import Bandwidth, CacheRoof, Origin, Peak
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.analysis.made import device, ok

L1 = CacheRoof(1, 20_000, Bandwidth(8e11, "measured_ceiling", "triad"))
L2 = CacheRoof(2, 10**6, Bandwidth(7e11, "measured_ceiling", "triad"))
RESULTS = [ok(1e-3, size=600), ok(1e-6, size=30), ok(5e-4, size=600, dtype="bf16")]
ROOFS = roofs(replace(device(), caches=(L1,)), RESULTS)
POINTS = [point_of(analyze_alone(result), ROOFS, run=f"run{number}") for number, result in enumerate(RESULTS)]
H100 = as_device(next(accelerator for accelerator in ACCELERATORS if accelerator.key == "h100-sxm5-80gb"))
LAYERS = {"slopes": 0, "flats": 1, "ridges": 2, "points": 5, "flat labels": 9, "slope labels": 11}


def drawn(all_roofs, points=()):
    """Return the rows of each layer by what it draws, and the ends of both axes."""
    with quick_altair():
        spec = roofline(all_roofs, points).to_dict(validate=False)
    data = {name: spec["datasets"][spec["layer"][at]["data"]["name"]] for name, at in LAYERS.items()}
    return data | {axis: spec["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy"}


DRAWN = drawn(ROOFS, POINTS)
LEFT, RIGHT = DRAWN["x"]


def layers(spec, kind):
    return [one for one in spec["layer"] if one["mark"]["type"] == kind]


def rows(data, *columns):
    return [tuple(row[column] for column in columns) for row in data]


def ends(data, label):
    return rows([row for row in data if row["label"] == label], "intensity", "rate")


def test_axes_are_logarithmic_and_name_their_units():
    spec = roofline(ROOFS, POINTS).to_dict()
    encoding = spec["layer"][0]["encoding"]

    assert encoding["x"]["title"] == "Arithmetic intensity, FLOP/byte"
    assert (encoding["x"]["scale"]["type"], encoding["y"]["scale"]["type"]) == ("log", "log")
    assert "FLOP/s" in encoding["y"]["axis"]["labelExpr"]


def test_slope_rises_from_the_left_edge_to_the_highest_flat_roof():
    (low, at_low), (high, at_high) = ends(DRAWN["slopes"], "Memory")

    assert (low, at_low) == (LEFT, pytest.approx(LEFT * 1e11))
    assert (high, at_high) == (pytest.approx(40), pytest.approx(4e12))  # bf16's ridge


def test_flat_roof_begins_where_the_fastest_bandwidth_meets_it():
    (start, rate), (end, _) = ends(DRAWN["flats"], "fp32, matrix units")

    assert (start, rate, end) == (pytest.approx(1e12 / 8e11), 1e12, RIGHT)


def test_how_a_roof_was_found_decides_its_dash():
    near = roofs(device(), [ok(6e-4, size=600)])
    bases = dict(rows(drawn((*ROOFS, *near), POINTS)["flats"], "label", "basis"))

    assert bases["fp32, matrix units"] == "microbenchmark"
    assert bases["fp32, vector units"] == "datasheet or formula"
    assert bases["best matmul in fp32, matrix units"] == "best result so far"


def test_a_best_result_far_below_its_limit_is_no_roof():
    assert "best matmul in fp32, matrix units" in {roof.label for roof in ROOFS}
    assert "best matmul in fp32, matrix units" not in {row["label"] for row in DRAWN["flats"]}


def test_points_stand_between_the_labels_of_slopes_and_those_of_flat_roofs():
    places = [log10(point.intensity / LEFT) / log10(RIGHT / LEFT) for point in POINTS]
    assert all(LABELS_TO - 0.001 <= one <= LABELS_FROM for one in places)


def test_a_legend_names_where_points_come_from_unless_all_were_measured_here():
    def legends(points):
        spec = roofline(ROOFS, points).to_dict()
        return [layer["encoding"]["size"]["legend"] for layer in layers(spec, "point")[1:]]

    recorded = [replace(point, origin=Origin.RECORDED) for point in POINTS]
    assert legends(POINTS) == [None, None]
    assert {tuple(legend["values"]) for legend in legends(recorded)} == {("recorded",)}
    assert {tuple(legend["values"]) for legend in legends([*POINTS, *recorded])} == {("measured here", "recorded")}


def test_units_differ_in_width():
    widths = dict(rows(DRAWN["flats"], "label", "width"))

    assert widths["fp32, matrix units"] > widths["fp32, vector units"]


def test_ridges_with_memory_are_told_and_those_with_caches_only_marked():
    marks = rows(DRAWN["ridges"], "label", "text", "rate")

    assert ("fp32, matrix units and Memory", "10.0", 1e12) in marks
    assert ("fp32, matrix units and L1 cache", "", 1e12) in marks


def test_every_point_and_ridge_with_memory_is_in_the_window_left_of_the_labels():
    for all_roofs, points in ((ROOFS, POINTS), (ROOFS, []), (roofs(H100), published_points(H100, roofs(H100)))):
        found = drawn(all_roofs, points)
        (left, right), (low, high) = found["x"], found["y"]
        labels = left * (right / left) ** LABELS_FROM

        assert all(left < point.intensity < labels for point in points)
        assert all(low < point.flop_per_s < high for point in points)
        assert {row["intensity"] < labels for row in found["ridges"] if row["size"] > 18} == {True}


def test_window_without_anything_known_still_has_an_extent():
    for low, high in (drawn(())[axis] for axis in "xy"):
        assert 0 < low < high


def gaps_between_labels(accelerator):
    """Return the pixels between the labels of a device's flat roofs, from the lowest up; drawing each takes long."""
    its_roofs = roofs(as_device(accelerator))
    seen = _window(its_roofs, ())
    heights = sorted(_labels_of_flat(its_roofs, seen)["rate"])
    return [log10(above / below) / seen.rate_decades * 400 for below, above in pairwise(heights)]


def test_labels_of_flat_roofs_never_touch():
    gaps = {accelerator.key: gaps_between_labels(accelerator) for accelerator in ACCELERATORS}

    assert any(gaps.values())
    assert {key: found for key, found in gaps.items() if any(gap < 15 for gap in found)} == {}


def test_equal_roofs_share_a_line_and_a_label():
    equal = roofs(device(peaks=tuple(Peak("fp32", unit, 1e12, "datasheet", "a test") for unit in ("matrix", "vector"))))
    found = drawn(equal)

    assert len(found["flats"]) == 2  # the two ends of one line
    assert rows(found["flat labels"], "label") == [("fp32 1.00 TFLOP/s",)]


def test_label_names_the_unit_only_where_it_matters():
    assert any("bf16 matrix " in row["label"] for row in DRAWN["flat labels"])
    found = drawn(roofs(H100))["flat labels"]
    assert "fp32 and fp64 matrix" in " · ".join(row["label"] for row in found)
    assert max(len(row["short"]) for row in found) <= len("bf16, fp16")  # a phone has no room for units


def test_slopes_too_near_for_two_labels_share_one():
    near = roofs(replace(device(), caches=(L1, L2)))

    assert rows(drawn(near, POINTS)["slope labels"], "label", "short") == [
        ("L1 800 GB/s · L2 700 GB/s", "L1 · L2"),
        ("Memory 100 GB/s", "Memory"),
    ]


def test_tooltip_of_a_point_says_case_shape_time_rate_intensity_share_and_run():
    row = DRAWN["points"][0]

    assert (row["case"], row["shape"], row["time"]) == ("torch in fp32", "600 × 600 × 600", "1.00 ms")
    assert (row["rate_said"], row["intensity_said"], row["share"]) == ("432 GFLOP/s", "100 FLOP/byte", "43.2 %")
    assert (row["roof"], row["origin"], row["run_said"]) == ("fp32, matrix units", "measured here", "run0")


def test_point_below_an_unknown_roof_says_so():
    (row,) = drawn(ROOFS, [replace(POINTS[0], attainable=None)])["points"]

    assert (row["share"], row["roof"]) == ("unknown", "unknown")


def test_points_measured_here_are_filled_and_others_hollow():
    hollow, filled = layers(roofline(ROOFS, POINTS).to_dict(), "point")[1:]

    assert (hollow["mark"]["filled"], filled["mark"]["filled"]) == (False, True)
    assert hollow["transform"][0]["filter"] == "!(datum.origin == 'measured here')"
    assert filled["transform"][0]["filter"] == "datum.origin == 'measured here'"


def test_a_click_on_a_point_selects_its_run():
    (parameter,) = roofline(ROOFS, POINTS).to_dict()["params"]

    assert (parameter["name"], parameter["select"]["fields"]) == (OPENED, ["run"])


def test_published_points_are_labelled_so():
    points = published_points(H100, roofs(H100))

    assert {row["text"] for row in drawn(roofs(H100), points)["points"]} == {"published"}
    assert {row["text"] for row in DRAWN["points"]} == {""}


def test_dtypes_keep_their_colour_and_a_single_one_needs_no_legend():
    of = {
        name: roofline([roof for roof in ROOFS if roof.dtype in (None, name)], []).to_dict()
        for name in ("fp32", "bf16")
    }
    color = {name: layers(spec, "line")[1]["encoding"]["color"] for name, spec in of.items()}

    assert color["fp32"]["scale"] == color["bf16"]["scale"]
    assert color["fp32"]["legend"] is None


def test_alternative_text_tells_roofs_ridges_and_the_best_point():
    assert roofline(ROOFS, POINTS).to_dict()["description"] == (
        "Roofline. Flat roofs: fp32, matrix units 1.00 TFLOP/s, bf16, matrix units 4.00 TFLOP/s, "
        "fp32, vector units 500 GFLOP/s. Ridge points: fp32, matrix units 10.0 FLOP/byte, bf16, matrix units "
        "40.0 FLOP/byte, fp32, vector units 5.00 FLOP/byte. Nearest to its roof of 3 points: torch in fp32 at "
        "600 × 600 × 600, 43.2 %."
    )
    assert (
        roofline((), ()).to_dict()["description"]
        == "Roofline. Flat roofs: none known. Ridge points: none known. No points."
    )
