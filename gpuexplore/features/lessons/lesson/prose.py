"""Text of a lesson: Markdown without HTML, with figures in double braces, like ``{{ time(size=512) }}``."""

import re
from dataclasses import dataclass

from gpuexplore.errors import InvalidInput, NotFound
from gpuexplore.features.lessons.lesson.expression import Expression, Names, Value, evaluate, parse
from gpuexplore.features.lessons.lesson.figure import Figure, Undefined, format_figure, format_with_interval

PLACE = re.compile(r"\{\{([^{}]*)\}\}")
HTML = re.compile(r"<[A-Za-z/!?][^\n]{0,40}")
WITH_INTERVAL = "±"  # behind an expression: its interval is said too
UNKNOWN = "—"


@dataclass(frozen=True, slots=True)
class Prose:
    """Markdown in pieces: text, and expressions whose figures stand between them, each with its interval or not."""

    pieces: tuple[str | tuple[Expression, bool], ...]

    @classmethod
    def of(cls, text: str) -> "Prose":
        """Return `text` with its figures found.

        Raises:
            InvalidInput: it holds HTML, or a figure that is no expression.
        """
        if found := HTML.search(text):
            raise InvalidInput.of("text", found.group(), "Markdown without HTML")
        parts = PLACE.split(text.strip())
        if any("{{" in part or "}}" in part for part in parts[::2]):
            raise InvalidInput.of("text", text.strip()[:60], "figures in double braces, like {{ time(size=512) }}")
        return cls(tuple(_figure(part) if place % 2 else part for place, part in enumerate(parts)))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of its figures."""
        return tuple(piece[0] for piece in self.pieces if not isinstance(piece, str))

    def said(self, names: Names) -> str:
        """Return the text with its figures; a dash where one was not measured, or has no value."""
        return "".join(piece if isinstance(piece, str) else _said(*piece, names) for piece in self.pieces)

    def is_known(self, names: Names) -> bool:
        """Return whether each of its figures was measured or can be computed."""
        try:
            for expression in self.expressions:
                evaluate(expression, names)
        except (NotFound, Undefined):
            return False
        return True

    @property
    def blank(self) -> str:
        """The text with a gap for each figure, as it is printed before anything was measured."""
        return "".join(piece if isinstance(piece, str) else "____" for piece in self.pieces)


def _figure(text: str) -> tuple[Expression, bool]:
    return parse(text.strip().removesuffix(WITH_INTERVAL)), text.strip().endswith(WITH_INTERVAL)


def _said(expression: Expression, with_interval: bool, names: Names) -> str:
    try:
        return _words(evaluate(expression, names), with_interval)
    except (NotFound, Undefined):
        return UNKNOWN


def _words(value: Value, with_interval: bool) -> str:
    if isinstance(value, Figure):
        return format_with_interval(value) if with_interval else format_figure(value)
    if isinstance(value, str):
        return value
    return CANNOT_SAY if value is None else ("yes" if value else "no")


CANNOT_SAY = "cannot be told apart"
