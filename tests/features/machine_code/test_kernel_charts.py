from dataclasses import replace

from gpuexplore.analysis.occupancy import BlockShape
from gpuexplore.features.machine_code.analysis.block_steps import barrier_intervals
from gpuexplore.features.machine_code.analysis.ladder import ladder, published
from gpuexplore.features.machine_code.chart import (
    CONFLICT,
    FIRST,
    WAITS,
    WORKS,
    _ArrayWindow,
    _grid_of,
    _lanes_label,
    array_overview,
    array_picture,
    bank_picture,
    warp_timeline,
)
from gpuexplore.features.machine_code.ui.facts import _block_occupancy, _block_times
from gpuexplore.features.machine_code.ui.ladder import _ladder_chart, _rung_bounds, _rung_bounds_chart
from gpuexplore.hardware import accelerator_named
from gpuexplore.measure.check.interpreted import RunArray
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import ok
from tests.analysis.test_blocks import made, shapes
from tests.charts.conftest import _checked_once
from tests.features.machine_code.analysis.test_memory_access import LANES, MATRIX, START, access
from tests.measure.made_block import block_run

MATMUL = OPERATIONS["matmul"]
H100 = accelerator_named("h100-sxm5-80gb")
MEASURED = [ok(1e-3), ok(4e-3, implementation="numba-cuda-naive")]


def data(spec, kind):
    layer = [one for one in spec["layer"] if one["mark"]["type"] == kind and "y" in one["encoding"]][-1]
    return spec["datasets"][layer.get("data", spec.get("data"))["name"]]


def test_ladder_draws_measured_shares_as_bars_and_published_ones_as_ticks_or_says_that_nothing_is_measured():
    spec = _ladder_chart(ladder(MATMUL, "numba_cuda", MEASURED), published("matmul", "fp32")).to_dict()

    assert [(one["rung"], one["share"], one["percent"]) for one in data(spec, "bar")] == [
        ("numba-cuda-naive", 0.25, "25.0 %")
    ]
    assert {one["rung"]: one["share"] for one in data(spec, "tick")}["numba-cuda-vector"] == 0.784
    assert "numba-cuda-naive 25.0 %" in spec["description"]

    assert _ladder_chart(ladder(MATMUL, "numba_cuda")).to_dict()["description"].endswith("nothing is measured")


def test_bounds_are_drawn_by_their_rate_whatever_units_they_use_and_none_do_not_fail():
    bounds = _rung_bounds(MATMUL, "numba_cuda", MATMUL.shape_of_size(4096), dtype="bf16", gpu=H100)

    spec = _rung_bounds_chart(bounds).to_dict()

    drawn = {row["rung"]: row for row in data(spec, "bar")}
    assert drawn["numba-cuda-warptile"]["rate"] < 67e12 < drawn["numba-cuda-tensorcore"]["rate"] < 990e12
    assert drawn["numba-cuda-tensorcore"]["said"].startswith("≤ ")
    assert "numba-cuda-wgmma" in spec["description"]

    assert "nothing is known" in _rung_bounds_chart({}).to_dict()["description"]


def test_blocks_are_drawn_by_occupancy_and_by_time_and_without_figures_draw_nothing():
    both = shapes(made(), made(), results={(32, 32): ok(1e-3)})

    assert [one["said"] for one in data(_block_occupancy(both).to_dict(), "bar")] == ["75.0 %", "50.0 %"]
    assert [(one["block"], one["said"]) for one in data(_block_times(both).to_dict(), "bar")] == [
        ("32 × 32", "1.00 ms")
    ]

    bare = [replace(shape, occupancy=None, compiled=None) for shape in shapes(made(), made())]

    assert all(isinstance(one, BlockShape) for one in bare)
    assert "nothing is known" in _block_occupancy(bare).to_dict()["description"]


COLUMN = access(128 * LANES[:4], memory="global", start=START)


def rows(spec, what):
    return [row for name in spec["datasets"] for row in spec["datasets"][name] if row.get("what") == what]


def test_column_of_a_matrix_is_drawn_with_the_sectors_that_hold_it():
    spec = array_picture(MATRIX, COLUMN, ()).to_dict()

    assert [(row["x"], row["right"], row["y"], row["lanes"]) for row in rows(spec, "requested")] == [
        (0, 1, row, str(row)) for row in range(4)
    ]
    assert [(row["x"], row["right"], row["y"]) for row in rows(spec, "moved but unused")] == [
        (0, 8, row) for row in range(4)
    ]
    assert rows(spec, "touched before") == []
    assert spec["description"] == (
        "A, 32 × 32: 4 elements in 4 sectors; lane 0: [0, 0], lane 1: [1, 0], lane 2: [2, 0], lane 3: [3, 0]"
    )
    assert spec["title"]["text"] == "A, 32 × 32: rows 0 to 15, columns 0 to 15"


def test_elements_that_were_touched_before_are_marked():
    run = block_run()
    array = run.arrays[0]
    spec = array_overview(array, None, run.steps[:1]).to_dict()

    assert [(row["x"], row["right"], row["y"]) for row in rows(spec, "touched before")] == [(0, 32, 0)]
    assert spec["description"] == "A, 128: not touched yet"
    assert rows(array_overview(array, run.steps[0].accesses[0], ()).to_dict(), "requested")[0]["lanes"] == ""


def test_window_holds_the_step_and_no_more_than_it_needs():
    assert _ArrayWindow.around([], MATRIX) == _ArrayWindow(0, 32, 0, 32)
    assert _ArrayWindow.around([32 * 20 + 30], MATRIX) == _ArrayWindow(16, 32, 16, 32)
    assert _ArrayWindow.around([0, 32 * 31], MATRIX) == _ArrayWindow(0, 32, 0, 16)
    assert _grid_of(RunArray("x", (2, 3, 40), 4, 0)) == (6, 40)
    assert _grid_of(RunArray("x", (40,), 4, 0)) == (2, 32)


def test_lanes_are_named_in_short():
    assert [_lanes_label(lanes) for lanes in ((3,), (0, 1, 2), (0, 16), (0, 8, 16))] == ["3", "0–2", "0,16", "0,8…"]


def test_words_that_wait_for_their_bank_have_a_colour_of_their_own_and_no_conflict_is_said_too():
    spec = bank_picture(access([0, 128, 4]), "Shared memory").to_dict()

    assert [(row["bank"], row["row"], row["lanes"]) for row in rows(spec, FIRST)] == [(0, 0, "0"), (1, 0, "2")]
    assert [(row["bank"], row["row"], row["lanes"]) for row in rows(spec, CONFLICT)] == [(0, 1, "1")]
    assert spec["description"] == (
        "Shared memory: 3 words in 2 wavefronts, of 1 at least; lanes 0, 1 want different words of bank 0"
    )

    assert "no bank conflict" in bank_picture(access(4 * LANES), "Shared").to_dict()["description"]


def test_timeline_shows_who_works_and_who_waits():
    spec = warp_timeline(barrier_intervals(block_run()), 4, 12).to_dict()

    assert [(row["warp"], row["first"], row["last"]) for row in rows(spec, WAITS)] == [("warp 0", 3.5, 6.5)]
    assert len(rows(spec, WORKS)) == 4
    assert spec["description"] == "2 warps that meet 1 times; at step 4 warp 0 waits at a barrier"
