from gpuexplore.features.machine_code.analysis.block_steps import barrier_intervals
from gpuexplore.features.machine_code.chart.block_arrays import (
    BEFORE,
    REQUESTED,
    UNUSED,
    ArrayWindow,
    array_overview,
    array_picture,
    grid_of,
    lanes_label,
)
from gpuexplore.features.machine_code.chart.block_steps import (
    CONFLICT,
    FIRST,
    WAITS,
    WORKS,
    bank_picture,
    warp_timeline,
)
from gpuexplore.measure.check.interpreted import RunArray
from tests.charts.conftest import _checked_once
from tests.features.machine_code.analysis.test_memory_access import LANES, MATRIX, START, access
from tests.measure.made_block import block_run

COLUMN = access(128 * LANES[:4], memory="global", start=START)


def rows(spec, what):
    return [row for name in spec["datasets"] for row in spec["datasets"][name] if row.get("what") == what]


def test_column_of_a_matrix_is_drawn_with_the_sectors_that_hold_it():
    spec = array_picture(MATRIX, COLUMN, ()).to_dict()

    assert [(row["x"], row["right"], row["y"], row["lanes"]) for row in rows(spec, REQUESTED)] == [
        (0, 1, row, str(row)) for row in range(4)
    ]
    assert [(row["x"], row["right"], row["y"]) for row in rows(spec, UNUSED)] == [(0, 8, row) for row in range(4)]
    assert rows(spec, BEFORE) == []
    assert spec["description"] == (
        "A, 32 × 32: 4 elements in 4 sectors; lane 0: [0, 0], lane 1: [1, 0], lane 2: [2, 0], lane 3: [3, 0]"
    )
    assert spec["title"]["text"] == "A, 32 × 32: rows 0 to 15, columns 0 to 15"


def test_elements_that_were_touched_before_are_marked():
    run = block_run()
    array = run.arrays[0]
    spec = array_overview(array, None, run.steps[:1]).to_dict()

    assert [(row["x"], row["right"], row["y"]) for row in rows(spec, BEFORE)] == [(0, 32, 0)]
    assert spec["description"] == "A, 128: not touched yet"
    assert rows(array_overview(array, run.steps[0].accesses[0], ()).to_dict(), REQUESTED)[0]["lanes"] == ""


def test_window_holds_the_step_and_no_more_than_it_needs():
    assert ArrayWindow.around([], MATRIX) == ArrayWindow(0, 32, 0, 32)
    assert ArrayWindow.around([32 * 20 + 30], MATRIX) == ArrayWindow(16, 32, 16, 32)
    assert ArrayWindow.around([0, 32 * 31], MATRIX) == ArrayWindow(0, 32, 0, 16)
    assert grid_of(RunArray("x", (2, 3, 40), 4, 0)) == (6, 40)
    assert grid_of(RunArray("x", (40,), 4, 0)) == (2, 32)


def test_lanes_are_named_in_short():
    assert [lanes_label(lanes) for lanes in ((3,), (0, 1, 2), (0, 16), (0, 8, 16))] == ["3", "0–2", "0,16", "0,8…"]


def test_words_that_wait_for_their_bank_have_a_colour_of_their_own():
    spec = bank_picture(access([0, 128, 4]), "Shared memory").to_dict()

    assert [(row["bank"], row["row"], row["lanes"]) for row in rows(spec, FIRST)] == [(0, 0, "0"), (1, 0, "2")]
    assert [(row["bank"], row["row"], row["lanes"]) for row in rows(spec, CONFLICT)] == [(0, 1, "1")]
    assert spec["description"] == (
        "Shared memory: 3 words in 2 wavefronts, of 1 at least; lanes 0, 1 want different words of bank 0"
    )


def test_no_conflict_is_said_too():
    assert "no two lanes want" in bank_picture(access(4 * LANES), "Shared").to_dict()["description"]


def test_timeline_shows_who_works_and_who_waits():
    spec = warp_timeline(barrier_intervals(block_run()), 4, 12).to_dict()

    assert [(row["warp"], row["first"], row["last"]) for row in rows(spec, WAITS)] == [("warp 0", 3.5, 6.5)]
    assert len(rows(spec, WORKS)) == 4
    assert spec["description"] == "2 warps that meet 1 times; at step 4 warp 0 waits at a barrier"
