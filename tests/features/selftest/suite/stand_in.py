"""A GPU that is not there: an NVML and two libraries of it, whose kernels are the references, run on the host.

The self-test's own code, its worker processes, timers and the core that measures all run as they are. Faults are named
in the environment, which workers inherit. Run as a module, with
`selftest --out FOLDER`, it shows a report.
"""

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event
from time import perf_counter_ns
from types import SimpleNamespace

from gpuexplore import backends
from gpuexplore.backends import DriverFacts, EventTimer, load_backend
from gpuexplore.backends import numpy as numpy_backend
from gpuexplore.backends.cuda_driver import why_no_gpu
from gpuexplore.hardware import discovery, nvml, telemetry
from gpuexplore.measure.arrays import large
from gpuexplore.measure.sample.compile_ahead import LARGE, SMALL
from tests.hardware.fake_nvml import FakeGpu, FakeNvml

FAULT, GONE = "GPUEXPLORE_STAND_IN_FAULT", "GPUEXPLORE_STAND_IN_GONE"
STRUCK = "GPUEXPLORE_STAND_IN_STRUCK"  # a file: there was an illegal access
STAND_IN = "a stand-in, whose kernels are NumPy on this CPU"
UUID = "11111111-0000-4000-8000-000000000001"
GPU = FakeGpu(
    "Stand-in GPU",
    f"GPU-{UUID}",
    2**30,
    cores=128,
    capability=(9, 0),
    sm_mhz=2,
    memory_mhz=16,
    bus_bits=256,
    milliwatts=70_000,
)
BYTES_PER_S = 0.9 * 2 * 16e6 * 256 / 8
CACHE_BYTES = 2**16
CYCLES = 0.7  # what a nominal second of the spin really takes
LIBRARIES = ("numba_cuda", "torch")
OLD_DRIVERS = {"old-driver": ("torch",), "older-driver": LIBRARIES}  # for which it is too old
MISSING = ("torch_compile", "triton", "cupy")
REGISTERS = 32
WARMED = {size**2 for size in (SMALL, LARGE)}  # products that load a worker, before any check
LONGER = 10  # than on a machine with a GPU, whose CPU has nothing else to do
CHECKS, OPERATIONS = "GPUEXPLORE_STAND_IN_CHECKS", "GPUEXPLORE_STAND_IN_OPERATIONS"  # fewer of them


def faults():
    return os.environ.get(FAULT, "").split(",")


def is_gone():
    """Return whether the GPU has fallen off the bus."""
    return GONE in os.environ and Path(os.environ[GONE]).exists()


class Nvml(FakeNvml):
    def nvmlDeviceGetMemoryInfo(self, gpu):  # noqa: N802
        return super().nvmlDeviceGetMemoryInfo(replace(gpu, lost=is_gone()))


NVML = Nvml([GPU])


class DeviceClock:
    """Nanoseconds of the stand-in: they pass with what is enqueued on it, and a little with every reading."""

    READING_NS = 100

    def __init__(self):
        self.now_ns = 0

    def __call__(self):
        self.now_ns += self.READING_NS
        return self.now_ns

    def spend(self, seconds):
        self.now_ns += round(seconds * 1e9)


CLOCK = DeviceClock()


class DeviceEvent:
    def record(self):
        self.at_ns = CLOCK()


def elapsed_s(start, end):
    return (end.at_ns - start.at_ns) * 1e-9 * (2 if "double-timer" in faults() else 1)


def timer(device, clock):
    return EventTimer(
        clock,
        DeviceEvent,
        elapsed_s,
        lambda: None,
        nullcontext,
        enqueue_spin=lambda seconds: CLOCK.spend(seconds * CYCLES),
    )


def library(name, *, is_there=True):
    """Return what stands in for the module of a library."""
    real = load_backend(name)

    def driver_facts(device):
        if any(name in OLD_DRIVERS.get(fault, ()) for fault in faults()):
            return DriverFacts(problem=why_no_gpu(f"{name} 2.13.0", "13.0"))
        return DriverFacts(UUID, CACHE_BYTES)

    own = {
        "__name__": real.__name__,
        "DEVICE_KINDS": ("cuda",),
        "capture": lambda *_: None,
        "driver_facts": driver_facts,
        "is_available": lambda: is_there,
        "set_threads": lambda count: None,
        "timer": partial(timer),  # another one for each: libraries that share one are tried once
        "INSTALL": real.INSTALL,
        "unsupported": real.unsupported,
        "versions": lambda: {name: "stand-in"},
    }
    return SimpleNamespace(**{**vars(numpy_backend), **own})


def build_of(operation, implementation):
    """Return what builds an implementation: its reference, and what its memory traffic takes on the stand-in."""

    def build(inputs, out, dtype, block=None):
        if implementation.module == "selftest_out_of_bounds":
            return strike
        if implementation.module == "selftest_out_of_memory":
            return lambda: fail("CUDA out of memory. Tried to allocate 512 TiB")
        byte_count = sum(array.nbytes for array in (*inputs, out))

        def run():
            began_ns = perf_counter_ns()
            if "lost" in faults() and operation.name == "matmul" and out.size not in WARMED:
                Path(os.environ[GONE]).touch()
            if "hang" in faults() and Path(os.environ[STRUCK]).exists():
                Event().wait()
            if is_gone():
                fail("CUDA error: unspecified launch failure")
            stored = [numpy_backend.stored(array, dtype) for array in inputs]
            expected = operation.reference(*map(dtype.widen, stored))
            if "wrong-kernel" in faults() and (operation.name, implementation.backend) == ("softmax", "numba_cuda"):
                expected = expected * 2
            numpy_backend.load(out, dtype.round(expected))
            host_s = 0 if operation.name == "copy" else (perf_counter_ns() - began_ns) * 1e-9  # of what computes
            CLOCK.spend(max(byte_count / BYTES_PER_S, host_s))

        return run

    return build


def strike():
    if "hang" in faults():
        Path(os.environ[STRUCK]).touch()
    fail("CUDA error: an illegal memory access was encountered")


def fail(words):
    raise RuntimeError(words)


def kernel_of(operation, implementation):
    """Return a kernel whose registers are those recorded, but for a planted one."""
    more = 8 if "other-kernel" in faults() and implementation.name == "numba-cuda-vector" else 0
    return SimpleNamespace(launched_registers=lambda dtype: REGISTERS + more)


def compile_for(*_):
    return SimpleNamespace(registers_per_thread=REGISTERS, toolkit="stand-in")


def install(setattr_=setattr, setitem=dict.__setitem__):
    """Put the stand-in in the place of the driver and of the libraries, in this process."""
    setattr_(large, "LARGE", 2**62)  # nothing can be drawn there
    from gpuexplore.measure.candidates import candidate

    for module in (discovery, nvml, telemetry):
        setattr_(module, "load_nvml", lambda: NVML)
    stand_ins = {name: library(name, is_there=name in LIBRARIES) for name in (*LIBRARIES, *MISSING)}
    for name, stand_in in stand_ins.items():
        setitem(sys.modules, f"gpuexplore.backends.{name}", stand_in)
        setattr_(backends, name, stand_in)
    load_backend.cache_clear()
    setattr_(candidate, "load_build", build_of)


def chosen(variable, known):
    """Return those of `known`, a mapping, that the variable names; all where it names none."""
    names = os.environ.get(variable, "").split(",")
    return {name: value for name, value in known.items() if name in names} or dict(known)


def main(words):
    """Run a command of gpuexplore on the stand-in."""
    install()
    from gpuexplore import cli
    from gpuexplore.cli import record_command
    from gpuexplore.features.selftest import selftest_command
    from gpuexplore.features.selftest.suite import contract
    from gpuexplore.features.selftest.suite.checks import correctness, recording, survival
    from gpuexplore.measure.conditions import environment

    selftest_command.STAND_IN = STAND_IN
    selftest_command.CHECKS = tuple(chosen(CHECKS, {check.name: check for check in selftest_command.CHECKS}).values())
    for module in (correctness, recording):
        module.OPERATIONS = chosen(OPERATIONS, module.OPERATIONS)
    contract.WORKER = "tests.features.selftest.suite.worker"
    selftest_command.FULL_S, selftest_command.QUICK_S = (
        LONGER * selftest_command.FULL_S,
        LONGER * selftest_command.QUICK_S,
    )
    contract.LONGEST_PROBE_S = LONGER * contract.LONGEST_PROBE_S
    contract.LIMITS = replace(contract.LIMITS, start_s=LONGER * contract.LIMITS.start_s)
    if "hang" in faults():
        survival.BUILD_S = 4.0
        contract.LIMITS = replace(contract.LIMITS, grace_s=0.5)
    recording.COMMAND = (sys.executable, "-P", "-m", "tests.features.selftest.suite.stand_in")
    for module in (environment, recording, record_command):
        module.git_commit = lambda: "0" * 12  # a copy of this repository has none
    return cli.main(words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
