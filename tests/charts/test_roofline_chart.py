"""The roofline as data: lines, ridges, labels and points, by what Vega-Lite is told."""

from dataclasses import replace
from itertools import pairwise
from math import log10

import pytest

from gpuexplore.analysis.roofline import point_of, published_points
from gpuexplore.analysis.roofs import roofs
from gpuexplore.analysis.run.analyze import analyze_alone
from gpuexplore.charts.roofline import OPENED, describe_roofline, roofline
from gpuexplore.charts.roofline_frames import (
    LABELS_FROM,
    LABELS_TO,
    flat_roofs,
    frame_of_points,
    labels_of_flat,
    labels_of_slopes,
    ridge_marks,
    sloped_roofs,
    units_label,
    window,
)
from gpuexplore.core.model import Bandwidth, CacheRoof, Origin, Peak
from gpuexplore.hardware import ACCELERATORS, as_device
from tests.analysis.made import device, ok

L1 = CacheRoof(1, 20_000, Bandwidth(8e11, "measured_ceiling", "triad"))
L2 = CacheRoof(2, 10**6, Bandwidth(7e11, "measured_ceiling", "triad"))
RESULTS = [ok(1e-3, size=600), ok(1e-6, size=30), ok(5e-4, size=600, dtype="bf16")]
ROOFS = roofs(replace(device(), caches=(L1,)), RESULTS)
POINTS = [point_of(analyze_alone(result), ROOFS, run=f"run{number}") for number, result in enumerate(RESULTS)]
SEEN = window(ROOFS, POINTS)
H100 = as_device(next(accelerator for accelerator in ACCELERATORS if accelerator.key == "h100-sxm5-80gb"))


def layers(spec, kind):
    return [one for one in spec["layer"] if one["mark"]["type"] == kind]


def rows(frame, *columns):
    return list(frame[list(columns)].itertuples(index=False, name=None))


def ends(frame, label):
    return rows(frame[frame["label"] == label], "intensity", "rate")


def test_axes_are_logarithmic_and_name_their_units():
    spec = roofline(ROOFS, POINTS).to_dict()
    encoding = spec["layer"][0]["encoding"]

    assert encoding["x"]["title"] == "Arithmetic intensity, FLOP/byte"
    assert (encoding["x"]["scale"]["type"], encoding["y"]["scale"]["type"]) == ("log", "log")
    assert "FLOP/s" in encoding["y"]["axis"]["labelExpr"]


def test_slope_rises_from_the_left_edge_to_the_highest_flat_roof():
    (low, at_low), (high, at_high) = ends(sloped_roofs(ROOFS, SEEN), "Memory")

    assert (low, at_low) == (SEEN.intensity_low, pytest.approx(SEEN.intensity_low * 1e11))
    assert (high, at_high) == (pytest.approx(40), pytest.approx(4e12))  # bf16's ridge


def test_flat_roof_begins_where_the_fastest_bandwidth_meets_it():
    (start, rate), (end, _) = ends(flat_roofs(ROOFS, SEEN), "fp32, matrix units")

    assert (start, rate, end) == (pytest.approx(1e12 / 8e11), 1e12, SEEN.intensity_high)


def test_how_a_roof_was_found_decides_its_dash():
    near = roofs(device(), [ok(6e-4, size=600)])
    bases = dict(rows(flat_roofs((*ROOFS, *near), SEEN), "label", "basis"))

    assert bases["fp32, matrix units"] == "microbenchmark"
    assert bases["fp32, vector units"] == "datasheet or formula"
    assert bases["best matmul in fp32, matrix units"] == "best result so far"


def test_a_best_result_far_below_its_limit_is_no_roof():
    assert "best matmul in fp32, matrix units" in {roof.label for roof in ROOFS}
    assert "best matmul in fp32, matrix units" not in set(flat_roofs(ROOFS, SEEN)["label"])


def test_points_stand_between_the_labels_of_slopes_and_those_of_flat_roofs():
    places = [log10(point.intensity / SEEN.intensity_low) / SEEN.intensity_decades for point in POINTS]
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
    widths = dict(rows(flat_roofs(ROOFS, SEEN), "label", "width"))

    assert widths["fp32, matrix units"] > widths["fp32, vector units"]


def test_ridges_with_memory_are_told_and_those_with_caches_only_marked():
    marks = rows(ridge_marks(ROOFS, SEEN), "label", "text", "rate")

    assert ("fp32, matrix units and Memory", "10.0", 1e12) in marks
    assert ("fp32, matrix units and L1 cache", "", 1e12) in marks


def test_every_point_and_ridge_with_memory_is_in_the_window_left_of_the_labels():
    for all_roofs, points in ((ROOFS, POINTS), (ROOFS, []), (roofs(H100), published_points(H100, roofs(H100)))):
        seen = window(all_roofs, points)
        labels = seen.intensity_low * 10 ** (LABELS_FROM * seen.intensity_decades)
        marks = ridge_marks(all_roofs, seen)

        assert all(seen.intensity_low < point.intensity < labels for point in points)
        assert all(seen.rate_low < point.flop_per_s < seen.rate_high for point in points)
        assert set(marks[marks["size"] > 18]["intensity"] < labels) == {True}


def test_window_without_anything_known_still_has_an_extent():
    seen = window((), ())

    assert 0 < seen.intensity_low < seen.intensity_high
    assert 0 < seen.rate_low < seen.rate_high


def gaps_between_labels(accelerator):
    """Return the pixels between the labels of a device's flat roofs, from the lowest up."""
    found = roofs(as_device(accelerator))
    seen = window(found, ())
    heights = sorted(labels_of_flat(found, seen)["rate"])
    return [log10(above / below) / seen.rate_decades * 400 for below, above in pairwise(heights)]


def test_labels_of_flat_roofs_never_touch():
    gaps = {accelerator.key: gaps_between_labels(accelerator) for accelerator in ACCELERATORS}

    assert any(gaps.values())
    assert {key: found for key, found in gaps.items() if any(gap < 15 for gap in found)} == {}


def test_equal_roofs_share_a_line_and_a_label():
    equal = roofs(device(peaks=tuple(Peak("fp32", unit, 1e12, "datasheet", "a test") for unit in ("matrix", "vector"))))
    seen = window(equal, ())

    assert len(flat_roofs(equal, seen)) == 2  # the two ends of one line
    assert list(labels_of_flat(equal, seen)["label"]) == ["fp32 1.00 TFLOP/s"]


def test_label_names_the_unit_only_where_it_matters():
    assert units_label(roof for roof in ROOFS if roof.rate == 4e12) == "bf16 matrix"
    assert units_label(roof for roof in roofs(H100) if roof.rate == 66.9e12) == "fp32 and fp64 matrix"


def test_slopes_too_near_for_two_labels_share_one():
    near = roofs(replace(device(), caches=(L1, L2)))

    assert rows(labels_of_slopes(near, SEEN), "label", "short") == [
        ("L1 800 GB/s · L2 700 GB/s", "L1 · L2"),
        ("Memory 100 GB/s", "Memory"),
    ]


def test_tooltip_of_a_point_says_case_shape_time_rate_intensity_share_and_run():
    row = frame_of_points(POINTS).iloc[0]

    assert (row["case"], row["shape"], row["time"]) == ("torch in fp32", "600 × 600 × 600", "1.00 ms")
    assert (row["rate_said"], row["intensity_said"], row["share"]) == ("432 GFLOP/s", "100 FLOP/byte", "43.2 %")
    assert (row["roof"], row["origin"], row["run_said"]) == ("fp32, matrix units", "measured here", "run0")


def test_point_below_an_unknown_roof_says_so():
    row = frame_of_points([replace(POINTS[0], attainable=None)]).iloc[0]

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

    assert set(frame_of_points(points)["text"]) == {"published"}
    assert set(frame_of_points(POINTS)["text"]) == {""}


def test_dtypes_keep_their_colour_and_a_single_one_needs_no_legend():
    of = {
        name: roofline([roof for roof in ROOFS if roof.dtype in (None, name)], []).to_dict()
        for name in ("fp32", "bf16")
    }
    color = {name: layers(spec, "line")[1]["encoding"]["color"] for name, spec in of.items()}

    assert color["fp32"]["scale"] == color["bf16"]["scale"]
    assert color["fp32"]["legend"] is None


def test_alternative_text_tells_roofs_ridges_and_the_best_point():
    assert describe_roofline(ROOFS, POINTS) == (
        "Roofline. Flat roofs: fp32, matrix units 1.00 TFLOP/s, bf16, matrix units 4.00 TFLOP/s, "
        "fp32, vector units 500 GFLOP/s. Ridge points: fp32, matrix units 10.0 FLOP/byte, bf16, matrix units "
        "40.0 FLOP/byte, fp32, vector units 5.00 FLOP/byte. Nearest to its roof of 3 points: torch in fp32 at "
        "600 × 600 × 600, 43.2 %."
    )
    assert describe_roofline((), ()) == "Roofline. Flat roofs: none known. Ridge points: none known. No points."
