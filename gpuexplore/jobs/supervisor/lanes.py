"""Runs that are measured at the same time, each in a thread of its own on devices that no other one uses."""

import threading
from collections.abc import Callable, Iterable
from typing import Self


class Lanes:
    """Knows which devices are in use; leaving the context waits until none is. Used by one thread, but for `free`."""

    def __init__(self) -> None:
        self._in_use: dict[threading.Thread, frozenset[str]] = {}

    def start(self, devices: frozenset[str], measure: Callable[[], None]) -> None:
        """Call `measure` in a new thread; `devices` are in use until it returns."""
        lane = threading.Thread(target=measure, name="lane")
        lane.start()
        running = {thread: devices for thread, devices in self._in_use.items() if thread.is_alive()}
        self._in_use = {**running, lane: devices}

    def free(self, devices: Iterable[str]) -> frozenset[str]:
        """Return those of `devices` that nobody uses now."""
        return frozenset(devices).difference(*(used for lane, used in self._in_use.items() if lane.is_alive()))

    def are_free(self) -> bool:
        """Return whether no device is in use."""
        return not any(lane.is_alive() for lane in self._in_use)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for lane in self._in_use:
            lane.join()
