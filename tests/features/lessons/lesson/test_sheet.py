"""A sheet shows what was written as text, and a gap for each figure that nobody has measured yet."""

from gpuexplore.features.lessons.lesson.format import _parse_lesson
from gpuexplore.features.lessons.lesson_command import _sheet

LESSON = """+++
title = "3 < 4 & more"
question = "How much?"
minutes = 3
+++
## A & b
It takes {{ time(size=512) }}, *really*.
```guess
id = "which"
ask = "Which"
choices = ["a & b", "c"]
```
```run
operation = "matmul"
size = "512"
```
```check
guess = "which"
option = "c"
```
```instructor
text = "For the teacher."
```
"""


def test_a_blank_sheet_has_gaps_and_no_notes():
    written = _sheet(_parse_lesson(LESSON, "mine"))

    assert "<title>3 &lt; 4 &amp; more</title>" in written
    assert "<h2>a. A &amp; b</h2>" in written
    assert "It takes ________, <em>really</em>." in written
    assert "<b>Which:</b>" in written
    assert written.count('class="box"') == 4  # the two, and those that are always there
    assert "Measure: matmul, 512, fp32, all on cpu" in written
    assert "so my guess was" in written
    assert "For the teacher" not in written
