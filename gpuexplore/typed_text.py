"""What text may be: short enough to be read, of characters that can be stored and shown.

Everything that people type or put into a link passes here, and whatever is stored of it.
"""

import re

from gpuexplore.errors import InvalidInput

LONGEST_TEXT = 200  # characters of a text, or of each value of a list
MOST_VALUES = 64  # of a list
# Control characters, but for tabs and line ends; and halves of a surrogate pair, which no database stores.
_UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def check_text(what: str, text: str, separators: str = "", *, most: int = MOST_VALUES) -> None:
    """Accept `text`, or a list of texts, as it was typed.

    Args:
        what: the name of the field or parameter, for the message.
        separators: the characters that separate the values of a list; none: `text` is one value.
        most: values of a list.

    Raises:
        InvalidInput: too long, too many, or of characters that cannot be shown; says which, and what is accepted.
    """
    values = re.split(f"[{separators}]", text, maxsplit=most) if separators else [text]
    if len(values) > most:
        raise InvalidInput.of(what, text, f"at most {most} of them")
    longest = max(map(len, values))
    if longest > LONGEST_TEXT:
        raise InvalidInput.of(what, f"{longest:,} characters", f"at most {LONGEST_TEXT}")
    if found := _UNUSABLE.search(text):
        raise InvalidInput.of(what, found.group(), "characters that can be shown")
