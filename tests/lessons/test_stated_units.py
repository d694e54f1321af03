"""What a lesson states itself: numbers with units, and guesses that nobody made."""

import pytest

from gpuexplore.lessons.expression import figure_of, parse
from gpuexplore.lessons.figure import BANDWIDTH, TIME, format_figure
from gpuexplore.lessons.format import parse_lesson
from gpuexplore.lessons.judged_step import judged_by
from gpuexplore.lessons.outcome import Outcome
from gpuexplore.lessons.quantities import Row, StepNames
from gpuexplore.lessons.rehearsal import rehearse

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
    (step, _) = parse_lesson(LESSON.replace("RULE", "mfu() > 0.5"), "x").steps
    assert judged_by(step, StepNames(), {"work": answer}).checks[0].said == said


def test_a_task_may_ask_for_results_of_one_kind():
    (_, step) = parse_lesson(LESSON.replace("RULE", "bandwidth(cache='cold') > 1e9 * B / s"), "x").steps
    assert rehearse(step, [], "x") == 1
    figures = {"bandwidth": figure_of(parse("2e9 * B / s"), StepNames())}
    warm, cold = (Row({"cache": cache}, figures) for cache in ("warm", "cold"))
    assert judged_by(step, StepNames(), {}, [warm]).checks[0].judged.outcome is Outcome.NOT_MEASURED
    assert judged_by(step, StepNames(), {}, [warm, cold]).checks[0].judged.outcome is Outcome.RIGHT
