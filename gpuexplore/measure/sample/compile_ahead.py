"""Kernels for the CPU, compiled by two processes at once before the first run that needs them on this machine.

Numba compiles on one core and keeps the code in files that every process loads. A worker with several kernels to
compile has another process compile most of them while it loads libraries and compiles the others, and measures nothing
before both are done. Kernels that were compiled are noted in the folder of Numba's files, by processor.

    python -m gpuexplore.measure.sample.compile_ahead < TASK

reads a device and cases as JSON, calls each case once, and writes the seconds that their first calls cost.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter_ns

from gpuexplore.core import Case, Device, InvalidInput, decode, encode
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.hardware.identity import device_key
from gpuexplore.measure import KERNEL_CACHE_VARIABLE
from gpuexplore.measure.candidates.candidate import build_candidate, unsupported
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.sample import slow_cases
from gpuexplore.operations import load_build, operation_named

SMALL = 64  # one kernel is for small shapes; arrays of one row or column would have kernels of their own
LARGE = 256  # another for larger ones


def compile_ahead(cases: Sequence[Case], device: Device) -> None:
    """Compile the kernels of `cases` that this machine has not compiled yet, where they are more than one."""
    most = 12  # the others are compiled once they are measured
    kernels = [] if device.kind != "cpu" else _not_compiled(cases, device)[:most]
    if len(kernels) < 2 or (os.cpu_count() or 1) < 2:
        return
    # the libraries are loaded, and what all kernels share is compiled, in this process, which compiles fewer kernels
    own = kernels[1::3]
    others = [case for case in kernels if case not in own]
    with subprocess.Popen(
        (sys.executable, "-P", "-m", __name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as other:
        assert other.stdin is not None
        with suppress(BrokenPipeError), other.stdin:
            other.stdin.write(json.dumps({"device": encode(device), "cases": encode(others)}).encode())
        other.stdin = None
        for case in own:
            call_once(case, device, SMALL)
        for name, implementation in dict.fromkeys((case.operation, case.implementation) for case in cases):
            operation = operation_named(name)
            row = operation.implementation_named(implementation)
            if not row.of_a_user:
                with suppress(Exception):  # the case names what fails
                    load_build(operation, row)
        try:
            written, _ = other.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            other.kill()
            return
    with suppress(ValueError):
        for case, seconds in zip(others, json.loads(written), strict=True):
            slow_cases.note_first_calls(case, seconds, 0.0)


def call_once(case: Case, device: Device, size: int) -> float:
    """Return the seconds by which a first call of the implementation of `case`, at `size`, took longer than a second.

    They are noted; what fails is left for the case itself to name: 0.
    """
    operation = operation_named(case.operation)
    shape = operation.shape_of_size(size)
    with suppress(Exception):
        inputs = make_inputs(operation, shape, dtype_named(case.dtype), "normal")
        small = Case(case.operation, shape, case.dtype, case.implementation, case.device)
        candidate = build_candidate(small, operation.at(shape), device, inputs=inputs, clock=perf_counter_ns)
        first_s, next_s = (candidate.first_call_s(perf_counter_ns) for _ in range(2))
        slow_cases.note_first_calls(case, first_s, next_s)
        if note := _note(case, device):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.touch()
        return max(0.0, first_s - next_s)
    return 0.0


def _not_compiled(cases: Sequence[Case], device: Device) -> list[Case]:
    """Return a case of each implementation and dtype whose kernel was never compiled for this processor."""
    kernels = {(case.operation, case.implementation, case.dtype): case for case in cases}
    return [case for case in kernels.values() if (note := _note(case, device)) and not note.exists()]


def _note(case: Case, device: Device) -> Path | None:
    """Return the file that is there once a kernel was compiled; None for what is not compiled, or not kept."""
    folder = os.environ.get(KERNEL_CACHE_VARIABLE)
    try:
        operation = operation_named(case.operation)
        implementation = operation.implementation_named(case.implementation)
    except InvalidInput:  # which the case's own result says
        return None
    if not folder or implementation.backend != "numba_cpu" or implementation.of_a_user:
        return None
    if unsupported(operation, implementation, dtype_named(case.dtype), device):
        return None
    return Path(folder) / "compiled" / "-".join((device_key(device), operation.name, implementation.name, case.dtype))


def main() -> None:
    """Call each case that is read once, and write the seconds of each."""
    task = json.load(sys.stdin)
    device = decode(Device, task["device"])
    cases = [decode(Case, each) for each in task["cases"]]
    seconds = [call_once(case, device, SMALL) for case in cases]
    call_once(cases[-1], device, LARGE)  # large products of all dtypes share a kernel
    json.dump(seconds, sys.stdout)


if __name__ == "__main__":
    main()
