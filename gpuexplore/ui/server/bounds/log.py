"""A bounded log: what repeats is written a few times a minute, and then counted."""

import logging
import time
from collections.abc import Callable
from typing import Any

MINUTE_S = 60.0
MOST_WHOLE, MOST_LINES = 20, 200  # of one kind in a minute: with its traceback, and as a line
NEVER = -1  # below the level of every handler


class BoundedRecords:
    """A factory of log records, `logging.setLogRecordFactory`'s, that mutes what repeats."""

    def __init__(self, make: Callable[..., logging.LogRecord], clock: Callable[[], float] = time.monotonic) -> None:
        self._make, self._clock = make, clock
        self._since_s = clock()
        self._counts: dict[tuple[str, int, str], int] = {}
        self._before: dict[tuple[str, int, str], int] = {}  # those that were left out in the minute before

    def __call__(self, *arguments: Any, **options: Any) -> logging.LogRecord:
        """Return a record; one that repeats without its traceback, and past that one that no handler writes."""
        record = self._make(*arguments, **options)
        if self._clock() - self._since_s > MINUTE_S:
            self._before = {kind: count - MOST_LINES for kind, count in self._counts.items() if count > MOST_LINES}
            self._counts, self._since_s = {}, self._clock()
        kind = (record.pathname, record.lineno, str(record.msg).partition("\n")[0][:60])
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if left_out := self._before.pop(kind, 0):
            record.msg = f"{record.msg} ({left_out} more of them were left out)"
        if count > MOST_WHOLE:
            record.exc_info = record.stack_info = None
        if count > MOST_LINES:
            record.levelno = NEVER
        return record
