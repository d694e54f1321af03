"""The process an implementation is measured in, left as it was: what checks and times it, and its settings.

Kernels run in the process of the checks. One that replaces `numpy.linalg.norm`, a clock or a check, or sets another
library's threads, would be believed, or would spoil what is measured beside it. So a group notes how the process is
before anything is built, and looks again after whatever calls an implementation: what differs is put back, and the
implementation that was called is incorrect. Names and settings are compared, not what is behind them: a kernel that
writes over code objects or memory is not found out; see docs/measuring.md.
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
CHECKS_BY_TORCH = "gpuexplore.measure.arrays.device_arrays"  # where torch looks at what is too large for the host
SAME_ALARM_S = 0.1
AT_ONCE_S = 1e-3  # 0 would turn it off
TELLING = 3  # changes that a reason names
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM) if hasattr(signal, "SIGALRM") else (signal.SIGINT,)
Owner = ModuleType | type


class ChangedProcess(IncorrectOutput):
    """The process is not as it was before an implementation was called."""


@dataclass(frozen=True, slots=True, eq=False)
class _Alarm:  # noqa: PLW1641 nothing keeps one in a set
    """The alarm clock; equal to itself a little later, also once it has rung.

    Attributes:
        seen_s: when it was looked at, in seconds of `time.monotonic`.
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
    """What the names of modules and classes stood for.

    What it is made of is bound when it is made: names that are replaced later change nothing here.
    """

    def __init__(self, owners: Iterable[Owner]) -> None:
        self._names = [(owner, dict(vars(owner))) for owner in owners]
        self._now = [vars(owner).values() for owner, _ in self._names]  # as they are whenever they are looked at
        self._keys_now = [vars(owner).keys() for owner, _ in self._names]
        self._hold, self._put_back, self._flatten = _comparison(), _put_back, self._flattened
        self._before, self._keys = self._flatten()

    def _flattened(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        return (
            tuple(value for _, before in self._names for value in before.values()),
            tuple(name for _, before in self._names for name in before),
        )

    def restored(self) -> list[str]:
        """Put back every name that stands for something else now, and return it; names that were added stay."""
        if self._hold(self._now, self._before) and self._hold(self._keys_now, self._keys):
            return []
        changed = []
        for owner, before in self._names:
            changed += [f"{owner.__name__}.{name}" for name in self._put_back(owner, before)]
            for name, value in dict(vars(owner)).items():
                before.setdefault(name, value)  # a library added it
        self._before, self._keys = self._flatten()
        return changed


def _comparison() -> Callable[[Sequence[Collection[Any]], Sequence[Any]], bool]:
    """Return what tells whether collections, one after the other, hold these very objects and no more."""
    every, each, total, size, in_turn, same = all, map, sum, len, chain.from_iterable, is_

    def hold(collections: Sequence[Collection[Any]], before: Sequence[Any]) -> bool:
        return total(each(size, collections)) == size(before) and every(each(same, in_turn(collections), before))

    return hold


def _put_back(owner: Owner, before: Mapping[str, Any]) -> Iterator[str]:
    now = dict(vars(owner))
    for name, value in before.items():
        if name not in now or now[name] is not value:
            with suppress(AttributeError, TypeError):  # what Python itself keeps of a class
                setattr(owner, name, value)
                yield name


class Untouched:
    """How the process is now, to be compared with how it is later.

    Args:
        threads: those that libraries are pinned to when they are built: no change of an implementation's.

    Attributes:
        check: looks at everything; raises `ChangedProcess`, which names what differed, after it was put back.
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
        """Return `section` with a check of what times it at its end."""
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
                yield f"the threads of {name}, {count} in place of {pinned or before}"

    def _restored_flags(self) -> Iterator[str]:
        for name, read, write in torch_flags():
            value = read()
            before = self._flags.setdefault(name, value)  # of a library that was loaded meanwhile: as it came
            if value != before != CONTRADICTED:  # which cannot be written
                write(before)
                yield name


def _called(parts: Sequence[Callable[[], Iterable[str]]]) -> list[str]:
    return [name for part in parts for name in part()]


def _raise_of(restored: Callable[[], list[str]]) -> None:
    """Raise where something was put back.

    Raises:
        ChangedProcess: the reason names what.
    """
    if changed := restored():
        more = f" and {len(changed) - TELLING} more" if len(changed) > TELLING else ""
        raise ChangedProcess(f"it changed the process it runs in: {', '.join(changed[:TELLING])}{more}")


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
    """Yield the modules and classes that checks and clocks are made of, ours by the beginning of their names."""
    for name, module in sys.modules.copy().items():
        if name in MODULES:
            yield module
        elif (name.startswith(prefixes) or _is_ours(name, module)) and isinstance(module, ModuleType):
            yield module
            yield from (held for held in vars(module).values() if isinstance(held, type) and held.__module__ == name)


def _is_ours(name: str, module: Any) -> bool:
    """Return whether this is the worker or the command line, which Python runs by this name."""
    spec = getattr(module, "__spec__", None)
    return name == "__main__" and spec is not None and spec.name.startswith(PACKAGE)


def _settings() -> Iterator[Reading]:
    """Yield what libraries share of the process, and how to read it and put it back; unknown is None."""
    yield "what numpy raises at", np.geterr, lambda kinds: np.seterr(**kinds)
    yield "the floating-point mode", floating_point, reset_floating_point
    yield "the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()
    yield "how threads take turns", sys.getswitchinterval, sys.setswitchinterval
    yield "the working directory", _working_directory, os.chdir
    yield "the environment", _environment, _set_environment
    for name in ("stdout", "stderr"):
        yield f"sys.{name}", partial(getattr, sys, name), partial(setattr, sys, name)
    for number in SIGNALS:
        yield f"the handler of {number.name}", partial(signal.getsignal, number), partial(signal.signal, number)
    if CHECKS_BY_TORCH in sys.modules:
        yield "what intercepts torch's functions", _interceptors, _take_off
        yield "methods of torch.Tensor", _methods, _set_methods
    if hasattr(signal, "getitimer"):
        yield "the alarm clock", _alarm, _set_alarm
    if hasattr(os, "sched_getaffinity"):
        yield "the cores it may use", lambda: os.sched_getaffinity(0), lambda to: os.sched_setaffinity(0, to)


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
    """Return the variables that results tell."""
    return {name: os.environ.get(name) for name in SETTINGS}


def _set_environment(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _interceptors() -> tuple[int, int]:
    """Return how many modes are entered that see calls of torch first."""
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
    """Return the names of what tensors can do, in Python and in C++, when it is first asked for."""
    tensor = sys.modules["torch"].Tensor
    return tuple({**vars(tensor), **vars(tensor.__base__)})


def _methods() -> Mapping[str, Any]:
    """Return what Python defines of them; None where C++ does."""
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
