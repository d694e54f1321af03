"""Values that all visitors share: slow to make, made once for the process, on the first request.

Not `st.cache_data` and not `st.cache_resource`: any visitor can clear those with a message of the protocol. A key has
everything that the value depends on, a visitor's own choices too, so that no visitor sees what another one chose.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
V = TypeVar("V")
LOOK_S = 0.3  # for so long one look at the database serves all visitors


class Shared(Generic[V]):
    """A bounded memory of values by key: the least recently used are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._values: OrderedDict[Hashable, Future[V]] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of `key`: the first to ask makes it, those who ask meanwhile wait for it.

        Args:
            key: everything the value depends on.
            make: must not draw, for drawing can be stopped; an error is that of all who wait, and not kept.
        """
        with self._lock:
            found = self._values.get(key)
            is_first = found is None
            found = self._values.setdefault(key, found or Future())
            self._values.move_to_end(key)
            if len(self._values) > self._most:
                self._values.popitem(last=False)
        if is_first:
            self._make(key, found, make)
        return found.result()

    def known(self, key: Hashable) -> V | None:
        """Return the value of `key` where it was made before."""
        with self._lock:
            found = self._values.get(key)
        return found.result() if found and found.done() and not found.exception() else None

    def forget(self) -> None:
        """Forget every value: one of those it came from has changed."""
        with self._lock:
            self._values.clear()

    def _make(self, key: Hashable, found: Future[V], make: Callable[[], V]) -> None:
        try:
            found.set_result(make())
        except BaseException as error:
            with self._lock:
                self._values.pop(key, None)
            found.set_exception(error)
            raise


class _SharedFunction(Generic[P, V]):
    """A function whose values all visitors share, by its arguments."""

    def __init__(self, make: Callable[P, V], most: int, looks: int | None) -> None:
        self._make = make
        self._looks = looks
        self._values: Shared[V] = Shared(most)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> V:
        """Return the value for the arguments, all of which are hashable."""
        now = None if self._looks is None else moment(self._looks)
        return self._values.get((arguments, *named.items(), now), partial(self._make, *arguments, **named))

    def forget(self) -> None:
        """Forget every value: one of those it came from has changed."""
        self._values.forget()


def shared_values(most: int, *, looks: int | None = None) -> Callable[[Callable[P, V]], _SharedFunction[P, V]]:
    """Return a decorator: the values of a function are shared by all visitors.

    Args:
        most: values that are kept.
        looks: as of `moment`, for what may change; None where arguments decide the value.
    """
    return lambda make: _SharedFunction(make, most, looks)


def moment(looks: int = 1) -> int:
    """Return a number that changes every `looks` times LOOK_S: part of the key of what may have changed meanwhile."""
    return int(time.monotonic() / (looks * LOOK_S))
