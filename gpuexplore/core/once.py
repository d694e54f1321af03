"""A cache of slow functions: of concurrent callers with the same arguments, one computes and the others wait."""

from collections.abc import Callable, Hashable
from functools import update_wrapper
from threading import RLock
from typing import Any, Generic, TypeVar

Made = TypeVar("Made")


class once(Generic[Made]):  # noqa: N801 - reads like the decorator it is
    """A function with a cache; with `functools.cache`, a hundred first visitors would each compute the value."""

    def __init__(self, make: Callable[..., Made]) -> None:
        self._make = make
        self._lock = RLock()
        self._made: dict[Hashable, Made] = {}
        update_wrapper(self, make)

    def __call__(self, *arguments: Any) -> Made:
        """Return the value for `arguments`, which is made once."""
        try:
            return self._made[arguments]
        except KeyError:
            pass
        with self._lock:
            if arguments not in self._made:
                self._made[arguments] = self._make(*arguments)
            return self._made[arguments]

    def cache_clear(self) -> None:
        """Forget all values."""
        with self._lock:
            self._made.clear()
