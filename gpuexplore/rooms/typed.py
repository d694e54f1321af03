"""Typed texts about rooms: names, titles, lengths of time."""

import unicodedata
from collections.abc import Iterable
from urllib.parse import urlsplit

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import check_characters
from gpuexplore.core.units import read_whole

LONGEST_NAME = 24  # characters: what fits a tile of the wall
LONGEST_TITLE = 80
LONGEST_MESSAGE, LONGEST_LINK = 280, 2000
HOURS = range(1, 7 * 24 + 1)  # that a room may be open
_INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")  # categories of Unicode


def read_name(text: str) -> str:
    """Return a display name, its spaces tidied.

    Raises:
        InvalidInput: it is empty, too long, or of invisible characters.
    """
    check_characters("name", text)
    name = " ".join(text.split())
    if hidden := next((sign for sign in name if unicodedata.category(sign) in _INVISIBLE), None):
        raise InvalidInput.of("name", f"U+{ord(hidden):04X}", "characters that can be seen")
    if not any(sign.isalnum() for sign in name) or len(name) > LONGEST_NAME:
        raise InvalidInput.of("name", name, f"1 to {LONGEST_NAME} characters, a letter or digit among them")
    return name


def name_key(name: str) -> str:
    """Return what two names share that people would take for one: `Ada`, `ADA` and `ada`."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def read_title(text: str) -> str:
    """Return the title of a room, which may be empty.

    Raises:
        InvalidInput: it is too long or cannot be shown.
    """
    return _line("title", text, LONGEST_TITLE)


def read_message(text: str) -> str:
    """Return a leader's message to a room, which may be empty.

    Raises:
        InvalidInput: it is too long or cannot be shown.
    """
    return _line("message", text, LONGEST_MESSAGE)


def read_link(text: str, pages: Iterable[str], first_page: str) -> str:
    """Return the page and the parameters of an address of this app, such as `lessons?lesson=dtypes`, or empty text.

    Of an address only that is kept: a room never links to another server.

    Args:
        text: an address as the browser shows it, or what follows the server's name.
        pages: of this app, as addresses name them.
        first_page: the one that an address without a page means.

    Raises:
        InvalidInput: it is too long, cannot be shown, or is of no page of this app.
    """
    typed = text.strip()
    if not typed:
        return ""
    check_characters("link", typed)
    try:
        parts = urlsplit(typed)
    except ValueError:
        raise InvalidInput.of("link", typed, "addresses of this app") from None
    page = parts.path.rstrip("/").rpartition("/")[2] or first_page
    accepted = tuple(pages)
    if page not in accepted or parts.scheme not in ("", "http", "https"):
        raise InvalidInput.of("link", typed, f"addresses of this app, which end in one of {', '.join(accepted)}")
    if len(parts.query) > LONGEST_LINK:
        raise InvalidInput.of("link", f"{len(typed):,} characters", f"at most {LONGEST_LINK:,}")
    return f"{page}?{parts.query}" if parts.query else page


def read_hours(text: str) -> int:
    """Return for how many hours a room shall be open.

    Raises:
        InvalidInput: no whole number, or out of range.
    """
    return _whole("hours", text, HOURS)


def read_weight(text: str) -> int:
    """Return how many times as much of a device those in a room get as others.

    Raises:
        InvalidInput: no whole number, or out of range.
    """
    return _whole("weight", text, range(1, 101))


def _whole(what: str, text: str, accepted: range) -> int:
    """Return a whole number that is among those accepted."""
    number = read_whole(text)
    if number is None or number not in accepted:
        raise InvalidInput.of(what, text, f"whole numbers from {accepted.start} to {accepted.stop - 1}")
    return number


def _line(what: str, text: str, longest: int) -> str:
    """Return a text on one line, its spaces tidied; it may be empty."""
    check_characters(what, text)
    line = " ".join(text.split())
    if len(line) > longest:
        raise InvalidInput.of(what, line, f"at most {longest} characters")
    return line
