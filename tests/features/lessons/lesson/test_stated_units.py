"""What a lesson states itself: numbers with units, and guesses that nobody made."""

import pytest

from gpuexplore.analysis.figure import BANDWIDTH, TIME, QuantityRow, format_figure
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson.evidence import rehearse
from gpuexplore.features.lessons.lesson.expression import StepNames, figure_of, parse
from gpuexplore.features.lessons.lesson.format import _parse_lesson
from gpuexplore.features.lessons.lesson.outcome import GuessOutcome, judged_by
from tests.analysis.made import device

LESSON = """+++
title = "t"
question = "q"
minutes = 1
+++

## a

```guess
id = "work"
ask = "Operations"
unit = "FLOP"
```
```check
guess = "work"
exact = "2e8 * FLOP"
```
```say
when = "work == 1e8"
text = "half"
```
```say
text = "all"
```

## b

```check
reach = "RULE"
```
"""


def test_a_stated_number_takes_its_unit_from_names():
    moved = figure_of(parse("12e6 * B / (16e9 * B / s)"), StepNames())
    assert (moved.dimension, format_figure(moved)) == (TIME, "750 µs")
    assert figure_of(parse("16e9 * B / s"), StepNames()).dimension == BANDWIDTH


@pytest.mark.parametrize(("answer", "said"), [("100000000", "half"), ("200000000", "all"), (None, "all")])
def test_a_say_may_name_a_guess_whether_or_not_it_was_made(answer, said):
    (step, _) = _parse_lesson(LESSON.replace("RULE", "mfu() > 0.5"), "x").steps
    assert judged_by(step, StepNames(), {"work": answer}).checks[0].said == said


def test_a_task_may_ask_for_results_of_one_kind():
    (_, step) = _parse_lesson(LESSON.replace("RULE", "bandwidth(cache='cold') > 1e9 * B / s"), "x").steps
    assert rehearse(step, [], "x") == 1
    figures = {"bandwidth": figure_of(parse("2e9 * B / s"), StepNames())}
    warm, cold = (QuantityRow({"cache": cache}, figures) for cache in ("warm", "cold"))
    assert judged_by(step, StepNames(), {}, [warm]).checks[0].outcome is GuessOutcome.NOT_MEASURED
    assert judged_by(step, StepNames(), {}, [warm, cold]).checks[0].outcome is GuessOutcome.RIGHT


@pytest.mark.parametrize(("unit", "rule"), [("FLOP", "2e8"), ("GFLOP/s", "2e8 * FLOP"), ("", "2e8 * FLOP")])
def test_a_truth_in_another_unit_than_the_guess_is_refused(unit, rule):
    text = LESSON.replace('unit = "FLOP"', f'unit = "{unit}"').replace("2e8 * FLOP", rule)
    (step, _) = _parse_lesson(text.replace("RULE", "mfu() > 0.5"), "x").steps

    with pytest.raises(InvalidInput, match=r"x, line 14: .* expected what is in the unit of the guess"):
        rehearse(step, [], "x")


@pytest.mark.parametrize("wrong", ['size = "abc"', 'size = "64"\nimpl = "cooking"'])
def test_a_block_that_cannot_be_measured_is_named_with_its_line(wrong):
    text = LESSON.replace("```check", f'```run\noperation = "matmul"\n{wrong}\n```\n```check', 1)
    (step, _) = _parse_lesson(text.replace("RULE", "mfu() > 0.5"), "x").steps

    with pytest.raises(InvalidInput, match=r"^x, line 14: (size|implementation)"):
        rehearse(step, [device()], "x")


def test_a_lesson_can_be_checked_before_the_peaks_of_this_machine_were_measured():
    block = '```predict\noperation = "matmul"\ngpu = "cpu"\nsize = "64"\n```\n'
    peak = block + "At most {{ peak() }}, {{ peak_bandwidth() }}.\n"
    (step, _) = _parse_lesson(
        LESSON.replace("```guess", f"{peak}```guess", 1).replace("RULE", "mfu() > 0.5"), "x"
    ).steps

    assert rehearse(step, [device(peaks=(), bandwidth=None)], "x") == 1
