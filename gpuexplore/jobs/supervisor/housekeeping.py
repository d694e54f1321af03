"""What a supervisor does for the queue now and then: the runs of the dead, of the gone, and the passing of time."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from gpuexplore.store import Instance, Store

LOG = logging.getLogger(__name__)
LOOK_S = 5.0
ORDER_S = 60.0
JUMP_S = 60.0  # by which two clocks differ more than before: one of them was set, or the host slept
KEPT = timedelta(days=30)  # a deleted run, which its owner may want back
SEEN_AGAIN_S = 180.0  # in which every open page says again that its owner is there, once a minute


class Housekeeping:
    """Keeps the queue in order.

    A supervisor counts as dead when its lease had expired at two looks in a row, or when it shared this one's locks:
    then the first look tells, for this one holds them now. One look alone would be deceived by a clock that is set
    forward; so would the absence of an owner, so that nobody counts as gone in the minutes after that.
    """

    def __init__(self, store: Store, instance: Instance, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._instance, self._clock = store, instance, clock
        self._silent: frozenset[str] = frozenset()
        self._look_s = self._order_s = self._absence_counts_s = clock()
        self._ahead_s: float | None = None

    def do_what_is_due(self) -> None:
        """Do what has not been done for too long.

        Raises:
            StoreUnavailable: the database cannot be used now; what was due stays due.
        """
        now_s = self._clock()
        if now_s >= self._look_s:
            self._take_over()
            self._drop_abandoned(now_s)
            self._look_s = now_s + LOOK_S
        if now_s >= self._order_s:
            self._store.order_all()
            self._store.purge_deleted((self._store.clock() - KEPT).isoformat(timespec="microseconds"))
            self._order_s = now_s + ORDER_S

    def _drop_abandoned(self, now_s: float) -> None:
        ahead_s, before_s = self._store.epoch_s() - now_s, self._ahead_s
        self._ahead_s = ahead_s
        if before_s is not None and abs(ahead_s - before_s) > JUMP_S:
            LOG.warning("The clock was set by %+.0f s: no owner counts as gone for a while", ahead_s - before_s)
            self._absence_counts_s = now_s + SEEN_AGAIN_S
        if now_s >= self._absence_counts_s and (dropped := self._store.drop_abandoned()):
            LOG.info("%d runs waited for owners who have gone: they are cancelled", dropped)

    def _take_over(self) -> None:
        silent = self._store.silent_supervisors()
        count = self._store.take_over(self._instance, silent & self._silent)
        self._silent = silent
        if count:
            LOG.warning("%d runs were left by a supervisor that died: they are queued again", count)
