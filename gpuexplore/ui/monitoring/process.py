"""What this web server counts of itself."""

from threading import Lock

from streamlit.runtime import Runtime
from streamlit.runtime.stats import ACTIVE_SESSIONS_FAMILY, GaugeStat

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


def sessions() -> int | None:
    """Return how many pages are connected; None where no server runs."""
    if not Runtime.exists():
        return None
    found = Runtime.instance().stats_mgr.get_stats([ACTIVE_SESSIONS_FAMILY]).get(ACTIVE_SESSIONS_FAMILY, ())
    return sum(stat.value for stat in found if isinstance(stat, GaugeStat))
