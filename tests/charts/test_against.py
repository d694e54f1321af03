"""Charts say what they hold results against."""

import pytest

import gpuexplore.charts as chart
from gpuexplore.analysis.utilization.peak_choice import Against
from gpuexplore.model import Bandwidth, Peak
from tests.analysis.made import ok
from tests.analysis.utilization.test_peak_choice import LARGE, on_gpu
from tests.charts.test_charts import data_of, layers, points_of, rules_of

OWN = Against("own", (Peak("fp32", "matrix", 5e11, "own", "me"),), Bandwidth(2e10, "own", "me"))


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("held_clock", "MFU, % of the peak at the clock that was held"),
        ("measured_ceiling", "MFU, % of the measured ceiling"),
    ],
)
def test_mfu_names_the_chosen_kind_on_its_axis(kind, title):
    made = chart.mfu((on_gpu(ok(3e-3, shape=LARGE), held_hz=1.5e9),), Against(kind))
    assert layers(made, "point")[0]["encoding"]["y"]["title"] == title


def test_an_unknown_kind_draws_no_point_and_says_so():
    results = (on_gpu(ok(shape=LARGE)),)
    assert points_of(chart.mfu(results, Against("own"))) == []
    assert chart.mfu_left_out(results, Against("own")) == "1 of 1 case is not drawn: 1 without a known peak."


def test_lines_across_throughput_and_bandwidth_follow_the_choice():
    assert rules_of(chart.throughput((ok(),), OWN)) == [5e11]
    made = chart.bandwidth((ok(),), OWN)
    assert rules_of(made) == [2e10]
    assert data_of(made, layers(made, "text")[0])[0]["label"] == "memory bandwidth you entered: 20.0 GB/s"


def test_tooltips_explain_more_than_100_percent_and_name_what_is_unknown():
    (above,) = points_of(chart.throughput((ok(1e-6),)))
    assert above["share"].startswith("200 % of the measured ceiling: a ceiling is the best that was measured before")
    (unknown,) = points_of(chart.throughput((ok(),), Against("published")))
    assert unknown["share"] == "unknown: nobody's products in fp32 on this device are in our table"
    assert unknown["memory"] == "unknown: our table of published results holds products only"


def test_tooltips_of_every_chart_follow_the_choice():
    results = (ok(), ok(implementation="numpy"))
    for draw in (chart.time, chart.mfu, chart.throughput, chart.bandwidth):
        assert all("of the peak you entered" in point["share"] for point in points_of(draw(results, OWN)))
    assert all("of the peak you entered" in point["share"] for point in points_of(chart.speedup(results, None, OWN)))


def test_files_carry_the_choice():
    (row,) = chart.to_frame((ok(),), against=OWN).to_dict("records")
    assert (row["peak_kind"], row["bandwidth_kind"], row["peak_flop_per_s"]) == ("own", "own", 5e11)
