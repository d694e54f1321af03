"""Stands in for gpuexplore.measure.runner in worker processes: an implementation's name says what it does."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from time import sleep

from gpuexplore.core.model import Contrast, Measurement, Result, Status

HEAVY = {"numpy", "sqlalchemy", "streamlit", "torch"}
ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"
_CONTEXT = {}
_LOADED_AT_IMPORT = sorted(HEAVY & sys.modules.keys())


def warm_up(device, hurried):
    if device.name == "slow to warm up":
        while not hurried():
            time.sleep(0.01)
    if device.name == "broken":
        raise RuntimeError("no driver")
    if device.name == "endless":
        time.sleep(60)


def measure_cases(cases, device, *, clock, isolation, progress):
    for case in cases:
        progress.report(case)
        if case.implementation == "hangs-in-its-round":
            progress.running(case, 0.01)
        outcome = sticky_error(case) or BEHAVIOURS[case.implementation](case, progress.cancelled)
        if outcome is not None:
            progress.report(outcome)
    _take_turns(cases, progress)


def perform(arguments, device, *, clock, isolation, progress):
    ACTIONS[arguments["does"]](progress.report, progress.cancelled)


def observe(report, cancelled):
    """Report twice, the second time the process id."""
    report({"step": 1})
    report({"step": 2, "pid": os.getpid()})


def observe_until_cancelled(report, cancelled):
    report({"step": 1})
    while not cancelled():
        time.sleep(0.01)


def fail(report, cancelled):
    report({"step": 1})
    raise ValueError("no such thing")


def _take_turns(cases, progress):
    """Finish the implementations that only have a final result once all were taken up."""
    if any(case.implementation == "crashes-in-turns" for case in cases):
        os._exit(3)
    for case in cases:
        if case.implementation in ("illegal-in-turns", "late"):
            progress.report(illegal(case, None))
        if case.implementation == "takes-turns":
            progress.report(sticky_error(case) or fine(case, None))
        if case.implementation in TWO_PASSES:
            progress.running(case, 0.01)
            TWO_PASSES[case.implementation](case, progress.cancelled)
            progress.report(fine(case, None))


def first_pass(case, cancelled):
    return replace(fine(case, cancelled), provisional=True)


def wait(case, cancelled):
    while not cancelled():
        sleep(0.005)


def nothing(case, cancelled):
    return None


def fine(case, cancelled):
    """Succeed; the sample is the process id, so that a test sees which process measured."""
    return Result(case, Status.OK, measurement=Measurement((float(os.getpid()),), 1.0))


def tell(case, cancelled):
    told = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}
    told |= {"database": [name for name in os.environ if name == "GPUEXPLORE_DATABASE_URL" or name.startswith("PG")]}
    told |= {"loaded": _LOADED_AT_IMPORT, "leads_its_group": os.getpgrp() == os.getpid()}
    return Result(case, Status.ERROR, json.dumps(told))


def out_of_memory(case, cancelled):
    return Result(case, Status.OUT_OF_MEMORY, "8 GiB of 4 GiB")


def illegal(case, cancelled):
    """Break the context of this process, as an illegal access does: all that follows gets the same error."""
    _CONTEXT["error"] = f"CudaAPIError: [700] Call to cuEventSynchronize results in {ILLEGAL}"
    return sticky_error(case)


def late(case, cancelled):
    """Break the context by a launch that nobody waits for: the next case meets the error."""
    illegal(case, cancelled)


def sticky_error(case):
    return Result(case, Status.ERROR, _CONTEXT["error"]) if _CONTEXT else None


def leave(case, cancelled):
    _leave_a_child_behind(case)
    os._exit(7)


def leave_with_0(case, cancelled):
    os._exit(0)


def leave_politely(case, cancelled):
    sys.exit()


def interrupt(case, cancelled):
    raise KeyboardInterrupt


def touch_nothing(case, cancelled):
    ctypes.string_at(0)


def kill(case, cancelled):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(case, cancelled):
    _leave_a_child_behind(case)
    time.sleep(60)


def hang_in_c(case, cancelled):
    """Never come back from C, deaf to signals, and keep Python's lock, so that no other thread runs either."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    ctypes.PyDLL(None).sleep(60)


def hang_in_python(case, cancelled):
    while True:
        pass


def exhaust_memory(case, cancelled):
    raise MemoryError("Unable to allocate 8 GiB")


def fill_memory(case, cancelled):
    """Join the group of processes that has little memory, and want more."""
    Path(os.environ["SMALL_CGROUP"], "cgroup.procs").write_text(str(os.getpid()))
    return [bytearray(10_000_000) for _ in range(100)]


def fine_with_children(case, cancelled):
    """Succeed, and leave two processes behind: one of this group, one in a session of its own whose parent is gone."""
    _leave_a_child_behind(case)
    daemon = f"import subprocess, sys; subprocess.Popen({_sleeper(case)!r}, start_new_session=True)"
    subprocess.run([sys.executable, "-c", daemon], check=True)
    return fine(case, cancelled)


def fine_with_a_child_that_ended(case, cancelled):
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and never asked how
    return fine(case, cancelled)


def flood(case, cancelled):
    for _ in range(100):
        sys.stdout.write("x" * 9_999 + "\n")
    os.write(2, b'{"kind": "Result", "value": {}}\n' * 100)
    return fine(case, cancelled)


def print_a_line(case, cancelled):
    sys.stdout.write("hello\n")
    return fine(case, cancelled)


def sample_too_often(case, cancelled):
    series = tuple(1 + i * 1e-9 for i in range(100_000))
    return Result(case, Status.OK, measurement=Measurement(series, 1.0, contrasts=(Contrast("cold", series),)))


def _leave_a_child_behind(case):
    # The operation's name marks the child's command line.
    subprocess.Popen(_sleeper(case))


def _sleeper(case):
    return [sys.executable, "-c", "import time; time.sleep(60)", case.operation]


def patient(case, cancelled):
    while not cancelled():
        time.sleep(0.005)
    return Result(case, Status.CANCELLED, "stopped between two rounds")


def raising(case, cancelled):
    raise ValueError("broken runner")


BEHAVIOURS = {
    "crashes-in-turns": nothing,
    "exhaust-memory": exhaust_memory,
    "fill-memory": fill_memory,
    "fine": fine,
    "fine-too": fine,
    "fine-with-a-child-that-ended": fine_with_a_child_that_ended,
    "fine-with-children": fine_with_children,
    "flood": flood,
    "hang": hang,
    "hang-in-c": hang_in_c,
    "hang-in-python": hang_in_python,
    "hangs-in-its-round": hang,
    "illegal": illegal,
    "illegal-in-turns": nothing,
    "kill": kill,
    "late": late,
    "leave": leave,
    "leave-politely": leave_politely,
    "interrupt": interrupt,
    "leave-with-0": leave_with_0,
    "out-of-memory": out_of_memory,
    "patient": patient,
    "print-a-line": print_a_line,
    "passes": first_pass,
    "passes-and-crashes": first_pass,
    "passes-and-hangs": first_pass,
    "passes-and-waits": first_pass,
    "raising": raising,
    "sample-too-often": sample_too_often,
    "silent": nothing,
    "takes-turns": nothing,
    "tell": tell,
    "touch-nothing": touch_nothing,
}
TWO_PASSES = {
    "passes": nothing,
    "passes-and-crashes": kill,
    "passes-and-hangs": hang_in_python,
    "passes-and-waits": wait,
}
ACTIONS = {
    "observe": observe,
    "wait": observe_until_cancelled,
    "fail": fail,
    "crash": lambda report, cancelled: os._exit(3),
    "hang": lambda report, cancelled: time.sleep(60),
}
