"""Plants that raise, end their process, never end, take its memory, or fill the log."""

import ctypes
import os
import resource
import signal
import sys
import time

import numpy as np

LEAK_BYTES = 2**25
LEAST_LEFT_BYTES = 2**28  # what the leaking one may add to its process before the system refuses
LARGE = 2**20
SLEEP_S = 0.02


class OutOfMemoryError(RuntimeError):
    """Named and worded as torch's."""


def raising(inputs, out, dtype):
    """Raise when called."""

    def run():
        raise ValueError("illegal instruction")

    return run


def raising_at_20(inputs, out, dtype):
    """Raise at the twentieth call."""
    calls = []

    def run():
        calls.append(1)
        if len(calls) == 20:
            raise RuntimeError("the twentieth call")
        np.add(*inputs, out=out)

    return run


def unbuildable(inputs, out, dtype):
    """Raise when built."""
    raise RuntimeError("does not compile")


def tiring(inputs, out, dtype, message="tired"):
    """Raise in the middle of the samples: built, right and warm before."""
    calls = []

    def run():
        calls.append(1)
        if np.isnan(out).all() and len(calls) > 3:
            raise RuntimeError(message)
        np.add(*inputs, out=out)

    return run


def straying(inputs, out, dtype):
    """Break the context of a GPU in the middle of the samples, by torch's words."""
    return tiring(inputs, out, dtype, "CUDA error: misaligned address")


def unreadable(inputs, out, dtype):
    """Fail with words that are no text."""

    def run():
        raise ValueError("\x1b[31m\x00half \ud800 of a pair " + "x" * 10**6)

    return run


def speechless(inputs, out, dtype):
    """Fail with an error that fails to say what it is."""

    def run():
        raise _SpeechlessError

    return run


class _SpeechlessError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def interrupting(inputs, out, dtype):
    """Raise what Ctrl-C raises."""

    def run():
        raise KeyboardInterrupt

    return run


def base_exception(inputs, out, dtype):
    """Raise what is no Exception."""

    class Odd(BaseException):
        pass

    def run():
        raise Odd("caught by nobody")

    return run


def stalling(inputs, out, dtype):
    """Stop for good in the middle of the samples: built, right and warm before."""
    calls = []

    def run():
        calls.append(1)
        while np.isnan(out).all() and len(calls) > 3:
            time.sleep(0.01)
        np.add(*inputs, out=out)

    return run


def endless(inputs, out, dtype):
    """Wait for something that never comes."""

    def run():
        while True:
            time.sleep(0.01)

    return run


def endless_build(inputs, out, dtype):
    """Never be built."""
    while True:
        time.sleep(0.01)


def holding(inputs, out, dtype):
    """Hold the interpreter's lock in C for ever."""
    return lambda: ctypes.PyDLL(None).sleep(10_000)


def slow(inputs, out, dtype):
    """Sleep on large arrays."""

    def run():
        time.sleep(SLEEP_S if out.size >= LARGE else 0)
        np.add(*inputs, out=out)

    return run


def sleeping(inputs, out, dtype):
    """Sleep for 5 ms before it computes: a slow kernel, and no wrong one."""

    def run():
        time.sleep(5e-3)
        np.add(*inputs, out=out)

    return run


def crashing(inputs, out, dtype):
    """Touch memory that is not there."""
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)


def segfault(inputs, out, dtype):
    """Read the address zero."""
    return lambda: ctypes.string_at(0)


def terminated(inputs, out, dtype):
    """End its whole group of processes by a signal."""
    return lambda: os.killpg(0, signal.SIGTERM)


def leaving(inputs, out, dtype):
    """End the process as if all were well."""
    return lambda: os._exit(0)


def leaving_at_one_element(inputs, out, dtype):
    """Be right, and end the process when called on a single element."""
    return lambda: np.add(*inputs, out=out) if out.size > 1 else os._exit(0)


def endless_at_one_element(inputs, out, dtype):
    """Be right, and never come back from a call on a single element."""

    def run():
        while out.size == 1:
            time.sleep(0.01)
        np.add(*inputs, out=out)

    return run


def exit_3(inputs, out, dtype):
    """End the process at once, with code 3."""
    return lambda: os._exit(3)


def sys_exit(inputs, out, dtype):
    """Ask the interpreter to end."""
    return lambda: sys.exit(0)


def out_of_memory(inputs, out, dtype):
    """Ask the GPU for more than it has."""

    def run():
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB")

    return run


def greedy(inputs, out, dtype):
    """Ask for a pebibyte."""
    return lambda: np.empty(2**50, np.uint8)


def leaking(inputs, out, dtype):
    """Keep memory with every call, in a process that the system gives little more."""
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 no path of ours
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + LEAST_LEFT_BYTES, resource.RLIM_INFINITY))
    kept = []

    def run():
        kept.append(np.ones(LEAK_BYTES, np.uint8))
        np.add(*inputs, out=out)

    return run


def growing(inputs, out, dtype):
    """Keep some memory with every call."""
    kept = []

    def run():
        kept.append(np.ones(2**22, np.uint8))
        np.add(*inputs, out=out)

    return run


def growing_slowly(inputs, out, dtype):
    """Keep much memory with every call, each of which takes so long that it is checked."""
    kept = []

    def run():
        kept.append(np.ones(LEAK_BYTES, np.uint8))
        time.sleep(0.1)
        np.add(*inputs, out=out)

    return run


def printing(inputs, out, dtype):
    """Print from below Python at every call, more than anybody reads."""

    def run():
        os.write(1, b"\x1b[31mprinted \xff\n" * 100)
        np.add(*inputs, out=out)

    return run


def chatting(inputs, out, dtype):
    """Print a line at every call, and 300 kB at the first."""
    calls = []

    def run():
        np.add(*inputs, out=out)
        sys.stdout.write("as at every call\n" if calls else "x" * 300_000)
        calls.append(1)
        sys.stderr.write("there too\n")

    return run


def flooding(inputs, out, dtype):
    """Write 64 kB to standard output and error at every call, past Python."""

    def run():
        np.add(*inputs, out=out)
        for number in (1, 2):
            os.write(number, b"\xff" * 65_535 + b"\n")

    return run
