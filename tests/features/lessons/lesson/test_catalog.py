"""Lessons are found in the package and in the home, without a restart; what is none is listed with its reason."""

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson import catalog, lesson_at
from gpuexplore.features.lessons.lesson.evidence import rehearse
from gpuexplore.hardware import lessons_directory
from tests.features.lessons.lesson.conftest import DEVICES, needs

OWN = '+++\ntitle = "Mine"\nquestion = "What?"\nminutes = 1\n+++\n## Step\nText.\n'


@pytest.fixture
def folder(home):
    lessons_directory().mkdir()
    return lessons_directory()


def test_lessons_of_the_package_come_in_their_order():
    orders = [lesson.order for lesson in catalog().lessons.values()]

    assert orders == sorted(orders)
    assert catalog().unreadable == {}


def test_a_lesson_dropped_into_the_home_is_there_at_once(folder):
    assert "mine" not in catalog().lessons
    (folder / "mine.md").write_text(OWN)
    assert catalog().lesson("mine").title == "Mine"
    (folder / "mine.md").write_text(OWN.replace("Mine", "Changed"))
    assert catalog().lesson("mine").title == "Changed"
    (folder / "mine.md").unlink()
    assert "mine" not in catalog().lessons


def test_an_unreadable_lesson_is_listed_with_its_reason(folder):
    (folder / "broken.md").write_text("no front matter")
    (folder / "how-long.md").write_text(OWN)

    assert catalog().unreadable["broken"].startswith("broken.md, line 1: front matter")
    assert "has this name" in catalog().unreadable["lessons/how-long.md"]
    with pytest.raises(InvalidInput, match="front matter"):
        catalog().lesson("broken")


def test_a_lesson_borrows_steps_of_others(folder):
    (folder / "mine.md").write_text(OWN.replace("minutes", 'borrows = ["how-long/d", "how-long/a"]\nminutes'))
    titles = [(step.letter, step.title) for step in catalog().lesson("mine").steps]

    assert titles == [("a", "Which one is faster?"), ("b", "A guess in seconds"), ("c", "Step")]


@pytest.mark.parametrize("place", ["nothing/a", "how-long/z", "how-long"])
def test_a_step_that_is_not_there_cannot_be_borrowed(folder, place):
    (folder / "mine.md").write_text(OWN.replace("minutes", f'borrows = ["{place}"]\nminutes'))

    assert "expected" in catalog().unreadable["mine"]


def test_unknown_lesson_is_refused_with_those_there_are():
    with pytest.raises(InvalidInput, match=r"lesson 'cooking': expected .*how-long"):
        catalog().lesson("cooking")


@pytest.mark.parametrize("name", list(catalog().lessons))
def test_every_expression_of_a_lesson_means_something(name):
    lesson = catalog().lesson(name)

    assert sum(rehearse(step, DEVICES, f"{name}.md") for step in lesson.steps) >= len(lesson.steps)


def test_a_quantity_that_the_step_does_not_measure_is_named_with_its_line(folder):
    text = OWN + '```guess\nid = "a"\nask = "?"\n```\n```check\nguess = "a"\nnear = "time(size=512)"\n```\n'
    (folder / "mine.md").write_text(text)
    (step,) = lesson_at(folder / "mine.md").steps

    with pytest.raises(InvalidInput, match=r"mine.md, line 12: 'time\(size=512\)': .*was not measured"):
        rehearse(step, DEVICES, "mine.md")


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ('```check\nguess = "a"\nexact = "1 / 0"\n```\n', "mine.md, line 10: '1 / 0': .*the divisor may be zero"),
        ('```check\nguess = "a"\nexact = "1 + 1 * s"\n```\n', r"mine.md, line 10: '1 \+ 1 \* s': .*units differ"),
        ('```say\nwhen = "a + 1"\ntext = "x"\n```\n', r"mine.md, line 10: condition 'a \+ 1': .*true or false"),
        ('```run\noperation = "nope"\n```\n', "mine.md, line 10: operation 'nope': expected matmul"),
        pytest.param(
            '```memory\nmodel = "gpt2"\nbatch = 0\n```\n',
            "mine.md, line 10: batch '0': expected whole numbers",
            marks=needs("model"),
        ),
    ],
)
def test_what_a_check_finds_is_named_with_its_line(folder, block, message):
    check = '```check\nguess = "a"\nexact = "1"\n```\n' if block.startswith("```say") else ""
    text = f'{OWN}```guess\nid = "a"\nask = "?"\n```\n{check}{block}'
    (folder / "mine.md").write_text(text)
    (step,) = lesson_at(folder / "mine.md").steps

    with pytest.raises(
        InvalidInput, match=message.replace("line 10", f"line {text[: text.index(block)].count(chr(10)) + 1}")
    ):
        rehearse(step, DEVICES, "mine.md")


def test_a_home_that_cannot_be_written_leaves_the_lessons_that_ship(monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", "/proc/none")
    assert "half-the-bits" in catalog().lessons
