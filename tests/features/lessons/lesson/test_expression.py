"""The grammar computes with intervals and units, and accepts nothing else."""

import pytest

from gpuexplore.analysis.figure import (
    SIZE,
    TIME,
    LessonFigure,
    QuantityRow,
    Undefined,
    exact,
    format_figure,
    format_with_interval,
)
from gpuexplore.core.errors import InvalidInput, NotFound
from gpuexplore.features.lessons.lesson.expression import StepNames, evaluate, figure_of, parse

TIMES = {"512": LessonFigure(1e-3, 0.9e-3, 1.1e-3, TIME), "1024": LessonFigure(8e-3, 7.8e-3, 8.2e-3, TIME)}
NAMES = StepNames(
    tuple(
        QuantityRow({"size": size, "impl": "torch"}, {"time": time, "bound": "memory"}) for size, time in TIMES.items()
    ),
    {"gpu": False, "cores": exact(2.0)},
    {"factor": exact(8.0)},
)


def value(text):
    return evaluate(parse(text, ("factor",)), NAMES)


def test_a_ratio_of_times_is_a_plain_number_with_the_widest_interval():
    ratio = value("time(size=1024) / time(size=512)")

    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((8.0, 7.8 / 1.1, 8.2 / 0.9))
    assert format_with_interval(ratio) == "8 (7.09 to 9.11)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2 * 3 + 4", 10),
        ("-2 ** 2", -4),
        ("(1 + 1) ** 3", 8),
        ("ceil(5466 / 1024)", 6),
        ("floor(7 / 2) - round(2.4)", 1),
        ("sqrt(16) + log(1)", 4),
        ("min(3, 2) + max(1, 5)", 7),
        ("factor - cores", 6),
    ],
)
def test_arithmetic_is_as_on_paper(text, expected):
    assert value(text).value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("time(size=512) < time(size=1024)", True),
        ("time(size=512) > time(size=1024)", False),
        ("time(size=1024) / time(size=512) > 7.5", None),
        ("time(size=1024) / time(size=512) > 7.5 and gpu", False),
        ("time(size=1024) / time(size=512) > 7.5 or not gpu", True),
        ("not time(size=1024) / time(size=512) > 7.5", None),
        ("bound(size=512) == 'memory'", True),
        ("bound(size=512) != 'memory'", False),
        ("3 == 3 and 2 != 3 and 2 <= 2 and 3 >= 3", True),
    ],
)
def test_a_comparison_of_intervals_that_overlap_is_neither_true_nor_false(text, expected):
    assert value(text) is expected


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (exact(0.0025, TIME), "2.50 ms"),
        (exact(12e6, SIZE), "12.0 MB"),
        (exact(33_554_432), "33,554,432"),
        (exact(0.0833), "0.0833"),
        (exact(3e-7), "3.00e-7"),
        (exact(0.634, style="percent"), "63.4 %"),
        (exact(0.25), "0.25"),
        (exact(1.2004), "1.20"),
        (exact(0.99976), "1.00"),
        (exact(12.04), "12.0"),
        (exact(1234.5), "1,230"),
    ],
)
def test_a_figure_is_said_in_its_unit(figure, words):
    assert format_figure(figure) == words


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("time(size=512) + 1", InvalidInput, "units differ"),
        ("time(size=512) < 1", InvalidInput, "units differ"),
        ("sqrt(4 * s)", InvalidInput, "numbers without a unit"),
        ("log(time(size=512))", InvalidInput, "numbers without a unit"),
        ("min(1 * s, 1 * B)", InvalidInput, "units differ"),
        ("max(1, 2 * FLOP)", InvalidInput, "units differ"),
        ("bound(size=512) < 'memory'", InvalidInput, "expected == and !="),
        ("time()", InvalidInput, "time matches several results: size=1024, impl=torch; size=512"),
        ("1+" * 5000 + "1", InvalidInput, "at most 400"),
        ("time(size=64)", NotFound, "time, size=64 was not measured"),
        ("other > 1", NotFound, "other"),
    ],
)
def test_what_has_no_meaning_or_was_not_measured_says_so(text, error, message):
    with pytest.raises(error, match=message):
        evaluate(parse(text, ("factor", "other")), NAMES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (time(size=512) - time(size=512))", "may be zero"),
        ("log(0)", "log of 0 is undefined"),
        ("sqrt((time(size=512) - time(size=512)) / s)", r"sqrt of 0 \(-2.00e-4 to 2.00e-4\) is undefined"),
        ("((1e-30 ** 8) ** -8)", r"beyond 1e\+30"),
        ("(0 - 2) ** 0.5", "-2: this power is defined only for numbers above 0"),
    ],
)
def test_arithmetic_without_a_result_is_no_error_of_its_own_kind(text, message):
    with pytest.raises(Undefined, match=message):
        value(text)


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "time.__class__",
        "[1, 2]",
        "(lambda: 1)()",
        "time(size=512).value",
        "1 if gpu else 2",
        "time(512)",
        "time(colour='red')",
        "time(**gpu)",
        "time(size=gpu)",
        "speed(size=512)",
        "1 < 2 < 3",
        "f'{1}'",
        "1 // 2",
        "~1",
        "x := 1",
        "True",
        "1e999",
        "unknown",
        "ceil(1, 2)",
        "",
        "1 +",
        "\x00",
        "(" * 60 + "1" + ")" * 60 + "+",
        "-" * 50 + "1",
        "~" * 390 + "1",
    ],
)
def test_nothing_else_is_accepted(text):
    with pytest.raises(InvalidInput, match="expected"):
        parse(text)


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "1e30 * 1e30", "2 ** time(size=512)", "(0 - 1) ** 0.5", "0 ** -1"])
def test_a_result_that_no_number_holds_is_refused(text):
    with pytest.raises(InvalidInput):
        value(text)


def test_a_text_is_no_figure():
    with pytest.raises(NotFound, match="came out as memory, which is not a number"):
        figure_of(parse("bound(size=512)"), NAMES)
    with pytest.raises(InvalidInput, match="what gives a number"):
        figure_of(parse("1 < 2"), NAMES)
