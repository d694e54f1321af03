"""Implementations of vector addition that a measuring program must not be taken in by, and a good one.

`register` puts them beside the real ones; each is a builder as in a file of an operation's folder.
"""

import os
import resource
import signal
import sys
import time
from dataclasses import replace
from types import ModuleType

import numpy as np

import gpuexplore.operations
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.contract import Implementation

OPERATION = "vector_add"
LEAK_BYTES = 2**25
LEAST_LEFT_BYTES = 2**28  # what the leaking one may add to its process before the system refuses
LARGE = 2**20
SLEEP_S = 0.02


class OutOfMemoryError(RuntimeError):
    """Named and worded as torch's."""


def fine(inputs, out, dtype):
    """Add, as the real ones do."""
    return lambda: np.add(*inputs, out=out)


def wrong(inputs, out, dtype):
    """Subtract."""
    return lambda: np.subtract(*inputs, out=out)


def partial(inputs, out, dtype):
    """Leave the last element out, as a grid does that is rounded down."""
    a, b = inputs
    return lambda: np.add(a[:-1], b[:-1], out=out[:-1])


def once(inputs, out, dtype):
    """Work on the first call only: the later ones are very fast."""
    left = [1]

    def run():
        if left:
            left.pop()
            np.add(*inputs, out=out)

    return run


def spoiled(inputs, out, dtype):
    """Be right four times, then forget the second input."""
    calls = []

    def run():
        calls.append(1)
        np.add(*inputs, out=out) if len(calls) < 5 else np.copyto(out, inputs[0])

    return run


def zeros(inputs, out, dtype):
    """Be right on zeros only, which is the data it is timed on."""
    return lambda: out.fill(0)


def slow(inputs, out, dtype):
    """Sleep on large arrays."""

    def run():
        time.sleep(SLEEP_S if out.size >= LARGE else 0)
        np.add(*inputs, out=out)

    return run


def raising(inputs, out, dtype):
    """Raise when called."""

    def run():
        raise ValueError("illegal instruction")

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


def stalling(inputs, out, dtype):
    """Stop for good in the middle of the samples: built, right and warm before."""
    add, calls = fine(inputs, out, dtype), []

    def run():
        calls.append(1)
        while np.isnan(out).all() and len(calls) > 3:
            time.sleep(0.01)
        add()

    return run


def straying(inputs, out, dtype):
    """Break the context of a GPU in the middle of the samples, by torch's words."""
    return tiring(inputs, out, dtype, "CUDA error: misaligned address")


def out_of_memory(inputs, out, dtype):
    """Ask the GPU for more than it has."""

    def run():
        raise OutOfMemoryError("CUDA out of memory. Tried to allocate 80.00 GiB")

    return run


def crashing(inputs, out, dtype):
    """Touch memory that is not there."""
    return lambda: os.kill(os.getpid(), signal.SIGSEGV)


def endless(inputs, out, dtype):
    """Wait for something that never comes."""

    def run():
        while True:
            time.sleep(0.01)

    return run


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


BUILDERS = {
    "fine": fine,
    "wrong": wrong,
    "partial": partial,
    "once": once,
    "spoiled": spoiled,
    "zeros": zeros,
    "slow": slow,
    "raising": raising,
    "unbuildable": unbuildable,
    "tiring": tiring,
    "stalling": stalling,
    "straying": straying,
    "out-of-memory": out_of_memory,
    "crashing": crashing,
    "endless": endless,
    "leaking": leaking,
}


def register(setattr_, setitem):
    """Add the builders, and one whose file does not exist, to vector addition.

    Args:
        setattr_: `monkeypatch.setattr`, or the built-in where the process ends with the test.
        setitem: `monkeypatch.setitem`, or `dict.__setitem__`.
    """
    added = [
        Implementation(name, f"evil_{name}", "numpy", "vector", "a test") for name in (*BUILDERS, "missing-module")
    ]
    real = OPERATIONS[OPERATION]
    evil = replace(real, implementations=(*real.implementations, *added))
    setattr_(gpuexplore.operations, "OPERATIONS", {**OPERATIONS, OPERATION: evil})
    for name, build in BUILDERS.items():
        module = ModuleType(f"gpuexplore.operations.{OPERATION}.evil_{name}")
        module.build = build
        setitem(sys.modules, module.__name__, module)
