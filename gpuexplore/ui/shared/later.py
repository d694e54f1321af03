"""Slow values, made after the page was drawn, which is drawn again once they are there.

One thing is made after the other in a thread of its own, for pages that are still open.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, ParamSpec, TypeVar

import streamlit as st

P = ParamSpec("P")
V = TypeVar("V")
PATIENCE_S = 0.05  # what is made by then needs no second drawing
ABANDONED_S = 90.0  # no page asks any more: hidden tabs ask once a minute
KEPT_S = 60.0  # what was made or could not be made; a later request makes it again
PENDING = "later.pending"  # the session's key of what this drawing of the page waits for


@dataclass(slots=True)
class _Wanted(Generic[V]):
    """A requested value, last requested at `asked_s`; made at `made_s`."""

    make: Callable[[], V]
    asked_s: float
    found: "Future[V]" = field(default_factory=Future)
    made_s: float = float("inf")


class Later(Generic[V]):
    """Values that are made one after the other behind the pages; safe to ask from several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wanted: OrderedDict[Hashable, _Wanted[V]] = OrderedDict()
        self._queue: SimpleQueue[Hashable] = SimpleQueue()
        self._maker: Thread | None = None

    def get(self, key: Hashable, make: Callable[[], V]) -> V | None:
        """Return the value of `key`, or None where it is on its way: `redraw_when_made` waits for it then.

        Args:
            key: everything the value depends on.
            make: must not draw; its error is that of all who ask within KEPT_S.
        """
        wanted = self._want(key, make)
        try:
            return wanted.found.result(PATIENCE_S)
        except TimeoutError:
            if wanted.found.done():
                raise
            st.session_state.setdefault(PENDING, []).append((self, key))
            return None

    def is_pending(self, key: Hashable) -> bool:
        """Return whether `key` is still to be made, and note that a page waits for it."""
        with self._lock:
            wanted = self._wanted.get(key)
            if wanted is None or wanted.found.done():
                return False
            wanted.asked_s = self._clock()
            return True

    def _want(self, key: Hashable, make: Callable[[], V]) -> _Wanted[V]:
        with self._lock:
            now_s = self._clock()
            for old in [name for name, each in self._wanted.items() if now_s - each.made_s > KEPT_S]:
                del self._wanted[old]
            if key not in self._wanted:
                self._wanted[key] = _Wanted(make, now_s)
                self._queue.put(key)
            if self._maker is None:
                self._maker = Thread(target=self._make_all, daemon=True, name="made later")
                self._maker.start()
            self._wanted[key].asked_s = now_s
            return self._wanted[key]

    def _make_all(self) -> None:
        while True:
            key = self._queue.get()
            with self._lock:
                wanted = self._wanted[key]
                if self._clock() - wanted.asked_s > ABANDONED_S:
                    del self._wanted[key]
                    continue
            try:
                wanted.found.set_result(wanted.make())
            except Exception as error:
                wanted.found.set_exception(error)
            wanted.made_s = self._clock()


def redrawn(draw: Callable[P, object], every_s: float | None) -> Callable[P, None]:
    """Return what draws a part of a page, in a container of its own, and again every few seconds.

    A redraw that comes before its page was sent takes the part out of what is sent of the page. Without the container
    the browser would then move what follows up into its place, and the redraw would overwrite it.
    """

    def drawn(*arguments: P.args, **options: P.kwargs) -> None:
        with st.container():
            st.fragment(draw, run_every=every_s)(*arguments, **options)

    return drawn


def redraw_when_made() -> None:
    """Show the page again once something is made that this drawing of it could not show yet."""
    pending: Sequence[tuple[Later[Any], Hashable]] = st.session_state.pop(PENDING, ())
    if pending:
        redrawn(_look, 1.0)(tuple(pending))


def _look(pending: Sequence[tuple[Later[Any], Hashable]]) -> None:
    still = [later.is_pending(key) for later, key in pending]  # each is to know that a page waits
    if not all(still):
        st.rerun()
