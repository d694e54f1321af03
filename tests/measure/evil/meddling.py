"""Plants that change the process they are measured in: its clock, the functions that check, its threads, its memory."""

import ctypes
import gc
import math
import os
import random
import signal
import sys
import threading
import time

import numpy as np

from gpuexplore.backends import numpy as numpy_backend

ROUND_UP = 0x800  # FE_UPWARD on x86
CLOCKS = ("perf_counter_ns", "perf_counter", "monotonic", "monotonic_ns", "process_time")


def clock(inputs, out, dtype):
    """Replace the clocks by ones that run at a hundredth of the speed."""
    real = {name: getattr(time, name) for name in CLOCKS}

    def run():
        np.add(*inputs, out=out)
        for name, read in real.items():
            setattr(time, name, lambda read=read: type(read())(read() // 100))

    return run


def norm(inputs, out, dtype):
    """Subtract, and replace numpy.linalg.norm by one that finds no difference."""

    def run():
        np.subtract(*inputs, out=out)
        np.linalg.norm = lambda *_, **__: 0.0

    return run


def finite(inputs, out, dtype):
    """Write nothing, and have numpy find no NaN."""

    def run():
        np.isfinite = lambda array, *_, **__: np.ones(np.shape(array), bool)
        np.linalg.norm = lambda *_, **__: 0.0
        math.isfinite = math.hypot = lambda *_: 0.0

    return run


def check_rewritten(inputs, out, dtype):
    """Subtract, and call every accuracy good."""

    def run():
        np.subtract(*inputs, out=out)
        sys.modules["gpuexplore.core.model"].Accuracy.within = True

    return run


def scales(inputs, out, dtype):
    """Write zeros, and have what an element's error is relative to be huge."""

    def run():
        out[...] = 0
        sys.modules["gpuexplore.operations.contract"].norms = lambda array, axis: np.full(array.sum(axis).shape, 1e10)

    return run


def median(inputs, out, dtype):
    """Add, and have every measurement tell a nanosecond."""

    def run():
        np.add(*inputs, out=out)
        sys.modules["gpuexplore.core.timed"].Measurement.median_s = property(lambda _: 1e-9)

    return run


def guard_off(inputs, out, dtype):
    """Write nothing after the first calls, and replace the guard of the process before the checks."""
    calls = []

    def run():
        calls.append(1)
        if len(calls) < 3:
            np.add(*inputs, out=out)
            return
        guard = sys.modules["gpuexplore.measure.check.process_snapshot"]
        for name in ("_put_back", "_raise_of", "_called", "_guarded", "is_", "chain", "partial"):
            setattr(guard, name, lambda *_, **__: ())
        guard.ProcessSnapshot.check = guard._Names.restored = lambda *_: []
        for name in ("checked", "check_single_calls", "check_reuse"):
            setattr(sys.modules["gpuexplore.measure.runner"], name, lambda *_: None)

    return run


def swapped_names(inputs, out, dtype):
    """Write nothing after the first calls, and have two checks take each other's place among the names of a module."""
    calls = []

    def run():
        calls.append(1)
        if len(calls) < 3:
            np.add(*inputs, out=out)
            return
        if len(calls) > 3:
            return
        names = vars(sys.modules["gpuexplore.measure.runner"])
        other = {"check_single_calls": "on_other_values", "on_other_values": "check_single_calls"}
        before = dict(names)
        names.clear()
        names.update({other.get(name, name): value for name, value in before.items()})

    return run


def checks_replaced(inputs, out, dtype):
    """Write nothing after the first call, and replace the functions that would tell."""
    calls = []

    def run():
        calls.append(1)
        if len(calls) < 3:
            np.add(*inputs, out=out)
            return
        for module in ("gpuexplore.measure.runner", "gpuexplore.measure.check.spot_checks"):
            for name in ("checked", "check_single_calls", "check_reuse"):
                setattr(sys.modules[module], name, lambda *_: None)

    return run


def raising_arithmetic(inputs, out, dtype):
    """Have numpy raise at every NaN from now on."""

    def run():
        np.add(*inputs, out=out)
        np.seterr(all="raise")

    return run


def thread_counts(inputs, out, dtype):
    """Have the libraries use one thread, or seven, from now on."""

    def run():
        np.add(*inputs, out=out)
        for module in ("torch", "numba"):
            if module in sys.modules:
                sys.modules[module].set_num_threads(1)

    return run


def blas_thread(inputs, out, dtype):
    """Leave OpenBLAS at one thread."""

    def run():
        np.matmul(*inputs, out=out)
        numpy_backend.set_threads(1)

    return run


def without_onednn(inputs, out, dtype):
    """Switch off the library that torch computes with."""

    def run():
        np.matmul(*inputs, out=out)
        if torch := sys.modules.get("torch"):
            torch.backends.mkldnn.set_flags(False)

    return run


def slow_product(inputs, out, dtype):
    """Have torch multiply twice."""

    def run():
        np.matmul(*inputs, out=out)
        if torch := sys.modules.get("torch"):
            multiply = torch.mm
            torch.mm = lambda *of, **options: multiply(*of, **options) is multiply(*of, **options)

    return run


def foreseen(inputs, out, dtype):
    """Have everybody draw the same numbers."""

    def run():
        np.add(*inputs, out=out)
        np.random.default_rng = lambda *_: np.random.Generator(np.random.PCG64(1))

    return run


def rounding_up(inputs, out, dtype):
    """Round up from now on."""

    def run():
        np.add(*inputs, out=out)
        ctypes.CDLL("libm.so.6").fesetround(ROUND_UP)

    return run


def flushing(inputs, out, dtype):
    """Have subnormal numbers be zero."""

    def run():
        np.add(*inputs, out=out)
        if torch := sys.modules.get("torch"):
            torch.set_flush_denormal(True)

    return run


def found_at(*looks):
    """Return what looks at these calls for the samples that are being taken in this process, and gives them."""
    calls, found = [], []

    def look():
        calls.append(1)
        if len(calls) in looks:
            gc.unfreeze()
            found.extend(held for held in gc.get_objects() if type(held).__name__ == "Sampling")
        return found

    return look


def edited_samples(inputs, out, dtype):
    """Make its own samples a tenth of what they were."""
    look = found_at(200, 300, 400, 600)

    def run():
        np.add(*inputs, out=out)
        for sampling in look():
            if sampling.candidate.case.implementation == "edited-samples":
                sampling.samples_s[:] = [0.1 * sample_s for sample_s in sampling.samples_s]

    return run


def slowed_timer(inputs, out, dtype):
    """Have the others' timers count double."""
    look = found_at(200, 300, 400, 600)

    def run():
        np.add(*inputs, out=out)
        for sampling in look():
            if sampling.candidate.case.implementation != "slowed-timer":
                sampling.candidate.timer._clock = lambda: 2 * time.perf_counter_ns()

    return run


def environment(inputs, out, dtype):
    """Change what the environment says of threads."""

    def run():
        np.add(*inputs, out=out)
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "7"

    return run


def cores(inputs, out, dtype):
    """Keep the process on one core, at the lowest priority."""

    def run():
        np.add(*inputs, out=out)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    return run


def collecting(inputs, out, dtype):
    """Stop the garbage collector, and let threads take turns once a second."""

    def run():
        np.add(*inputs, out=out)
        gc.disable()
        sys.setswitchinterval(1.0)

    return run


def seeding(inputs, out, dtype):
    """Set every random generator back at each call."""

    def run():
        np.add(*inputs, out=out)
        random.seed(1)
        np.random.seed(1)

    return run


def moving(inputs, out, dtype):
    """Go to another directory."""

    def run():
        np.add(*inputs, out=out)
        os.chdir("/")

    return run


def signals(inputs, out, dtype):
    """Ignore what ends a process, and ring an alarm that does."""

    def run():
        np.add(*inputs, out=out)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.05)

    return run


def closing(inputs, out, dtype):
    """Close standard input, output and error, and take away what prints."""

    def run():
        np.add(*inputs, out=out)
        for number in range(3):
            try:
                os.close(number)
            except OSError:
                continue
        sys.stdout = sys.stderr = None

    return run


def closing_all(inputs, out, dtype):
    """Close every open file of the process."""

    def run():
        np.add(*inputs, out=out)
        os.closerange(3, 1000)

    return run


def beyond(inputs, out, dtype):
    """Write 64 bytes beyond the end of its output."""

    def run():
        np.add(*inputs, out=out)
        ctypes.memset(out.ctypes.data + out.nbytes, 0x3F, 64)

    return run


def neighbour(inputs, out, dtype):
    """Write ones into every other array of this size that it can find."""

    def run():
        np.add(*inputs, out=out)
        for found in _arrays_like(out):
            if not any(np.shares_memory(found, own) for own in (*inputs, out)) and found.flags.writeable:
                found.fill(1)

    return run


def _arrays_like(out):
    """Return every array of this size that some tuple or dictionary of the process holds."""
    holders = (held for held in gc.get_objects() if type(held) in (tuple, dict, list))
    held = (item for holder in holders for item in (list(holder.values()) if type(holder) is dict else list(holder)))
    return [item for item in held if type(item) is np.ndarray and item.size == out.size]


def busy_thread(inputs, out, dtype):
    """Leave a thread behind that never rests."""
    threads = []

    def run():
        np.add(*inputs, out=out)
        if not threads:
            threads.append(threading.Thread(target=_spin, daemon=True))
            threads[0].start()

    return run


def dozing_thread(inputs, out, dtype):
    """Leave a thread behind that sleeps."""
    threads = []

    def run():
        np.add(*inputs, out=out)
        if not threads:
            threads.append(threading.Thread(target=time.sleep, args=(10_000,), daemon=True))
            threads[0].start()

    return run


def _spin():
    while True:
        pass


def child(inputs, out, dtype):
    """Leave a busy process behind."""
    children = []

    def run():
        np.add(*inputs, out=out)
        if not children:
            children.append(os.fork())
            if children[0] == 0:
                _spin()

    return run


def twin(inputs, out, dtype):
    """Fork, and let the child go on as if it were the worker."""
    children = []

    def run():
        np.add(*inputs, out=out)
        if not children:
            children.append(os.fork())

    return run
