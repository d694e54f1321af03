"""What was done here alike before: looked up once for all visitors."""

from datetime import UTC, datetime, timedelta

from gpuexplore.activity import Activity, ActivityRun
from gpuexplore.ui.session import store
from gpuexplore.ui.shared import Shared, moment

LOOKS = 3
NEWEST: Shared[ActivityRun | None] = Shared(500)


def newest_done(activity: Activity, within: timedelta) -> ActivityRun | None:
    """Return the newest activity that was done as `activity` asks for it, everybody's; None where there is none.

    Args:
        within: how long ago it may have ended.
    """
    since_utc = (datetime.now(UTC) - within).isoformat(timespec="microseconds")
    return NEWEST.get((activity, within, moment(LOOKS)), lambda: store().newest_activity(activity, since_utc))
