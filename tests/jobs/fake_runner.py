"""Stands in for gpuexplore.measure.runner in worker processes: an implementation's name says what it does."""

import json
import os
import signal
import subprocess
import sys
import time

from gpuexplore.model import Measurement, Result, Status

HEAVY = {"numpy", "sqlalchemy", "streamlit", "torch"}
ILLEGAL = "CUDA_ERROR_ILLEGAL_ADDRESS"
_CONTEXT = {}
_LOADED_AT_IMPORT = sorted(HEAVY & sys.modules.keys())


def warm_up(device):
    if device.name == "broken":
        raise RuntimeError("no driver")
    if device.name == "endless":
        time.sleep(60)


def measure_group(cases, device, *, report, cancelled):
    for case in cases:
        report(case)
        outcome = sticky_error(case) or BEHAVIOURS[case.implementation](case, cancelled)
        if outcome is not None:
            report(outcome)
    _take_turns(cases, report)


def _take_turns(cases, report):
    """Finish the implementations that only have a result once all were taken up."""
    if any(case.implementation == "crashes-in-turns" for case in cases):
        os._exit(3)
    for case in cases:
        if case.implementation in ("illegal-in-turns", "late"):
            report(illegal(case, None))
        if case.implementation == "takes-turns":
            report(sticky_error(case) or fine(case, None))


def nothing(case, cancelled):
    return None


def fine(case, cancelled):
    """Succeed; the sample is the process id, so that a test sees which process measured."""
    return Result(case, Status.OK, measurement=Measurement((float(os.getpid()),), 1.0))


def tell(case, cancelled):
    told = {name: os.environ[name] for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS")}
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


def kill(case, cancelled):
    os.kill(os.getpid(), signal.SIGKILL)


def hang(case, cancelled):
    _leave_a_child_behind(case)
    time.sleep(60)


def _leave_a_child_behind(case):
    # The operation's name marks the child's command line.
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", case.operation])


def patient(case, cancelled):
    while not cancelled():
        time.sleep(0.005)
    return Result(case, Status.CANCELLED, "stopped between two rounds")


def raising(case, cancelled):
    raise ValueError("broken runner")


BEHAVIOURS = {
    "crashes-in-turns": nothing,
    "fine": fine,
    "fine-too": fine,
    "hang": hang,
    "illegal": illegal,
    "illegal-in-turns": nothing,
    "kill": kill,
    "late": late,
    "leave": leave,
    "out-of-memory": out_of_memory,
    "patient": patient,
    "raising": raising,
    "silent": nothing,
    "takes-turns": nothing,
    "tell": tell,
}
