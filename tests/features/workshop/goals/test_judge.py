"""Goals, judged by made-up runs whose figures can be checked by hand."""

from dataclasses import replace

import pytest

from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Accuracy
from gpuexplore.features.workshop.goals import KINDS, GoalScore, goal_of, judge
from gpuexplore.features.workshop.report.facts import _is_better
from gpuexplore.features.workshop.ui.task import _read_guess
from tests.analysis.made import ok


def judged(kind, results, **settings):
    return judge(goal_of(kind, settings), analyze(results))


def test_every_kind_can_be_set_by_its_defaults():
    for kind in KINDS:
        goal = goal_of(kind, {})
        assert "{" not in goal.sentence
        assert goal.link.startswith("benchmark?op=matmul&dtype=fp32")


@pytest.mark.parametrize(("time_s", "passed"), [(4e-6, True), (4.1e-6, False)])
def test_a_share_of_the_limit_is_reached_or_not(time_s, passed):
    found = judged("share", [ok(time_s)], percent="50")  # 2e6 FLOP, 1e12 FLOP/s

    assert found.passed is passed
    assert found.value == pytest.approx(2e-6 / time_s)


def test_the_best_result_of_a_run_counts():
    both = [ok(8e-6, implementation="numpy"), ok(4e-6)]

    assert judged("share", both).value == pytest.approx(0.5)
    assert judged("guess", both, size="100").value == 4e-6
    assert judged("guess", [ok(8e-6), ok(4e-6)], size="100").value == 4e-6


def test_what_is_faster_than_its_device_can_be_reaches_nothing():
    assert judged("share", [ok(1e-7)], percent="50") is None


def test_another_operation_or_dtype_is_not_about_it():
    assert judged("share", [ok(4e-6, dtype="bf16")], percent="50") is None
    assert judged("guess", [ok(4e-6, size=128)], size="100") is None


def sizes(*pairs):
    """Return results of numpy and torch at sizes, given (size, numpy's time, torch's time)."""
    return [
        ok(time_s, size=size, implementation=name)
        for size, *times in pairs
        for name, time_s in zip(("numpy", "torch"), times, strict=True)
    ]


def test_the_size_from_which_one_is_faster_lies_between_neighbours():
    found = judged("overtake", sizes((64, 1e-5, 2e-5), (128, 2e-5, 1e-5)), slower="numpy", faster="torch")

    assert found == GoalScore(128, True, "between sizes 64 and 128")


def test_sizes_far_apart_do_not_tell_where_one_overtakes():
    far = judged("overtake", sizes((64, 1e-5, 2e-5), (512, 2e-3, 1e-3)), slower="numpy", faster="torch")

    assert (far.value, far.passed) == (512, False)
    never = sizes((64, 1e-5, 2e-5), (128, 1e-5, 2e-5))
    assert judged("overtake", never, slower="numpy", faster="torch") is None


def test_a_side_may_be_a_device():
    results = [ok(1e-4), ok(1e-5, on="cuda:0"), ok(1e-3, size=150), ok(1e-4, size=150, on="cuda:0")]
    assert judged("overtake", results, slower="cpu", faster="gpu") is None  # the GPU is ahead at every size
    slow = [ok(1e-4), ok(1e-3, on="cuda:0"), ok(1e-3, size=150), ok(1e-4, size=150, on="cuda:0")]
    assert judged("overtake", slow, slower="cpu", faster="gpu").passed


def test_a_kernel_is_compared_with_the_library_of_its_own_run():
    results = [ok(1e-5), ok(2.5e-5, implementation="numba-cpu-blocked")]

    assert judged("kernel", results, size="100", percent="50").value == pytest.approx(0.4)
    assert not judged("kernel", results, size="100", percent="50").passed
    assert judged("kernel", results, size="100", percent="40").passed
    assert judged("kernel", results[1:], size="100", percent="40") is None


def test_an_error_is_below_the_bound_or_not():
    result = replace(ok(4e-6), accuracy=Accuracy(2e-5, 1e-3))

    assert judged("error", [result], bound="1e-4").passed
    assert not judged("error", [result], bound="1e-5").passed


def test_what_passes_is_shown_before_what_is_better():
    goal = goal_of("share", {})
    low, high = GoalScore(0.4, False, ""), GoalScore(0.6, True, "")

    assert _is_better(goal, high, low)
    assert not _is_better(goal, low, high)
    assert _is_better(goal_of("error", {}), GoalScore(1e-6, True, ""), GoalScore(1e-5, True, ""))


@pytest.mark.parametrize(
    ("kind", "settings", "said"),
    [
        ("win", {}, "kind of goal 'win': expected share"),
        ("share", {"speed": "1"}, "setting of share 'speed': expected operation"),
        ("share", {"operation": "matmull"}, "matmull"),
        ("share", {"percent": "nan"}, "percent 'nan'"),
        ("guess", {"size": "0"}, "size '0'"),
        ("guess", {"implementation": "tensorflow"}, "tensorflow"),
        ("error", {"bound": "2"}, "bound '2'"),
        ("overtake", {"slower": "<b>"}, "side of the comparison '<b>'"),
    ],
)
def test_what_cannot_be_set_says_what_can(kind, settings, said):
    with pytest.raises(InvalidInput, match=said):
        goal_of(kind, settings)


def test_a_guess_is_a_time_with_its_unit():
    assert _read_guess(" 90us ") == pytest.approx(9e-5)
    for text in ("", "5", "-1 ms", "0 s", "1e9 s", "soon"):
        with pytest.raises(InvalidInput, match=r"like 90us or 2\.5 ms"):
            _read_guess(text)


def test_one_sample_reaches_no_goal_that_rests_on_a_clock():
    assert judged("share", [ok(4e-6, count=1)], percent="50") is None
    assert judged("guess", [ok(count=1)], size="100") is None

    accurate = replace(ok(count=1), accuracy=Accuracy(1e-9, 1e-3))
    assert judged("error", [accurate], bound="1e-6").passed
