"""A lesson is read as it was written; what is wrong is named with its file and line."""

import os
import re
from pathlib import Path

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.lessons.lesson.blocks import CheckBlock, GuessBlock, KeepBlock, Prose, RunBlock, SayBlock
from gpuexplore.features.lessons.lesson.format import LARGEST_BYTES, _parse_lesson, read_lesson

FRONT = '+++\ntitle = "Twice"\nquestion = "How much longer?"\nminutes = 3\n+++\n'
GUESS = '```guess\nid = "factor"\nask = "How many times?"\nunit = "times"\n```\n'
CHOICE = '```guess\nid = "which"\nask = "Which?"\nchoices = ["a", "b"]\n```\n'
RUN = '```run\noperation = "matmul"\nsize = "512,1024"\nimpl = "torch"\n```\n'
CHECK = '```check\nguess = "factor"\nnear = "time(size=1024) / time(size=512)"\n```\n'
WHOLE = f"{FRONT}\n## A step\n\nSome text.\n{GUESS}{RUN}{CHECK}"


def test_steps_have_letters_and_parts_in_their_order():
    say = '```say\ntext = "It was {{ time(size=512) }}."\n```\n```keep\ntext = "A rule."\n```\n'
    lesson = _parse_lesson(f"{WHOLE}{say}Afterwards.\n## Another\nMore.", "mine")

    assert (lesson.title, lesson.question, lesson.minutes) == ("Twice", "How much longer?", 3)
    assert [(step.letter, step.title) for step in lesson.steps] == [("a", "A step"), ("b", "Another")]
    assert [type(part) for _, part in lesson.steps[0].parts] == [
        Prose,
        GuessBlock,
        RunBlock,
        CheckBlock,
        SayBlock,
        KeepBlock,
        Prose,
    ]
    assert lesson.step("a").guesses["factor"].unit == "times"


def test_answers_belong_to_one_version_of_a_text_and_headings_in_blocks_and_signs_of_markdown_are_text():
    keep = '```keep\ntext = """\n## not a step\n"""\n```\n'
    signs = _parse_lesson(FRONT + "## a\nWhen 3 < 4 and x > 2, `a < b`.", "mine")

    assert len({_parse_lesson(text, "mine").digest for text in (WHOLE, f"{WHOLE}\nMore.", WHOLE)}) == 2
    assert len(_parse_lesson(f"{WHOLE}{keep}", "mine").steps) == 1
    assert signs.steps[0].of(Prose)[0].blank == "When 3 < 4 and x > 2, `a < b`."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# Title", "mine.md, line 1: front matter"),
        ("+++\ntitle = 1\n+++\n## a", "mine.md, line 1: title '1'.*type str"),
        ("+++\ntitle = \n+++\n## a", "mine.md, line 2: no TOML"),
        (FRONT.replace("minutes", "hours") + "## a", "front matter 'hours': expected title"),
        (FRONT.replace("minutes = 3\n", "") + "## a", "lacks minutes"),
        (FRONT.replace("= 3", "= 0") + "## a", "mine.md, line 1: minutes '0': expected 1 to 600"),
        (FRONT.replace("= 3", f"= {'1' * 5000}") + "## a", "mine.md, line 2: no TOML: .*4300 digits"),
        (FRONT.replace('"Twice"', '" "') + "## a", "mine.md, line 1: title ' ': expected a non-empty text"),
        (FRONT.replace("Twice", "x" * 201) + "## a", "mine.md, line 1: title '201 characters'.*at most 200"),
        (FRONT + "## a\nNever \x00 seen", r"mine.md, line 7 '.x00': expected characters that can be shown"),
        (FRONT, "no step"),
        (FRONT + "Text first.\n## a", "mine.md, line 6 'Text first.'.*a step first"),
        (WHOLE + "```gess\nid = 1\n```", "mine.md, line 24: block 'gess': expected guess, run"),
        (WHOLE + "```keep\ntext = 'x'", "mine.md, line 24: the block keep does not end"),
        (WHOLE.replace("size = ", "sise = "), "mine.md, line 15: key of run 'sise': expected operation, size"),
        (WHOLE.replace('operation = "matmul"\n', ""), "mine.md, line 15: run: operation is missing"),
        (WHOLE.replace('"512,1024"', "512"), "run.size '512': expected a text"),
        (WHOLE.replace('"times"', '"miles"'), "unit 'miles': expected times, %"),
        (WHOLE.replace('guess = "factor"', 'guess = "other"'), "guess 'other': expected factor"),
        (WHOLE.replace("time(size=512)", "speed(size=512)"), "quantity 'speed': expected time"),
        (WHOLE.replace('near = "', 'near = "import os; '), "mine.md, line 20: expression"),
        (WHOLE.replace("near =", 'exact = "1"\nnear ='), "one of exact, near, option, choice, reach"),
        (WHOLE + GUESS, "two guesses of step a have one id"),
        (FRONT + "## a\n" + CHOICE + '```check\nguess = "which"\nnear = "1"\n```', "has choices: use choice or option"),
        (
            FRONT + "## a\n" + CHOICE + '```check\nguess = "which"\noption = "c"\n```',
            "option of which 'c': expected a, b",
        ),
        (FRONT + "## a\n" + CHOICE.replace('"b"', '"a"'), "two or more, each once"),
        (FRONT + "## a\nA <b>bold</b> <script>alert(1)</script>", "Markdown without HTML"),
        (FRONT + "## a\nA {{ figure", "figures in double braces"),
        (FRONT + "## a\n" + GUESS.replace('"factor"', '"right"'), "id 'right'"),
        (FRONT + "\n".join(f"## step {number}" for number in range(27)), "steps '27': expected at most 26"),
    ],
)
def test_what_is_wrong_is_named_with_file_and_line(text, message):
    with pytest.raises(InvalidInput, match=message):
        _parse_lesson(text, "mine", "mine.md")


def test_a_file_that_is_huge_without_end_of_other_bytes_or_a_pipe_is_refused(tmp_path):
    huge, binary, pipe = (tmp_path / name for name in ("huge.md", "binary.md", "mine.md"))
    huge.write_text("+++\n" + "x" * 10_000_000)
    binary.write_bytes(b"+++\n\xff\xfe\n+++")
    os.mkfifo(pipe)
    most = f"{LARGEST_BYTES:,}"

    for path, said in (
        (huge, f"huge.md: file 'more than {most} bytes': expected at most {most}"),
        (Path("/dev/zero"), f"zero: file 'more than {most} bytes'"),
        (binary, "binary.md: cannot be read as UTF-8"),
        (pipe, "mine.md: file 'a pipe': expected files of text"),
    ):
        with pytest.raises(InvalidInput, match=re.escape(said)):
            read_lesson(path)


def test_a_file_of_an_editor_on_windows_is_a_lesson(tmp_path):
    path = tmp_path / "mine.md"
    path.write_bytes(b"\xef\xbb\xbf" + WHOLE.replace("\n", "\r\n").encode())

    assert read_lesson(path).title == "Twice"
