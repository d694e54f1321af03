"""Whether an implementation left the process it is measured in as it was: what checks and times it, and its settings.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import is_
from types import ModuleType
from typing import Any

import numpy as np

from gpuexplore.measure.environment import SETTINGS
from gpuexplore.measure.failure import IncorrectOutput

MODULES = ("builtins", "math", "time", "numpy", "numpy.linalg")
OURS = tuple(f"gpuexplore.{name}" for name in ("accuracy", "backends", "dtypes", "measure", "model", "statistics"))
TELLING = 3  # changes that a reason names
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM) if hasattr(signal, "SIGALRM") else (signal.SIGINT,)
_all, _map, _sum, _len, _missing = all, map, sum, len, object()  # ours, whatever becomes of the names
_in_turn = chain.from_iterable


@dataclass(frozen=True, slots=True)
class _Setting:
    """Something of the process that libraries share, with how to read it and put it back; unknown is None."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


class _Names:
    """What the names of a module or class stood for."""

    def __init__(self, owner: ModuleType | type) -> None:
        self._owner = owner
        self._keys, self.before = tuple(vars(owner)), tuple(vars(owner).values())
        self.now = vars(owner).values()  # as it is whenever it is looked at

    def restored(self) -> Iterator[str]:
        """Put back every name that stands for something else now, and yield it; names that were added stay."""
        now = vars(self._owner)
        for key, value in zip(self._keys, self.before, strict=True):
            if now.get(key, _missing) is not value:
                with suppress(AttributeError, TypeError):  # what Python itself keeps of a class
                    setattr(self._owner, key, value)
                    yield f"{self._owner.__name__}.{key}"


class Untouched:
    """How the process is now, to be compared with how it is later.

    Args:
        threads: those that libraries are pinned to when they are built: no change of an implementation's.
    """

    def __init__(self, threads: int | None) -> None:
        self._threads = threads
        self._names = [_Names(owner) for owner in _owners()]
        self._before = tuple(_in_turn(names.before for names in self._names))
        self._now = [names.now for names in self._names]
        self._settings = [(setting, setting.read()) for setting in _settings()]
        self._counts: dict[str, int] = {name: read() for name, (read, _) in _thread_counts().items()}

    def check(self) -> None:
        """Put back what differs.

        Raises:
            IncorrectOutput: something did; the reason names it.
        """
        if changed := self.restored():
            more = f" and {len(changed) - TELLING} more" if len(changed) > TELLING else ""
            raise IncorrectOutput(f"it changed the process it runs in: {', '.join(changed[:TELLING])}{more}")

    def restored(self) -> list[str]:
        """Put back what differs, and return what that was."""
        return [*self._restored_names(), *self._restored_settings(), *self._restored_counts()]

    def guarding(
        self, section: Callable[[], AbstractContextManager[None]]
    ) -> Callable[[], AbstractContextManager[None]]:
        """Return `section` with a check at its end."""
        return partial(self._guarded, section)

    @contextmanager
    def _guarded(self, section: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        try:
            with section():
                yield
        except Exception:
            self.restored()
            raise
        self.check()

    def _restored_names(self) -> Iterator[str]:
        counted = _sum(_map(_len, self._now))
        if counted != _len(self._before) or not _all(_map(is_, _in_turn(self._now), self._before)):
            for names in self._names:
                yield from names.restored()

    def _restored_settings(self) -> Iterator[str]:
        for setting, before in self._settings:
            if before is not None and setting.read() != before:
                with suppress(OSError, ValueError):  # signals belong to the main thread
                    setting.write(before)
                yield setting.name

    def _restored_counts(self) -> Iterator[str]:
        for name, (read, write) in _thread_counts().items():
            count, pinned = read(), self._threads
            before = self._counts.setdefault(name, count)
            if count not in {before, pinned}:
                write(pinned or before)
                yield f"the threads of {name}, {count} in place of {pinned or before}"


def _owners() -> Iterator[ModuleType | type]:
    """Yield the modules and classes that checks and clocks are made of."""
    for name, module in tuple(sys.modules.items()):
        if name in MODULES:
            yield module
        elif name.startswith(OURS) and isinstance(module, ModuleType):
            yield module
            yield from (held for held in vars(module).values() if isinstance(held, type) and held.__module__ == name)


def _settings() -> Iterator[_Setting]:
    yield _Setting("what numpy raises at", np.geterr, lambda kinds: np.seterr(**kinds))
    yield _Setting("the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable())
    yield _Setting("how threads take turns", sys.getswitchinterval, sys.setswitchinterval)
    yield _Setting("the working directory", _working_directory, os.chdir)
    yield _Setting("the environment", _environment, _set_environment)
    for name in ("stdout", "stderr"):
        yield _Setting(f"sys.{name}", partial(getattr, sys, name), partial(setattr, sys, name))
    for number in SIGNALS:
        yield _Setting(
            f"the handler of {number.name}", partial(signal.getsignal, number), partial(signal.signal, number)
        )
    if hasattr(signal, "getitimer"):
        timer = signal.ITIMER_REAL
        yield _Setting("the alarm clock", lambda: signal.getitimer(timer), lambda _: signal.setitimer(timer, 0))
    if hasattr(os, "sched_getaffinity"):
        yield _Setting("the cores it may use", lambda: os.sched_getaffinity(0), lambda to: os.sched_setaffinity(0, to))


def _environment() -> Mapping[str, str | None]:
    """Return the variables that results tell."""
    return {name: os.environ.get(name) for name in SETTINGS}


def _set_environment(wanted: Mapping[str, str | None]) -> None:
    for name, value in wanted.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def _working_directory() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 twice as fast
    except OSError:  # it was deleted
        return None


def _thread_counts() -> dict[str, tuple[Callable[[], int], Callable[[int], object]]]:
    """Return how to read and set the threads of the libraries that are loaded."""
    found: dict[str, tuple[Callable[[], int], Callable[[int], object]]] = {}
    if torch := sys.modules.get("torch"):
        found["torch"] = torch.get_num_threads, torch.set_num_threads
    pool = sys.modules.get("numba.np.ufunc.parallel")
    if pool and getattr(pool, "_is_initialized", False):  # asking would start its threads
        found["numba"] = pool.get_num_threads, pool.set_num_threads
    return found
