"""One rule a check, one outcome of six; and of what may be said the first that holds."""

import pytest

from gpuexplore.analysis.figure import TIME, LessonFigure, QuantityRow, exact
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, CheckBlock, GuessBlock
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, _judge, judged_by, read_guess

FRONT = '+++\ntitle = "t"\nquestion = "q"\nminutes = 1\n+++\n## Step\n'
NUMBER = '```guess\nid = "guess"\nask = "How long?"\nunit = "ms"\n```\n'
CHOICE = '```guess\nid = "which"\nask = "Which?"\nchoices = ["numpy", "torch"]\n```\n'
RULES = """```check
guess = "which"
[choice]
numpy = "time(impl='numpy') < time(impl='torch')"
torch = "time(impl='torch') < time(impl='numpy')"
```
"""
SAYS = """```say
when = "guess < time() and off"
text = "You said less than {{ time() }}."
```
```say
when = "gpu"
text = "On a GPU."
```
```say
when = "unclear"
text = "Again."
```
```say
text = "It took {{ time() ± }}."
```
"""


def step_of(text):
    return _parse_lesson(FRONT + text, "mine").steps[0]


def names(low=9e-3, value=10e-3, high=11e-3, doubts=(), source="measured here"):
    time = LessonFigure(value, low, high, TIME, sources=frozenset({source}), doubts=frozenset(doubts))
    return StepNames((QuantityRow({}, {"time": time}),), {"gpu": False})


def two(numpy, torch, doubts=()):
    rows = [
        QuantityRow({"impl": name}, {"time": LessonFigure(sum(ends) / 2, *ends, TIME, doubts=frozenset(doubts))})
        for name, ends in (("numpy", numpy), ("torch", torch))
    ]
    return StepNames(tuple(rows))


@pytest.mark.parametrize(
    ("guess", "rule", "outcome"),
    [
        ("10", "", "right"),
        ("8", "", "right"),  # 10 / 1.25
        ("12.5", "", "right"),  # 10 * 1.25
        ("7.9", "", "close"),
        ("20", "", "close"),
        ("20.1", "", "off"),
        ("0", "", "off"),
        (None, "", "no guess"),
        ("19", "right = 2\nclose = 4\n", "right"),
        ("39", "right = 2\nclose = 4\n", "close"),
    ],
)
@pytest.mark.parametrize("interval", [(10e-3, 10e-3), (9e-3, 11e-3), (6e-3, 22e-3)])
def test_near_is_judged_by_the_value_however_wide_its_interval(guess, rule, outcome, interval):
    step = step_of(NUMBER + f'```check\nguess = "guess"\nnear = "time()"\n{rule}```\n')
    known = names(low=interval[0], high=interval[1])

    assert judged_by(step, known, {"guess": guess}).checks[0].outcome == outcome


@pytest.mark.parametrize(
    ("truth", "guess", "outcome"),
    [("1/12", "0.0833", "right"), ("1/12", "0.083", "right"), ("1/12", "0.08", "close"), ("6", "6", "right"),
     ("6", "6.02", "close"), ("33554432", "3.355e7", "right"), ("6", "60", "off"), ("6", None, "no guess")],
)  # fmt: skip
def test_exact_allows_three_digits_and_no_other_small_whole_number(truth, guess, outcome):
    guess_of = '```guess\nid = "guess"\nask = "How many?"\n```\n'
    step = step_of(f'{guess_of}```check\nguess = "guess"\nexact = "{truth}"\n```\n')

    assert judged_by(step, StepNames(), {"guess": guess}).checks[0].outcome == outcome


def test_points_are_percentage_points():
    step = step_of(NUMBER.replace('"ms"', '"%"') + '```check\nguess = "guess"\nnear = "mfu()"\npoints = 3\n```\n')
    known = StepNames((QuantityRow({}, {"mfu": LessonFigure(0.6, 0.55, 0.65, style="percent")}),))
    outcomes = [judged_by(step, known, {"guess": guess}).checks[0].outcome for guess in ("58", "55", "53")]

    assert outcomes == ["right", "close", "off"]


@pytest.mark.parametrize(
    ("numpy", "torch", "answer", "outcome"),
    [
        ((1, 2), (3, 4), "numpy", "right"),
        ((1, 2), (3, 4), "torch", "off"),
        ((1, 2), (3, 4), CANNOT_TELL, "off"),
        ((1, 3), (2, 4), CANNOT_TELL, "right"),
        ((1, 3), (2, 4), "torch", "unclear"),
        ((1, 2), (3, 4), None, "no guess"),
    ],
)
def test_cannot_tell_is_right_when_the_intervals_overlap(numpy, torch, answer, outcome):
    step = step_of(CHOICE + RULES)

    assert judged_by(step, two(numpy, torch), {"which": answer}).checks[0].outcome == outcome


def test_a_time_that_cannot_be_is_unclear_and_never_off():
    near = step_of(NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n')
    judged = judged_by(near, names(doubts=["over_peak"]), {"guess": "1000"}).checks[0]
    chosen = judged_by(step_of(CHOICE + RULES), two((1, 2), (3, 4), ["over_peak"]), {"which": "torch"}).checks[0]

    assert (judged.outcome, judged.why) == ("unclear", "flagged over_peak")
    assert chosen.outcome == "unclear"


@pytest.mark.parametrize(
    ("guessed", "outcome"), [("10", "unclear"), ("30", "unclear"), ("1000", "off"), ("0.1", "off")]
)
def test_an_interval_that_is_too_wide_decides_only_what_lies_far_outside(guessed, outcome):
    step = step_of(NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n')
    judged = judged_by(step, names(low=5e-3, high=21e-3), {"guess": guessed}).checks[0]

    assert judged.outcome == outcome
    assert ("too wide" in judged.why) == (outcome == "unclear")


def test_a_prediction_is_judged_by_its_value_however_wide_its_interval():
    step = step_of(NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n')
    known = names(low=5e-3, high=20e-3, source="predicted")
    outcomes = [judged_by(step, known, {"guess": guess}).checks[0].outcome for guess in ("12", "18", "35")]

    assert outcomes == ["right", "close", "off"]


def test_what_was_not_measured_is_not_judged():
    step = step_of(NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n')
    known = StepNames((QuantityRow({}, {}, missing="torch in fp32: it crashed"),))

    judged = judged_by(step, known, {"guess": "1"}).checks[0]
    assert (judged.outcome, judged.why) == ("not measured", "torch in fp32: it crashed")


def test_a_task_is_reached_by_any_of_ones_own_results():
    step = step_of('```check\nreach = "precision() <= 0.01"\n```\n')
    rows = [QuantityRow({}, {"precision": exact(value)}) for value in (0.05, 0.009)]

    assert judged_by(step, StepNames(), {}, rows).checks[0].outcome == "right"
    assert judged_by(step, StepNames(), {}, rows[:1]).checks[0].outcome == "off"
    assert judged_by(step, StepNames(), {}, [QuantityRow({}, {})]).checks[0].outcome == "not measured"


def test_a_task_is_not_reached_by_a_result_that_nothing_rests_on():
    step = step_of('```check\nreach = "time() < 20e-3 * s"\n```\n')
    doubtful, certain = names(doubts=["one_sample"]).rows, names().rows

    judged = judged_by(step, StepNames(), {}, doubtful).checks[0]
    assert (judged.outcome, judged.why) == ("unclear", "flagged one_sample")
    assert judged_by(step, StepNames(), {}, [*doubtful, *certain]).checks[0].outcome == "right"


@pytest.mark.parametrize(
    ("guess", "known", "said"),
    [
        ("1", names(), "You said less than 10.0 ms."),
        ("1000", names(), "It took 10.0 ms (9.00 ms to 11.0 ms)."),
        ("10", names(), "It took 10.0 ms (9.00 ms to 11.0 ms)."),
        ("10", StepNames(names().rows, {"gpu": True}), "On a GPU."),
        ("10", names(doubts=["noisy"]), "Again."),
        (None, names(), "It took 10.0 ms (9.00 ms to 11.0 ms)."),
    ],
)
def test_the_first_say_whose_condition_holds_is_said(guess, known, said):
    step = step_of(NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n' + SAYS)

    assert judged_by(step, known, {"guess": guess}).checks[0].said == said


def test_says_belong_to_the_check_before_them():
    checks = '```check\nguess = "guess"\nexact = "1"\n```\n```say\ntext = "one"\n```\n'
    more = '```check\nguess = "guess"\nexact = "2"\n```\n```say\ntext = "two"\n```\n'
    step = step_of('```guess\nid = "guess"\nask = "?"\n```\n' + checks + more)

    assert [found.said for found in judged_by(step, StepNames(), {"guess": "1"}).checks] == ["one", "two"]


@pytest.mark.parametrize(
    "typed", ["soon", "nan", "1e999", "1e300", "-1", "inf", "\uff11", "1" * 61, "__import__('os')"]
)
def test_a_guess_that_is_no_number_is_refused_with_what_is_accepted(typed):
    with pytest.raises(InvalidInput, match=r"numbers from 0 to 1e\+18 in ms, like 2\.5 or 1e6"):
        read_guess(GuessBlock("guess", "?", "ms"), typed)


def test_guesses_are_read_in_one_form():
    number, choice = GuessBlock("a", "?", "ms"), GuessBlock("b", "?", choices=("x", "y"))

    assert [read_guess(number, text) for text in ("2.50", " 1e6 ", "1,024", "", "no idea")] == [
        "2.5", "1000000", "1024", None, None,
    ]  # fmt: skip
    assert [read_guess(choice, text) for text in ("x", "can't tell", "no idea")] == ["x", "can't tell", None]
    with pytest.raises(InvalidInput, match="expected x, y, can't tell, no idea"):
        read_guess(choice, "z")


def test_a_fixed_option_is_right_whatever_was_measured():
    step = step_of(CHOICE + '```check\nguess = "which"\noption = "torch"\n```\n')
    check = step.of(CheckBlock)[0]

    assert [_judge(check, step, {"which": answer}, StepNames()).outcome for answer in ("torch", "numpy", None)] == [
        GuessOutcome.RIGHT, GuessOutcome.OFF, GuessOutcome.NO_GUESS,
    ]  # fmt: skip


@pytest.mark.parametrize(("typed", "read"), [("2,500", "2500"), ("1,234,567.5", "1234567.5"), (" 2.5 ", "2.5")])
def test_commas_between_thousands_are_read(typed, read):
    assert read_guess(GuessBlock("guess", "How long?", "ms"), typed) == read


@pytest.mark.parametrize("typed", ["12,5", "0,02", "1,2345", ","])
def test_a_decimal_comma_is_refused_and_not_dropped(typed):
    with pytest.raises(InvalidInput, match=r"expected numbers from 0 to \S+ in ms"):
        read_guess(GuessBlock("guess", "How long?", "ms"), typed)


def test_a_truth_that_has_no_value_was_not_measured_and_what_would_say_it_is_passed_over():
    never = '```say\nwhen = "1 / guess > 0 * 1 / s"\ntext = "never"\n```\n'
    says = never + '```say\ntext = "It is {{ 1 / (time() - 0.01 * s) }}."\n```\n```say\ntext = "Look again."\n```\n'
    step = step_of(NUMBER + '```check\nguess = "guess"\nnear = "1 / (time() - 0.01 * s)"\n```\n' + says)

    (found,) = judged_by(step, names(), {"guess": "0"}).checks

    assert (found.outcome, found.said) == (GuessOutcome.NOT_MEASURED, "Look again.")
    assert "the divisor may be zero" in found.why


def test_a_say_whose_figures_were_not_measured_is_passed_over():
    check = '```check\nguess = "guess"\nexact = "2"\n```\n'
    says = '```say\ntext = "It took {{ time() }}."\n```\n```say\ntext = "Two."\n```\n'
    step = step_of(f'```guess\nid = "guess"\nask = "?"\n```\n{check}{says}')

    assert judged_by(step, StepNames(), {"guess": "2"}).checks[0].said == "Two."
    assert judged_by(step, names(), {"guess": "2"}).checks[0].said == "It took 10.0 ms."
