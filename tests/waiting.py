"""Waits for events: they end with the event, and a deadline ends only what never comes, however busy the machine."""

import time

DEADLINE_S = 240.0
LOOK_S = 0.01


def wait_until(condition, within_s=DEADLINE_S, what="it"):
    """Return the seconds until `condition` was true; fail when that takes longer than `within_s`."""
    start_s = time.monotonic()
    while not condition():
        assert time.monotonic() - start_s < within_s, f"{what} did not come to that within {within_s} s"
        time.sleep(LOOK_S)
    return time.monotonic() - start_s
