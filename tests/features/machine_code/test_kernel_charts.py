from dataclasses import replace

from gpuexplore.analysis.occupancy import BlockShape
from gpuexplore.features.machine_code.analysis.ladder import ladder, published, rung_bounds
from gpuexplore.features.machine_code.chart import block_occupancy, block_times, describe_ladder, rung_bounds_chart
from gpuexplore.features.machine_code.chart import ladder as ladder_chart
from gpuexplore.hardware import accelerator_named
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import ok
from tests.analysis.test_blocks import made, shapes
from tests.charts.conftest import _checked_once

MATMUL = OPERATIONS["matmul"]
H100 = accelerator_named("h100-sxm5-80gb")
MEASURED = [ok(1e-3), ok(4e-3, implementation="numba-cuda-naive")]


def data(spec, kind):
    (layer,) = [one for one in spec["layer"] if one["mark"]["type"] == kind and "y" in one["encoding"]]
    return spec["datasets"][layer.get("data", spec.get("data"))["name"]]


def test_ladder_draws_measured_shares_as_bars_and_published_ones_as_ticks():
    spec = ladder_chart(ladder(MATMUL, "numba_cuda", MEASURED), published("matmul", "fp32")).to_dict()

    assert [(one["rung"], one["share"], one["percent"]) for one in data(spec, "bar")] == [
        ("numba-cuda-naive", 0.25, "25.0 %")
    ]
    assert {one["rung"]: one["share"] for one in data(spec, "tick")}["numba-cuda-vector"] == 0.784
    assert "numba-cuda-naive 25.0 %" in spec["description"]


def test_ladder_without_measurements_says_so():
    assert describe_ladder(ladder(MATMUL, "numba_cuda")).endswith("nothing is measured")


def test_bounds_are_drawn_by_their_rate_whatever_units_they_use():
    bounds = rung_bounds(MATMUL, "numba_cuda", MATMUL.shape_of_size(4096), dtype="bf16", gpu=H100)

    spec = rung_bounds_chart(bounds).to_dict()

    drawn = {row["rung"]: row for row in data(spec, "bar")}
    assert drawn["numba-cuda-warptile"]["rate"] < 67e12 < drawn["numba-cuda-tensorcore"]["rate"] < 990e12
    assert drawn["numba-cuda-tensorcore"]["said"].startswith("≤ ")
    assert "numba-cuda-wgmma" in spec["description"]


def test_bounds_of_nothing_draw_nothing_and_do_not_fail():
    assert "nothing is known" in rung_bounds_chart({}).to_dict()["description"]


def test_blocks_are_drawn_by_occupancy_and_by_time():
    both = shapes(made(), made(), results={(32, 32): ok(1e-3)})

    assert [one["said"] for one in data(block_occupancy("numba-cuda", both).to_dict(), "bar")] == ["75.0 %", "50.0 %"]
    assert [(one["block"], one["said"]) for one in data(block_times("numba-cuda", both).to_dict(), "bar")] == [
        ("32 × 32", "1.00 ms")
    ]


def test_blocks_without_figures_draw_nothing_and_do_not_fail():
    bare = [replace(shape, occupancy=None, compiled=None) for shape in shapes(made(), made())]

    assert all(isinstance(one, BlockShape) for one in bare)
    assert "nothing is known" in block_occupancy("numba-cuda", bare).to_dict()["description"]
