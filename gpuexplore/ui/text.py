"""Text that visitors typed, shown as they typed it."""

import re

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$:<>&-])")


def plain(text: str) -> str:
    """Return `text` so that Markdown shows it literally: no links, pictures, formulas or icons."""
    return _SPECIAL.sub(r"\\\1", text)
