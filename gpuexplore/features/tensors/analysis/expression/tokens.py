"""The words of an expression with their positions: whatever is none of them is refused where it stands."""

import re
from dataclasses import dataclass
from typing import Literal

from gpuexplore.errors import InvalidInput
from gpuexplore.typed_text import check_text

SEPARATOR = ";"
MOST_STATEMENTS = 12
LARGEST_NUMBER = 1_000_000_000
SIGNS = "[ ] ( ) , : . ... = - ;"
_WORD = re.compile(
    r"(?P<space>\s+)|(?P<shape>\d+(?:x\d+)+(?!\w))|(?P<number>\d\w*(?:\.\d+(?!\w))?)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\.\.\.|[][(),:.=;-])",
    re.ASCII,
)
Kind = Literal["shape", "number", "name", "sign", "end"]


@dataclass(frozen=True, slots=True)
class Token:
    """A word, its kind, and the position of its first character, counted from 1."""

    kind: Kind
    text: str
    position: int


def refused(position: int, value: object, accepted: str) -> InvalidInput:
    """Return the error for what stands at `position`, which counts characters from 1."""
    return InvalidInput.of(f"expression, character {position}:", value, accepted)


def tokens_of(expression: str) -> list[Token]:
    """Return the words of `expression` and an end.

    Raises:
        InvalidInput: too long, too many statements, or a character that belongs to no word.
    """
    check_text("expression", expression, SEPARATOR, most=MOST_STATEMENTS)
    found, place = [], 0
    while place < len(expression):
        match = _WORD.match(expression, place)
        if match is None:
            raise refused(place + 1, expression[place], f"names, whole numbers, shapes like 4x4, and {SIGNS}")
        kind: Kind = match.lastgroup  # type: ignore[assignment]
        if match.group().startswith("_"):
            raise refused(place + 1, match.group(), "names that begin with a letter")
        if match.lastgroup != "space":
            found.append(Token(kind, match.group(), place + 1))
        place = match.end()
    return [*found, Token("end", "the end", len(expression) + 1)]
