"""A lesson on paper: one HTML file with nothing beside it, blank to be filled in, or with this machine's answers."""

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup

from gpuexplore.features.lessons.lesson.blocks import CANNOT_TELL, NO_IDEA, with_colon
from gpuexplore.features.lessons.lesson.format import Lesson
from gpuexplore.features.lessons.lesson.judged_step import JudgedStep
from gpuexplore.features.mistakes.catalog import mistake_named

MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
TEMPLATE = Path(__file__).with_name("sheet.html.jinja")
STYLE = Path(__file__).with_name("sheet.css")


def sheet(lesson: Lesson, answered: Sequence[JudgedStep] = (), where: str = "") -> str:
    """Return the sheet of a lesson as HTML.

    Args:
        answered: its steps as measured on this machine; none: the sheet is blank.
        where: the machine, the day and the versions of the answers.
    """
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True)
    environment.filters |= {"markdown": _markdown, "with_colon": with_colon}
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        lesson=lesson,
        answered={judged.step.letter: judged for judged in answered},
        where=where,
        style=Markup(STYLE.read_text(encoding="utf-8")),
        always=(CANNOT_TELL, NO_IDEA),
        mistake_named=mistake_named,
    )


def _markdown(text: str) -> Markup:
    return Markup(MARKDOWN.render(text.replace("____", r"\_" * 8)))
