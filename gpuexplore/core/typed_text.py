"""Limits of typed text: short enough to be read, of characters that can be stored and shown.

Everything that people type or put into a link passes here, and whatever is stored of it.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from numbers import Real

from gpuexplore.core.errors import InvalidInput, require

Words = str | Iterable[object]  # text values in Python: one, or a list
LONGEST_TEXT = 200  # characters of a text, or of each value of a list
LONGEST_REASON = 500  # characters of a library's error message
LONGEST_LIST = 64 * LONGEST_TEXT  # characters of a list
_ACCEPTED = "text, numbers, and lists of them"
# Control characters, but for tabs and line ends; and halves of a surrogate pair, which no database stores.
_UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_TERMINAL_COMMANDS = re.compile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|[@-Z\\\\-_])")  # ECMA-48
REPLACEMENT = "\ufffd"


def in_any_case(text: str, accepted: Iterable[str]) -> str:
    """Return the accepted name that `text` is but for its case: adamw for torch's AdamW; any other text as it is."""
    return next((name for name in accepted if name.casefold() == text.strip().casefold()), text)


def check_text(what: str, text: str, separators: str = "", *, most: int | None = None) -> None:
    """Accept `text`, or a list of texts, as it was typed.

    Args:
        what: the name of the field or parameter, for the message.
        separators: the characters that separate the values of a list; none: `text` is one value.
        most: values of a list; None where the caller counts.

    Raises:
        InvalidInput: too long, too many, or of characters that cannot be shown; says which, and what is accepted.
    """
    if most is not None and len(re.split(f"[{separators}]", text, maxsplit=most)) > most:
        raise InvalidInput.of(what, text, f"at most {most} of them")
    _check_length(what, text, LONGEST_LIST if separators else LONGEST_TEXT)
    for value in re.split(f"[{separators}]", text) if separators else ():
        _check_length(what, value, LONGEST_TEXT)
    check_characters(what, text)


def check_characters(what: str, text: str) -> None:
    """Accept `text` of any length, when it can be stored and shown.

    Raises:
        InvalidInput: names the first character that cannot.
    """
    if found := _UNUSABLE.search(text):
        raise InvalidInput.of(what, found.group(), "characters that can be shown")


def readable(text: str, longest: int | None = None) -> str:
    """Return `text` of a program as it can be stored, sent and shown anywhere.

    Commands to a terminal are left out, every other character that cannot be shown becomes a sign that says so.

    Args:
        text: anything, bytes that were no text among it.
        longest: characters to keep.
    """
    kept = text if longest is None else text[: 2 * longest]
    without_commands = _TERMINAL_COMMANDS.sub("", kept)
    from_left_to_right = re.sub("[\u202a-\u202e\u2066-\u2069]", "", without_commands)
    return _UNUSABLE.sub(REPLACEMENT, from_left_to_right)[:longest]


def spreadsheet_safe(text: str) -> str:
    """Return `text` as a cell of a CSV file that no spreadsheet computes: a formula gets an apostrophe before it."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


def name_typed(what: str, value: str, *, empty: bool = False) -> str:
    """Return a name as it was given.

    Raises:
        InvalidInput: it is no text, or none that can be shown.
    """
    require(isinstance(value, str), what, value, "names, as text")
    check_text(what, value)
    if not value.strip() and not empty:
        raise InvalidInput.of(what, value, "names, as text")
    return value


def text_typed(what: str, value: Words | float | None, separator: str = ",") -> str:
    """Return names, numbers or text as the text a user would type.

    Raises:
        InvalidInput: it is something else, or a list of something else.
    """
    if value is None:
        return ""
    if isinstance(value, str | Real):
        return _word(what, value)
    if not isinstance(value, Iterable) or isinstance(value, bytes | bytearray | memoryview | Mapping):
        raise InvalidInput.of(what, value, _ACCEPTED)
    most = 1000
    words = list(islice(value, most + 1))
    require(len(words) <= most, what, f"more than {most} of them", f"at most {most}")
    return separator.join(_word(what, word) for word in words)


def _word(what: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | Real):
        raise InvalidInput.of(what, value, _ACCEPTED)
    if isinstance(value, int) and abs(value) >= 10**300:  # Python writes none of more than 4,300 digits
        raise InvalidInput.of(what, value, "numbers of fewer digits")
    return str(value)


def _check_length(what: str, text: str, longest: int) -> None:
    require(len(text) <= longest, what, f"{len(text):,} characters", f"at most {longest:,}")
