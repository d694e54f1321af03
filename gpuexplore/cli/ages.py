"""Spans of time as people type them: `90d`, `12h`, `30m`."""

import re
from datetime import UTC, datetime, timedelta

from gpuexplore.errors import InvalidInput

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
ACCEPTED = "a number and a unit, like 90d, 12h, 30m or 4w, up to 100 years"
LONGEST = timedelta(days=36_525)


def read_age(what: str, text: str) -> timedelta:
    """Return the span of time.

    Raises:
        InvalidInput: it is none; names `what`, and what is accepted.
    """
    found = re.fullmatch(r"\s*(\d{1,6})\s*([mhdw])\s*", text, re.ASCII)
    if found is None:
        raise InvalidInput.of(what, text, ACCEPTED)
    age = timedelta(**{UNITS[found[2]]: int(found[1])})
    if age > LONGEST:
        raise InvalidInput.of(what, text, ACCEPTED)
    return age


def utc_before(what: str, text: str, now: datetime | None = None) -> str:
    """Return the moment that long ago as the database holds it."""
    return ((now or datetime.now(UTC)) - read_age(what, text)).isoformat(timespec="microseconds")
