"""Text as every database takes it: PostgreSQL refuses NUL, and no encoding has half of a surrogate pair."""

import re
from typing import Any

from sqlalchemy import Dialect, Text, TypeDecorator

REPLACEMENT = "\ufffd"
_REFUSED = re.compile("[\0\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` with signs that no database takes replaced by ones that show it."""
    return _REFUSED.sub(REPLACEMENT, text)


class StorableText(TypeDecorator[str]):
    """A column of text from anywhere: an implementation's error, a browser."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        """Return what is stored."""
        return None if value is None else storable(value)
