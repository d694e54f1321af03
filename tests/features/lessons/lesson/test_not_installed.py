"""Blocks of features that are not installed: lessons are read, and say so where their figures would stand."""

import pytest

from gpuexplore.core.errors import NotFound
from gpuexplore.features.lessons.lesson import blocks
from gpuexplore.features.lessons.lesson.evidence import NOT_INSTALLED, names_of, tasks_of
from gpuexplore.features.lessons.lesson.expression import evaluate, parse
from gpuexplore.features.lessons.lesson.format import parse_lesson
from gpuexplore.features.lessons.lesson.rehearsal import rehearse
from tests.features.lessons.lesson.conftest import DEVICES

STEP = """+++
title = "t"
question = "q"
minutes = 1
+++
## Step
```guess
id = "g"
ask = "a"
```
```{kind}
{keys}
```
```check
guess = "g"
near = "figure()"
```
"""
KEYS = {
    "claim": 'row = "B5"',
    "memory": 'model = "vgg-16"\nbatch = 128',
    "mistake": 'mistake = "first-call"',
    "tensor": 'expression = "zeros(20, 30).t()"\nread = true',
    "train": 'model = "3-10-2"\nbatch = 100',
}


@pytest.mark.parametrize("kind", KEYS)
def test_a_block_of_a_feature_that_is_not_installed_is_read_and_has_no_figures(kind, monkeypatch):
    monkeypatch.setattr(blocks, "features", tuple)
    step = parse_lesson(STEP.format(kind=kind, keys=KEYS[kind]), "mine").steps[0]

    names = names_of(step, DEVICES, {}, tasks_of(step, DEVICES))

    assert {row.missing for row in names.rows} == {NOT_INSTALLED}
    with pytest.raises(NotFound, match=NOT_INSTALLED):
        evaluate(parse("figure()"), names)
    assert rehearse(step, DEVICES, "mine.md") == 1
