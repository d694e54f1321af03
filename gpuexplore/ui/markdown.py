"""Text that visitors typed, shown as they typed it."""

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:<>&-])")
# Icons and emojis are found in the text after Markdown has read it: no backslash stops them.
_FOUND_LATER = re.compile(r":(?=(?:material/\w|[a-z+-])[\w+-]*:)")
WORD_JOINER = "\u2060"  # invisible, and no line breaks at it


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it literally: no links with other words, pictures, formulas or icons."""
    return _SPECIAL.sub(r"\\\1", _FOUND_LATER.sub(rf"\g<0>{WORD_JOINER}", text))


def small(text: str) -> str:
    """Return `text` in small letters of full colour: for a caption with a link, which a caption makes too faint."""
    return f":small[{text}]"
