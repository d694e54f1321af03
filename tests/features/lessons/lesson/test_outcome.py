"""One rule a check, one outcome of six; and of what may be said the first that holds."""

import pytest

from gpuexplore.analysis.figure import TIME, LessonFigure, QuantityRow, exact
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, GuessBlock
from gpuexplore.features.lessons.lesson.expression import StepNames
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, judged_by, read_guess

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


NEAR = NUMBER + '```check\nguess = "guess"\nnear = "time()"\n```\n'
COUNT = '```guess\nid = "guess"\nask = "How many?"\n```\n'


def exactly(truth):
    return f'```check\nguess = "guess"\nexact = "{truth}"\n```\n'


def step_of(text):
    return _parse_lesson(FRONT + text, "mine").steps[0]


def judged(text, *known):
    """Return what became of the first check of a step."""
    return judged_by(step_of(text), *known).checks[0]


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
    known = names(low=interval[0], high=interval[1])

    assert judged(NEAR.replace('time()"\n', f'time()"\n{rule}'), known, {"guess": guess}).outcome == outcome


@pytest.mark.parametrize(
    ("truth", "guess", "outcome"),
    [("1/12", "0.0833", "right"), ("1/12", "0.083", "right"), ("1/12", "0.08", "close"), ("6", "6", "right"),
     ("6", "6.02", "close"), ("33554432", "3.355e7", "right"), ("6", "60", "off"), ("6", None, "no guess")],
)  # fmt: skip
def test_exact_allows_three_digits_and_no_other_small_whole_number(truth, guess, outcome):
    assert judged(COUNT + exactly(truth), StepNames(), {"guess": guess}).outcome == outcome


@pytest.mark.parametrize(
    ("text", "known", "guesses"),
    [
        (
            NEAR.replace('"ms"', '"%"').replace('time()"\n', 'mfu()"\npoints = 3\n'),
            StepNames((QuantityRow({}, {"mfu": LessonFigure(0.6, 0.55, 0.65, style="percent")}),)),
            ("58", "55", "53"),
        ),
        (NEAR, names(low=5e-3, high=20e-3, source="predicted"), ("12", "18", "35")),
    ],
    ids=["percentage points", "a prediction, however wide"],
)
def test_points_and_predictions_are_judged_by_their_value(text, known, guesses):
    assert [judged(text, known, {"guess": guess}).outcome for guess in guesses] == ["right", "close", "off"]


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
    assert judged(CHOICE + RULES, two(numpy, torch), {"which": answer}).outcome == outcome


def test_a_time_that_cannot_be_or_was_not_measured_is_unclear_or_not_judged_and_never_off():
    chosen = judged(CHOICE + RULES, two((1, 2), (3, 4), ["over_peak"]), {"which": "torch"})
    impossible = judged(NEAR, names(doubts=["over_peak"]), {"guess": "1000"})
    missing = judged(NEAR, StepNames((QuantityRow({}, {}, missing="torch in fp32: it crashed"),)), {"guess": "1"})

    assert chosen.outcome == "unclear"
    assert (impossible.outcome, impossible.why) == ("unclear", "flagged over_peak")
    assert (missing.outcome, missing.why) == ("not measured", "torch in fp32: it crashed")


@pytest.mark.parametrize(
    ("guessed", "outcome"), [("10", "unclear"), ("30", "unclear"), ("1000", "off"), ("0.1", "off")]
)
def test_an_interval_that_is_too_wide_decides_only_what_lies_far_outside(guessed, outcome):
    found = judged(NEAR, names(low=5e-3, high=21e-3), {"guess": guessed})

    assert found.outcome == outcome
    assert ("too wide" in found.why) == (outcome == "unclear")


def test_a_task_is_reached_by_any_of_ones_own_results_that_is_not_doubtful():
    precise = '```check\nreach = "precision() <= 0.01"\n```\n'
    short = '```check\nreach = "time() < 20e-3 * s"\n```\n'
    rows = [QuantityRow({}, {"precision": exact(value)}) for value in (0.05, 0.009)]
    doubtful, certain = names(doubts=["one_sample"]).rows, names().rows
    unclear = judged(short, StepNames(), {}, doubtful)

    assert judged(precise, StepNames(), {}, rows).outcome == "right"
    assert judged(precise, StepNames(), {}, rows[:1]).outcome == "off"
    assert judged(precise, StepNames(), {}, [QuantityRow({}, {})]).outcome == "not measured"
    assert (unclear.outcome, unclear.why) == ("unclear", "flagged one_sample")
    assert judged(short, StepNames(), {}, [*doubtful, *certain]).outcome == "right"


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
    assert judged(NEAR + SAYS, known, {"guess": guess}).said == said


def test_says_belong_to_the_check_before_them():
    step = step_of(f'{COUNT}{exactly(1)}```say\ntext = "one"\n```\n{exactly(2)}```say\ntext = "two"\n```\n')

    assert [found.said for found in judged_by(step, StepNames(), {"guess": "1"}).checks] == ["one", "two"]


@pytest.mark.parametrize(
    "typed",
    [
        "soon",
        "nan",
        "1e999",
        "1e300",
        "-1",
        "inf",
        "\uff11",
        "1" * 61,
        "__import__('os')",
        "12,5",
        "0,02",
        "1,2345",
        ",",
    ],
)
def test_a_guess_that_is_no_number_is_refused_with_what_is_accepted(typed):
    with pytest.raises(InvalidInput, match=r"numbers from 0 to 1e\+18 in ms, like 2\.5 or 1e6"):
        read_guess(GuessBlock("guess", "?", "ms"), typed)


def test_guesses_are_read_in_one_form():
    number, choice = GuessBlock("a", "?", "ms"), GuessBlock("b", "?", choices=("x", "y"))
    read = {"2.50": "2.5", " 1e6 ": "1000000", "1,024": "1024", "1,234,567.5": "1234567.5", "": None, "no idea": None}

    assert {text: read_guess(number, text) for text in read} == read
    assert [read_guess(choice, text) for text in ("x", "can't tell", "no idea")] == ["x", "can't tell", None]
    with pytest.raises(InvalidInput, match="expected x, y, can't tell, no idea"):
        read_guess(choice, "z")


def test_a_fixed_option_is_right_whatever_was_measured():
    text = CHOICE + '```check\nguess = "which"\noption = "torch"\n```\n'
    outcomes = [judged(text, StepNames(), {"which": answer}).outcome for answer in ("torch", "numpy", None)]

    assert outcomes == [GuessOutcome.RIGHT, GuessOutcome.OFF, GuessOutcome.NO_GUESS]


def test_a_truth_that_has_no_value_was_not_measured_and_what_would_say_it_is_passed_over():
    never = '```say\nwhen = "1 / guess > 0 * 1 / s"\ntext = "never"\n```\n'
    says = never + '```say\ntext = "It is {{ 1 / (time() - 0.01 * s) }}."\n```\n```say\ntext = "Look again."\n```\n'
    found = judged(NEAR.replace("time()", "1 / (time() - 0.01 * s)") + says, names(), {"guess": "0"})
    took = COUNT + exactly(2) + '```say\ntext = "It took {{ time() }}."\n```\n```say\ntext = "Two."\n```\n'

    assert (found.outcome, found.said) == (GuessOutcome.NOT_MEASURED, "Look again.")
    assert "the divisor may be zero" in found.why
    assert judged(took, StepNames(), {"guess": "2"}).said == "Two."
    assert judged(took, names(), {"guess": "2"}).said == "It took 10.0 ms."
