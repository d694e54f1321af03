"""What the benchmark of conclusions counts as told, as the same and as held."""

from benchmarks.conclusions import EQUAL, _agreement, _conclusions, _coverage_of_ratios, _coverage_of_times, cases
from gpuexplore.core.model import Case, Measurement, Result, Shape, Status


def process(numpy_s, torch_s, between=0.1):
    found = {}
    for name, median_s in (("numpy", numpy_s), ("torch", torch_s)):
        case = Case("vector_add", Shape.of(n=1000), "fp32", name, "cpu")
        measurement = Measurement((median_s,) * 8, 1.0, between_processes=between, between_ratios=between / 10)
        found[case] = Result(case, Status.OK, measurement=measurement)
    return found


def test_there_are_sixty_cases():
    assert len(set(cases(0.05))) == 60


def test_a_pair_is_told_as_faster_or_about_equal():
    faster, equal = _conclusions(process(1e-3, 2e-3)), _conclusions(process(1e-3, 1.001e-3))

    assert {said for about, said in faster.items() if about[0] in ("pair", "fastest")} == {"numpy"}
    assert {said for about, said in equal.items() if about[0] in ("pair", "fastest")} == {EQUAL}


def test_what_most_processes_do_not_tell_is_not_the_same():
    pair = ("pair",)
    found = [{pair: "numpy"}, {pair: "numpy"}, {pair: "torch"}, {pair: EQUAL}, {pair: None}]

    assert _agreement(found) == "conclusive 4 of 5 (80.0%), the same 3 of 4 (75.00%)"


def test_intervals_hold_where_the_median_of_all_lies_inside():
    processes = [process(1e-3, 2e-3), process(1.05e-3, 2.1e-3), process(1.3e-3, 2.6e-3)]

    times, ratios = _coverage_of_times(processes, processes), _coverage_of_ratios(processes, processes)

    assert (times.held, times.intervals) == (4, 6)
    assert (ratios.held, ratios.intervals) == (3, 3)
