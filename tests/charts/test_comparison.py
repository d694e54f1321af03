"""Charts say what they compare results with."""

import pytest

import gpuexplore.charts as chart
from gpuexplore.analysis.model import Comparison, Context
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.model import Bandwidth, Peak
from tests.analysis.made import custom, ok
from tests.analysis.utilization.test_peak_choice import LARGE, on_gpu
from tests.charts.test_charts import data_of, layers, mfu, points_of, rules_of

CONTEXT = Context(custom(Peak("fp32", "matrix", 5e11, "own", "me"), bandwidth=Bandwidth(2e10, "own", "me")))


def compared(*results, kind=None, context=Context()):
    return analyze(results, Comparison(peak_kind=kind), context)


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        ("held_clock", "MFU, % of the peak at the measured clock"),
        ("measured_ceiling", "MFU, % of the measured peak"),
    ],
)
def test_mfu_names_the_chosen_kind_on_its_axis(kind, title):
    made = mfu(compared(on_gpu(ok(3e-3, shape=LARGE), held_hz=1.5e9), kind=kind))
    assert layers(made, "point")[0]["encoding"]["y"]["title"] == title


def test_an_unknown_kind_draws_no_point_and_says_so():
    analysis = compared(on_gpu(ok(shape=LARGE)), kind="own")
    assert points_of(mfu(analysis)) == []
    assert chart.share_left_out(analysis, by_memory=False) == "1 of 1 case is not drawn: 1 without a known peak."


def test_lines_across_throughput_and_bandwidth_follow_the_choice():
    analysis = compared(ok(), kind="own", context=CONTEXT)
    assert rules_of(chart.throughput(analysis)) == [5e11]
    made = chart.bandwidth(analysis)
    assert rules_of(made) == [2e10]
    assert data_of(made, layers(made, "text")[0])[0]["label"] == "custom memory bandwidth: 20.0 GB/s"


def test_tooltips_explain_more_than_100_percent_and_name_what_is_unknown():
    (above,) = points_of(chart.throughput(compared(ok(1e-6))))
    assert above["share"].startswith("200 % of the measured peak: a measured peak is the best that was measured before")
    (unknown,) = points_of(chart.throughput(compared(ok(), kind="published")))
    assert unknown["share"] == "unknown: the table has no published matmul in fp32 on this device"
    assert unknown["memory"] == "unknown: the table of published results has only matmuls"


@pytest.mark.parametrize("draw", [chart.time, mfu, chart.throughput, chart.bandwidth, chart.speedup])
def test_tooltips_of_every_chart_follow_the_choice(draw):
    analysis = compared(ok(), ok(implementation="numpy"), kind="own", context=CONTEXT)
    assert all("of the custom peak" in point["share"] for point in points_of(draw(analysis)))


def test_files_carry_the_choice():
    (row,) = chart.to_frame(compared(ok(), kind="own", context=CONTEXT)).to_dict("records")
    assert (row["peak_kind"], row["bandwidth_kind"], row["peak_flop_per_s"]) == ("own", "own", 5e11)
