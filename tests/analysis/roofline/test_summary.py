from dataclasses import replace

from gpuexplore.analysis.roofline import explain, point_of
from gpuexplore.analysis.roofs import roofs
from tests.analysis.made import alone, device, ok

ROOFS = roofs(device())
RIGHT, LEFT = point_of(alone(ok(1e-3, size=600)), ROOFS), point_of(alone(ok(1e-6, size=30)), ROOFS)


def test_two_points_on_either_side_of_the_ridge_are_told():
    assert explain(ROOFS, [RIGHT, LEFT]) == (
        "In fp32 the ridge point is at **10.0 FLOP/byte**: work with a lower arithmetic intensity is limited by "
        "memory, unless a cache holds its data; only work to the right of it can reach 1.00 TFLOP/s.",
        "Of 2 results, 1 is compute-bound, 1 is memory-bound.",
        "Nearest to its roof is **torch in fp32 at 600 × 600 × 600**, at 43.2 %.",
        "Farthest below is **torch in fp32 at 30 × 30 × 30**, at 10.8 %; the usual reasons are call overhead, "
        "data that move more than once, and instructions narrower than the unit.",
    )


def test_one_point_has_its_bound_and_none_has_the_ridge_of_the_default_dtype():
    said = explain(ROOFS, [LEFT])

    assert said[1:] == (
        "Of 1 result, 1 is memory-bound.",
        "Nearest to its roof is **torch in fp32 at 30 × 30 × 30**, at 10.8 %.",
    )

    (said,) = explain(ROOFS, [])

    assert said.startswith("In fp32 the ridge point is at **10.0 FLOP/byte**")

    assert explain((), []) == ()


def test_points_are_counted_by_all_that_can_bound_them_and_unknown_ones_apart():
    unknown = replace(LEFT, bound=None)

    assert "Of 2 results, 1 is compute-bound, the limit of 1 is unknown." in explain(ROOFS, [RIGHT, unknown])

    points = [RIGHT, RIGHT, LEFT, replace(LEFT, bound="cache"), replace(LEFT, bound="overhead")]

    assert (
        "Of 5 results, 2 are compute-bound, 1 is memory-bound, 1 is bound by the bandwidth of a cache, "
        "1 is bound by call overhead."
    ) in explain(ROOFS, points)


def test_points_of_unknown_roofs_are_neither_nearest_nor_farthest_and_one_above_its_roof_says_so():
    unknown = replace(LEFT, attainable=None)

    said = " ".join(explain(ROOFS, [RIGHT, unknown]))
    assert "Nearest to its roof is **torch in fp32 at 600 × 600 × 600**" in said
    assert "Farthest" not in said

    assert "above it" in " ".join(explain(ROOFS, [replace(RIGHT, flop_per_s=2e12)]))
