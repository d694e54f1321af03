"""What this web server counts of itself."""

from threading import Lock

_LOCK = Lock()
_errors = 0


def count_error() -> None:
    """Note that a page met an error that nobody expected."""
    global _errors  # noqa: PLW0603 - a counter of the process
    with _LOCK:
        _errors += 1


def errors() -> int:
    """Return how many of those there were since the server started."""
    return _errors
