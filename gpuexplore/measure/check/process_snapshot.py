"""Snapshots of the global state of a process: changes by an implementation are detected and reverted.

Kernels run in the process of the checks. One that replaces `numpy.linalg.norm`, a clock or a check, or sets another
library's threads, would pass, or would disturb other implementations of its group. So a group takes a snapshot of the
names and settings before anything is built, and compares after every call of an implementation: what differs is
restored, and the implementation that was called is incorrect. Names and settings are compared, not what is behind them:
a kernel that writes over code objects or memory is not detected; see docs/measuring.md.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from math import inf, isclose
from operator import is_
from types import ModuleType
from typing import Any

import numpy as np
import numpy.random

from gpuexplore.measure.candidates.failure import IncorrectOutput
from gpuexplore.measure.check.shared_state import (
    CONTRADICTED,
    Reading,
    floating_point,
    reset_floating_point,
    thread_counts,
    torch_flags,
)
from gpuexplore.measure.conditions.environment import SETTINGS

MODULES = ("builtins", "math", "time", "numpy", "numpy.linalg", "numpy.random", "torch", "torch.nn.functional")
OURS = tuple(f"gpuexplore.{name}" for name in ("accuracy", "backends", "dtypes", "measure", "model", "statistics"))
PACKAGE = "gpuexplore"
CHECKS_BY_TORCH = "gpuexplore.measure.arrays.device_arrays"  # which checks what is too large for the host
SAME_ALARM_S = 0.1
AT_ONCE_S = 1e-3  # 0 would disarm it
MAX_REPORTED_CHANGES = 3
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM) if hasattr(signal, "SIGALRM") else (signal.SIGINT,)
Owner = ModuleType | type


class ChangedProcess(IncorrectOutput):
    """An implementation changed global state of the process."""


@dataclass(frozen=True, slots=True, eq=False)
class _Alarm:  # noqa: PLW1641 nothing keeps one in a set
    """The alarm clock; equal to itself some time later, also once it has rung.

    Attributes:
        seen_s: when it was read, in seconds of `time.monotonic`.
        rings_s: when it rings; never, where none is set.
        interval_s: how often from then on; 0: once.
    """

    seen_s: float
    rings_s: float
    interval_s: float

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Alarm) or self.interval_s != other.interval_s:
            return False
        before, now = sorted((self, other), key=lambda alarm: alarm.seen_s)
        has_rung = before.rings_s <= now.seen_s and now.rings_s == inf
        return (
            bool(self.interval_s) or has_rung or isclose(before.rings_s, now.rings_s, rel_tol=0.0, abs_tol=SAME_ALARM_S)
        )


class _Names:
    """The values of the names of modules and classes.

    Its own functions are bound when it is created: names that are replaced later change nothing here.
    """

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._names = [(owner, dict(vars(owner))) for owner in owners]
        self._now = [vars(owner).values() for owner, _ in self._names]  # live views
        self._keys_now = [vars(owner).keys() for owner, _ in self._names]
        self._are_same, self._put_back, self._flatten = _comparison(), _put_back, self._flattened
        self._before, self._keys = self._flatten()

    def _flattened(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return (
            tuple(value for _, before in self._names for value in before.values()),
            tuple(name for _, before in self._names for name in before),
        )

    def restored(self) -> list[str]:
        """Restore every name whose value has changed, and return it; names that were added stay."""
        if self._are_same(self._now, self._before) and self._are_same(self._keys_now, self._keys):
            return []
        changed = []
        for owner, before in self._names:
            changed += [f"{owner.__name__}.{name}" for name in self._put_back(owner, before)]
            for name, value in dict(vars(owner)).items():
                before.setdefault(name, value)  # a library added it
        self._before, self._keys = self._flatten()
        return changed


def _comparison() -> Callable[[Sequence[Collection[Any]], Sequence[Any]], bool]:
    """Return a function that compares collections, one after the other, by identity; builtins are bound before."""
    every, each, total, size, chained, same = all, map, sum, len, chain.from_iterable, is_

    def are_same(collections: Sequence[Collection[Any]], before: Sequence[Any]) -> bool:
        return total(each(size, collections)) == size(before) and every(each(same, chained(collections), before))

    return are_same


def _put_back(owner: Owner, before: Mapping[str, Any]) -> Iterator[str]:
    now = dict(vars(owner))
    for name, value in before.items():
        if name not in now or now[name] is not value:
            with suppress(AttributeError, TypeError):  # attributes of a class that Python protects
                setattr(owner, name, value)
                yield name


class ProcessSnapshot:
    """The global state of a process: detects and reverts changes.

    Args:
        threads: the count that libraries are pinned to when they are built: no change by an implementation.

    Attributes:
        restored: reverts changes; returns their names.
        check: reverts changes, and raises `ChangedProcess` with their names.
    """

    def __init__(self, threads: int | None) -> None:
        self._threads = threads
        self._settings = [(name, read, write, read()) for name, read, write in _settings()]
        self._counts: dict[str, int] = {name: read() for name, read, _ in thread_counts()}
        self._flags: dict[str, Any] = {name: read() for name, read, _ in torch_flags()}
        settings = (self._restored_settings, self._restored_counts, self._restored_flags)
        all_of_ours = _Names(_owners(PACKAGE)).restored
        timing = _Names(_owners(OURS)).restored
        # bound now, so that replacing a method changes nothing here
        self.restored: Callable[[], list[str]] = partial(_called, (all_of_ours, *settings))
        self.check: Callable[[], None] = partial(_raise_of, self.restored)
        self._check_briefly: Callable[[], None] = partial(_raise_of, partial(_called, (timing, *settings)))

    def guarding(
        self, section: Callable[[], AbstractContextManager[None]]
    ) -> Callable[[], AbstractContextManager[None]]:
        """Return `section` with a check of the timing code at its end."""
        return partial(_guarded, section, self._check_briefly, self.restored)

    def _restored_settings(self) -> Iterator[str]:
        for name, read, write, before in self._settings:
            if before is not None and read() != before:
                with suppress(OSError, ValueError):  # signals belong to the main thread
                    write(before)
                yield name

    def _restored_counts(self) -> Iterator[str]:
        for name, read, write in thread_counts():
            count, pinned = read(), self._threads
            before = self._counts.setdefault(name, count)
            if count not in {before, pinned}:
                write(pinned or before)
                yield f"the threads of {name}, {count} instead of {pinned or before}"

    def _restored_flags(self) -> Iterator[str]:
        for name, read, write in torch_flags():
            value = read()
            before = self._flags.setdefault(name, value)  # of a library that was loaded meanwhile: its first value
            if value != before != CONTRADICTED:  # which cannot be written
                write(before)
                yield name


def _called(parts: Sequence[Callable[[], Iterable[str]]]) -> list[str]:
    return [name for part in parts for name in part()]


def _raise_of(restored: Callable[[], list[str]]) -> None:
    """Check that nothing had to be restored.

    Raises:
        ChangedProcess: something had; the reason names it.
    """
    if changed := restored():
        more = f" and {len(changed) - MAX_REPORTED_CHANGES} more" if len(changed) > MAX_REPORTED_CHANGES else ""
        raise ChangedProcess(f"it changed the state of its process: {', '.join(changed[:MAX_REPORTED_CHANGES])}{more}")


@contextmanager
def _guarded(
    section: Callable[[], AbstractContextManager[None]], check: Callable[[], None], restored: Callable[[], object]
) -> Iterator[None]:
    try:
        with section():
            yield
    except Exception:
        restored()
        raise
    check()


def _owners(prefixes: str | tuple[str, ...]) -> Iterator[Owner]:
    """Yield the modules and classes of checks and clocks, ours by the prefixes of their names."""
    for name, module in sys.modules.copy().items():
        if name in MODULES:
            yield module
        elif (name.startswith(prefixes) or _is_ours(name, module)) and isinstance(module, ModuleType):
            yield module
            yield from (
                value for value in vars(module).values() if isinstance(value, type) and value.__module__ == name
            )


def _is_ours(name: str, module: Any) -> bool:
    """Return whether this is the worker or the command line, which Python runs as `__main__`."""
    spec = getattr(module, "__spec__", None)
    return name == "__main__" and spec is not None and spec.name.startswith(PACKAGE)


def _settings() -> Iterator[Reading]:
    """Yield settings that libraries share, with functions that read and restore them; unknown is None."""
    yield "numpy's error handling", np.geterr, lambda kinds: np.seterr(**kinds)
    yield "the floating-point mode", floating_point, reset_floating_point
    yield "the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()
    yield "the thread switch interval", sys.getswitchinterval, sys.setswitchinterval
    yield "the working directory", _working_directory, os.chdir
    yield "the environment", _environment, _set_environment
    for name in ("stdout", "stderr"):
        yield f"sys.{name}", partial(getattr, sys, name), partial(setattr, sys, name)
    for number in SIGNALS:
        yield f"the handler of {number.name}", partial(signal.getsignal, number), partial(signal.signal, number)
    if CHECKS_BY_TORCH in sys.modules:
        yield "the overrides of torch's functions", _interceptors, _take_off
        yield "the methods of torch.Tensor", _methods, _set_methods
    if hasattr(signal, "getitimer"):
        yield "the alarm timer", _alarm, _set_alarm
    if hasattr(os, "sched_getaffinity"):
        yield "the CPU affinity", lambda: os.sched_getaffinity(0), lambda to: os.sched_setaffinity(0, to)


def _alarm() -> _Alarm:
    """Return the alarm clock as it is: a test runner may have set it."""
    now_s, (left_s, interval_s) = time.monotonic(), signal.getitimer(signal.ITIMER_REAL)
    return _Alarm(now_s, now_s + left_s if left_s else inf, interval_s)


def _set_alarm(wanted: _Alarm) -> None:
    left_s = wanted.rings_s - time.monotonic()
    if wanted.interval_s:
        left_s %= wanted.interval_s
    signal.setitimer(signal.ITIMER_REAL, 0 if wanted.rings_s == inf else max(left_s, AT_ONCE_S), wanted.interval_s)


def _environment() -> Mapping[str, str | None]:
    """Return the environment variables that results record."""
    return {name: os.environ.get(name) for name in SETTINGS}


def _set_environment(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _interceptors() -> tuple[int, int]:
    """Return how many modes that intercept calls of torch are entered."""
    inside = sys.modules["torch"]._C
    return inside._len_torch_function_stack(), inside._len_torch_dispatch_stack()


def _take_off(wanted: tuple[int, int]) -> None:
    inside = sys.modules["torch"]._C
    while inside._len_torch_function_stack() > wanted[0]:
        inside._pop_torch_function_stack()
    while inside._len_torch_dispatch_stack() > wanted[1]:
        inside._pop_torch_dispatch_stack(None)


@cache
def _names_of_methods() -> tuple[str, ...]:
    """Return the names of the methods of tensors, in Python and in C++, as of the first call."""
    tensor = sys.modules["torch"].Tensor
    return tuple({**vars(tensor), **vars(tensor.__base__)})


def _methods() -> Mapping[str, Any]:
    """Return the methods that Python defines; None where C++ does."""
    return {name: vars(sys.modules["torch"].Tensor).get(name) for name in _names_of_methods()}


def _set_methods(wanted: Mapping[str, Any]) -> None:
    tensor = sys.modules["torch"].Tensor
    for name, now in _methods().items():
        if wanted[name] is None and now is not None:
            delattr(tensor, name)
        elif wanted[name] is not now:
            setattr(tensor, name, wanted[name])


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 twice as fast
    except OSError:  # it was deleted
        return None
