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


BOTH = [ok(8e-6, implementation="numpy"), ok(4e-6)]


@pytest.mark.parametrize(
    ("kind", "results", "settings", "value", "passed"),
    [
        ("share", [ok(4e-6)], {"percent": "50"}, 0.5, True),  # 2e6 FLOP, 1e12 FLOP/s
        ("share", [ok(4.1e-6)], {"percent": "50"}, 2 / 4.1, False),
        ("share", BOTH, {}, 0.5, True),  # the best result counts
        ("guess", BOTH, {"size": "100"}, 4e-6, True),
        ("guess", [ok(8e-6), ok(4e-6)], {"size": "100"}, 4e-6, True),
        ("error", [replace(ok(4e-6), accuracy=Accuracy(2e-5, 1e-3))], {"bound": "1e-4"}, 2e-5, True),
        ("error", [replace(ok(4e-6), accuracy=Accuracy(2e-5, 1e-3))], {"bound": "1e-5"}, 2e-5, False),
        ("error", [replace(ok(count=1), accuracy=Accuracy(1e-9, 1e-3))], {"bound": "1e-6"}, 1e-9, True),
    ],
)
def test_the_best_result_of_a_run_reaches_its_goal_or_not(kind, results, settings, value, passed):
    found = judged(kind, results, **settings)

    assert (found.value, found.passed) == (pytest.approx(value), passed)


@pytest.mark.parametrize(
    ("kind", "result", "settings"),
    [
        ("share", ok(1e-7), {"percent": "50"}),  # faster than its device can be
        ("share", ok(4e-6, dtype="bf16"), {"percent": "50"}),  # another dtype
        ("guess", ok(4e-6, size=128), {"size": "100"}),  # another size
        ("share", ok(4e-6, count=1), {"percent": "50"}),  # one sample
        ("guess", ok(count=1), {"size": "100"}),
    ],
)
def test_what_cannot_be_is_not_about_it_or_rests_on_one_sample_reaches_nothing(kind, result, settings):
    assert judged(kind, [result], **settings) is None


def sizes(*pairs):
    """Return results of numpy and torch at sizes, given (size, numpy's time, torch's time)."""
    return [
        ok(time_s, size=size, implementation=name)
        for size, *times in pairs
        for name, time_s in zip(("numpy", "torch"), times, strict=True)
    ]


@pytest.mark.parametrize(
    ("times", "found"),
    [
        ([(64, 1e-5, 2e-5), (128, 2e-5, 1e-5)], GoalScore(128, True, "between sizes 64 and 128")),
        ([(64, 1e-5, 2e-5), (512, 2e-3, 1e-3)], GoalScore(512, False, "between sizes 64 and 512")),
        ([(64, 1e-5, 2e-5), (128, 1e-5, 2e-5)], None),
    ],
)
def test_the_size_from_which_one_is_faster_lies_between_neighbours(times, found):
    assert judged("overtake", sizes(*times), slower="numpy", faster="torch") == found


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
