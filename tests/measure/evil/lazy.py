"""Plants that are right when they are looked at, and leave work out, or put it off, when they are timed."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

DUTIFUL_S = 20e-3  # so long one of them works, as a warm-up lasts


def once(inputs, out, dtype):
    """Work on the first call only: the later ones are very fast."""
    return _on_calls(inputs, out, lambda call: call == 1)


def alternating(inputs, out, dtype):
    """Work on every second call."""
    return _on_calls(inputs, out, lambda call: call % 2 == 1)


def seldom(inputs, out, dtype):
    """Work on one call in 64."""
    return _on_calls(inputs, out, lambda call: call % 64 == 1)


def retiring(inputs, out, dtype):
    """Work on the first 60 calls."""
    return _on_calls(inputs, out, lambda call: call <= 60)


def _on_calls(inputs, out, works):
    calls = [0]

    def run():
        calls[0] += 1
        if works(calls[0]):
            np.add(*inputs, out=out)

    return run


def brief(inputs, out, dtype):
    """Work for as long as a warm-up lasts."""
    began = []

    def run():
        began or began.append(time.monotonic())
        if time.monotonic() - began[0] < DUTIFUL_S:
            np.add(*inputs, out=out)

    return run


def spoiled(inputs, out, dtype):
    """Be right four times, then forget the second input."""
    calls = []

    def run():
        calls.append(1)
        np.add(*inputs, out=out) if len(calls) < 5 else np.copyto(out, inputs[0])

    return run


def asynchronous(inputs, out, dtype):
    """Wait for the first call, and leave the later ones to a thread."""
    pool, calls = ThreadPoolExecutor(1), []

    def run():
        calls.append(pool.submit(np.add, *inputs, out=out))
        if len(calls) == 1:
            calls[0].result()

    return run


def writing_late(inputs, out, dtype):
    """Leave every call to a thread of its own, which begins a little later."""
    calls = []

    def run():
        calls.append(1)
        if len(calls) == 1:
            np.add(*inputs, out=out)
        elif threading.active_count() < 20:
            threading.Timer(1e-3, np.add, inputs, {"out": out}).start()

    return run


def keeping(inputs, out, dtype):
    """Compute once, and copy the kept result afterwards."""
    kept = []

    def run():
        if not kept:
            kept.append(np.add(*inputs))
        np.copyto(out, kept[0])

    return run


def precomputing(inputs, out, dtype):
    """Compute when it is built, and copy the result."""
    kept = np.add(*inputs)
    return lambda: np.copyto(out, kept)


def skipping(inputs, out, dtype):
    """Compute unless the output already looks right."""
    kept = []

    def run():
        if not kept or out[0] != kept[0] or out[-1] != kept[1]:
            _add_slowly(inputs, out)
            kept[:] = out[0], out[-1]

    return run


def poison_aware(inputs, out, dtype):
    """Compute where the output holds NaN: that is when it is looked at."""

    def run():
        if np.isnan(out[-1]):
            np.add(*inputs, out=out)

    return run


def alert(inputs, out, dtype):
    """Compute where the output holds NaN or the inputs are not those of the last call."""
    kept = []

    def run():
        seen = [array[:: max(1, array.size // 8)].tobytes() for array in inputs]
        if seen != kept or np.isnan(out[-1]):
            _add_slowly(inputs, out)
            kept[:] = seen

    return run


def caller_aware(inputs, out, dtype):
    """Compute unless the timer is who calls, and then too where the output holds NaN."""

    def run():
        if sys._getframe(1).f_code.co_name != "_elapsed_ns" or np.isnan(out[-1]):
            np.add(*inputs, out=out)

    return run


def half_stack_aware(inputs, out, dtype):
    """Compute all where a function above it checks something or the output holds NaN, else three in five elements."""
    most = len(out) * 3 // 5

    def run():
        frame = sys._getframe(1)
        while frame and "check" not in frame.f_code.co_name and "prepare" not in frame.f_code.co_name:
            frame = frame.f_back
        ends = None if frame or np.isnan(out[-1]) else most
        np.add(inputs[0][:ends], inputs[1][:ends], out=out[:ends])

    return run


def stack_aware(inputs, out, dtype):
    """Compute where a function above it checks something, or the output holds NaN."""

    def run():
        frame = sys._getframe(1)
        while frame and "check" not in frame.f_code.co_name and "prepare" not in frame.f_code.co_name:
            frame = frame.f_back
        if frame or np.isnan(out[-1]):
            np.add(*inputs, out=out)

    return run


def memorizing(inputs, out, dtype):
    """Keep the result of every input it has seen, by some of their elements."""
    known = {}

    def run():
        key = tuple(array[:: max(1, array.size // 16)].tobytes() for array in inputs)
        if key not in known:
            known.clear()
            _add_slowly(inputs, out)
            known[key] = out.copy()
        np.copyto(out, known[key])

    return run


def fingerprinting(inputs, out, dtype):
    """Compute for the first two inputs it meets, by one of their elements, and nothing for others."""
    known = {}

    def run():
        key = tuple(float(array.flat[array.size // 2]) for array in inputs)
        if key not in known and len(known) < 2:
            _add_slowly(inputs, out)
            known[key] = out.copy()
        if key in known:
            np.copyto(out, known[key])

    return run


def hashing(inputs, out, dtype):
    """Keep the result of every input it has seen, by all of their elements."""
    known = {}

    def run():
        key = hash(tuple(array.tobytes() for array in inputs))
        if key not in known:
            known.clear()
            _add_slowly(inputs, out)
            known[key] = out.copy()
        np.copyto(out, known[key])

    return run


def _add_slowly(inputs, out):
    for _ in range(20):  # far below what counts as a slow call, each of which is checked
        np.add(*inputs, out=out)
