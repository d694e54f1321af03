"""Snapshots of the global state of a process: changes by an implementation are detected and reverted.

Kernels run in the process of the checks. One that replaces `numpy.linalg.norm`, a clock or a check, or sets another
library's threads, would pass, or would disturb other implementations of its group. So a group takes a snapshot of the
names and settings before anything is built, and compares after every call of an implementation: what differs is
restored, and the implementation that was called is incorrect. Names and settings are compared, not what is behind them:
a kernel that writes over code objects or memory is not detected; see docs/measuring.md.
"""

import ctypes
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
from struct import pack
from types import ModuleType
from typing import Any

import numpy as np
import numpy.random

from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.core.errors import IncorrectOutput
from gpuexplore.measure.conditions.environment import SETTINGS

PACKAGE = "gpuexplore"
_CONTRADICTED = "contradicted"
_Owner = ModuleType | type
_Reading = tuple[str, Callable[[], Any], Callable[[Any], object]]  # a name, what reads it and what sets it


class ChangedProcess(IncorrectOutput):
    """An implementation changed global state of the process."""


@dataclass(frozen=True, slots=True, eq=False)
class _Alarm:  # noqa: PLW1641 nothing keeps one in a set
    """The alarm timer; snapshots of it compare equal as time passes, also after it has fired.

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
        return bool(self.interval_s) or has_rung or isclose(before.rings_s, now.rings_s, rel_tol=0.0, abs_tol=0.1)


class _Names:
    """The values of the names of modules and classes.

    Its own functions are bound when it is created: names that are replaced later change nothing here.
    """

    def __init__(self, owners: Iterable[_Owner]) -> None:
        self._names = [(owner, dict(vars(owner))) for owner in owners]
        self._now = [vars(owner).values() for owner, _ in self._names]  # live views
        self._keys_now = [vars(owner).keys() for owner, _ in self._names]
        self._are_same = _comparison()
        self._put_back = _put_back
        self._flatten = self._flattened
        self._before, self._keys = self._flatten()

    def _flattened(self) -> tuple[tuple[Any, ...], tuple[str, ...]]:
        before = [before for _, before in self._names]
        return tuple(chain.from_iterable(map(dict.values, before))), tuple(chain.from_iterable(before))

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


def _put_back(owner: _Owner, before: Mapping[str, Any]) -> Iterator[str]:
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
        is_tf32_allowed: to torch, also where it is loaded later: that is no change by an implementation either.

    Attributes:
        restored: reverts changes; returns their names.
        check: reverts changes, and raises `ChangedProcess` with their names.
    """

    def __init__(self, threads: int | None, *, is_tf32_allowed: bool = False) -> None:
        self._threads = threads
        self._is_tf32_allowed = is_tf32_allowed
        self._settings = [(name, read, write, read()) for name, read, write in _settings()]
        self._counts: dict[str, int] = {name: read() for name, read, _ in _thread_counts()}
        self._flags: dict[str, Any] = {name: read() for name, read, _ in _torch_flags()}
        settings = (self._restored_settings, self._restored_counts, self._restored_flags)
        all_of_ours = _Names(_owners(PACKAGE)).restored
        timing = _Names(_owners(tuple(f"{PACKAGE}.{folder}" for folder in ("backends", "core", "measure")))).restored
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
        for name, read, write in _thread_counts():
            count = read()
            before = self._counts.setdefault(name, count)
            if count not in {before, self._threads}:
                wanted = self._threads or before
                write(wanted)
                yield f"the threads of {name}, {count} instead of {wanted}"

    def _restored_flags(self) -> Iterator[str]:
        if not self._flags:
            allow_tf32(self._is_tf32_allowed)  # a library that was loaded since then may have loaded torch
        for name, read, write in _torch_flags():
            value = read()
            before = self._flags.setdefault(name, value)  # the first value of a library that was loaded meanwhile
            if value != before != _CONTRADICTED:  # which cannot be written
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
        more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
        raise ChangedProcess(f"it changed the state of its process: {', '.join(changed[:3])}{more}")


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


def _owners(prefixes: str | tuple[str, ...]) -> Iterator[_Owner]:
    """Yield the modules and classes of checks and clocks, ours by the prefixes of their names."""
    others = {"builtins", "math", "time", "numpy", "numpy.linalg", "numpy.random", "torch", "torch.nn.functional"}
    for name, module in sys.modules.copy().items():
        if name in others:
            yield module
        elif (name.startswith(prefixes) or _is_ours(name, module)) and isinstance(module, ModuleType):
            yield module
            yield from (
                value for value in vars(module).values() if isinstance(value, type) and value.__module__ == name
            )


def _is_ours(name: str, module: Any) -> bool:
    """Return whether this is the worker or the command line, which Python runs as `__main__`."""
    spec = getattr(module, "__spec__", None) if name == "__main__" else None
    return spec is not None and spec.name.startswith(PACKAGE)


def _settings() -> Iterator[_Reading]:
    """Yield settings that libraries share, with functions that read and restore them; unknown is None."""
    yield "numpy's error handling", np.geterr, lambda kinds: np.seterr(**kinds)
    yield "the floating-point mode", _floating_point, _reset_floating_point
    yield "the garbage collector", gc.isenabled, lambda on: gc.enable() if on else gc.disable()
    yield "the thread switch interval", sys.getswitchinterval, sys.setswitchinterval
    yield "the working directory", _working_directory, os.chdir
    yield "the environment", _environment, _set_environment
    for name in ("stdout", "stderr"):
        yield f"sys.{name}", partial(getattr, sys, name), partial(setattr, sys, name)
    for signal_name in ("SIGINT", "SIGTERM", "SIGALRM"):
        if number := getattr(signal, signal_name, None):
            yield f"the handler of {signal_name}", partial(signal.getsignal, number), partial(signal.signal, number)
    if "gpuexplore.measure.arrays.device_arrays" in sys.modules:  # which checks what is too large for the host
        yield "the overrides of torch's functions", _interceptors, _take_off
        yield "the methods of torch.Tensor", _methods, _set_methods
    if hasattr(signal, "getitimer"):
        yield "the alarm timer", _alarm, _set_alarm
    if hasattr(os, "sched_getaffinity"):
        yield "the CPU affinity", lambda: os.sched_getaffinity(0), lambda to: os.sched_setaffinity(0, to)


def _alarm() -> _Alarm:
    """Return the alarm clock as it is: a test runner may have set it."""
    now_s = time.monotonic()
    left_s, interval_s = signal.getitimer(signal.ITIMER_REAL)
    return _Alarm(now_s, now_s + left_s if left_s else inf, interval_s)


def _set_alarm(wanted: _Alarm) -> None:
    left_s = wanted.rings_s - time.monotonic()
    if wanted.interval_s:
        left_s %= wanted.interval_s
    at_once_s = 1e-3  # 0 would disarm it
    signal.setitimer(signal.ITIMER_REAL, 0 if wanted.rings_s == inf else max(left_s, at_once_s), wanted.interval_s)


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


# State that libraries of a process share and results depend on: threads, flags, rounding. Each is read in microseconds,
# because it is read after every round.


def _thread_counts() -> Iterator[_Reading]:
    """Yield the name of each loaded library with threads, and how to read and set their number."""
    if (blas := numpy_backend.blas_threads()) is not None:
        yield "NumPy's BLAS", blas, numpy_backend.set_threads
    if torch := sys.modules.get("torch"):
        yield "torch", torch.get_num_threads, torch.set_num_threads
    pool = sys.modules.get("numba.np.ufunc.parallel")
    if pool and getattr(pool, "_is_initialized", False):  # reading it would start its threads
        yield "numba", pool.get_num_threads, pool.set_num_threads


def _torch_flags() -> Iterator[_Reading]:
    """Yield the flags of torch that decide how it computes; none where it is not loaded, or has no such flag."""
    flags = (
        ("torch's use of oneDNN", "_C._get_mkldnn_enabled", "_C._set_mkldnn_enabled"),
        ("torch's precision of fp32 products", "get_float32_matmul_precision", "set_float32_matmul_precision"),
        ("torch's default dtype", "get_default_dtype", "set_default_dtype"),
        ("torch's gradient recording", "is_grad_enabled", "_C._set_grad_enabled"),
        (
            "torch's use of deterministic algorithms",
            "are_deterministic_algorithms_enabled",
            "use_deterministic_algorithms",
        ),
        ("torch's use of cuDNN", "_C._get_cudnn_enabled", "_C._set_cudnn_enabled"),
        ("torch's use of TF32 in products", "_C._get_cublas_allow_tf32", "_C._set_cublas_allow_tf32"),
    )
    if torch := sys.modules.get("torch"):
        for name, read, write in flags:
            reader = _attribute(torch, read)
            writer = _attribute(torch, write)
            if reader and writer:
                yield name, partial(_read, reader), writer
        yield from _precisions(torch)


def _precisions(torch: Any) -> Iterator[_Reading]:
    """Yield the settings of TF32 in torch's newer interface, from 2.9 on, where it exists."""
    read = _attribute(torch, "_C._get_fp32_precision_getter")
    write = _attribute(torch, "_C._set_fp32_precision_setter")
    if read and write:
        for library in ("generic", "cuda"):
            name = f"torch's precision in fp32, {library}"
            yield name, partial(_read, partial(read, library, "all")), partial(write, library, "all")
        yield "cuDNN's use of TF32", partial(_read, partial(read, "cuda", "conv")), _allow_cudnn


def _allow_cudnn(precision: str) -> None:
    """Set it by the older interface, which refuses to be read where the newer one contradicts it."""
    sys.modules["torch"].backends.cudnn.allow_tf32 = precision == "tf32"


def allow_tf32(is_allowed: bool) -> None:
    """Have torch's products and cuDNN use TF32 in fp32, or not, where torch is loaded: tf32 needs it, fp32 must not."""
    if torch := sys.modules.get("torch"):
        torch.backends.cudnn.allow_tf32 = is_allowed
        torch.set_float32_matmul_precision("high" if is_allowed else "highest")


def _floating_point() -> bytes:
    """Return the results of rounding in this thread: a subnormal number, and half of a last digit in each direction.

    As bytes: to a thread without subnormal numbers, one is equal to zero.
    """
    one = float("1")  # by a call, so that the interpreter computes nothing beforehand
    tiny = 5e-324  # is zero where subnormal numbers are
    half = 2.0**-53  # added to 1 it is rounded away to nearest, and up where everything is rounded up
    return pack("4d", tiny * one, one + half, -one - half, one - half / 2)


def _reset_floating_point(_: object = None) -> None:
    """Have this thread round to nearest, and keep subnormal numbers: the default environment."""
    if reset := getattr(ctypes.CDLL(None), "fesetenv", None):
        reset(ctypes.c_void_p(-1))  # FE_DFL_ENV of glibc


def _read(reader: Callable[[], Any]) -> Any:
    """Return a flag; _CONTRADICTED where TF32 was set by both of its interfaces and torch refuses to read it."""
    try:
        return reader()
    except RuntimeError:
        return _CONTRADICTED


def _attribute(owner: Any, path: str) -> Any:
    for name in path.split("."):
        owner = getattr(owner, name, None)
    return owner
