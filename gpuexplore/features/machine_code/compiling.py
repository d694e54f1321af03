"""CUDA kernels compiled for any target, in a preemptible process of their own, and cached on disk.

One compiler runs at a time: what waited for it finds what it compiled. `run_preemptible` runs what takes seconds of the
CPU for a page, low in priority. It holds the lock of the CPU, and releases it as soon as a measurement asks; the
process is suspended until the measurement is over.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import psutil

import gpuexplore
from gpuexplore.backends import host
from gpuexplore.core import Device, Unsupported, decode, encode, format_seconds
from gpuexplore.hardware import cache_directory
from gpuexplore.jobs.locks import HostLock, compiler_lock, cpu_is_asked_for, device_lock
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.geometry import Block

SLICE_S = 0.05  # between two looks whether a measurement asks
GIVE_UP_S = 600.0  # it is suspended for so long at most
CPU_BUSY = "the CPU is being measured: try again in a minute"
LIMIT_S = 120.0
COMPILER_WAIT_S = 180.0
CPU_WAIT_S = 60.0
COMPILER_BUSY = "other kernels are being compiled: try again in a minute"
CPU = Device("cpu", "cpu", "the CPU that compiles")
PROCESS = "gpuexplore.features.machine_code.kernel_process"

Answer = dict[str, Any]  # {"compiled": a CompiledKernel} or {"reason": why not}


@dataclass(frozen=True, slots=True)
class Target:
    """A kernel and what it is compiled for; `block` None is the kernel's default, or that of an exhibit by its name."""

    operation: str
    implementation: str
    dtype: str
    compute_capability: str
    block: Block | None = None


def compiled_kernel(target: Target) -> CompiledKernel:
    """Return one kernel compiled for one target.

    Raises:
        Unsupported: it cannot be compiled for this target, and why.
    """
    (found,) = compiled_kernels([target])
    if isinstance(found, str):
        raise Unsupported(found)
    return found


def compiled_kernels(targets: Sequence[Target]) -> list[CompiledKernel | str]:
    """Return each target compiled, or the reason why it cannot be, in order; new ones in one process.

    Waits while another process compiles and while the CPU is measured, for minutes at most.
    """
    if not host.is_installed("numba", "numba_cuda"):
        return ["the compiler is not installed: pip install 'gpuexplore[cuda13]'"] * len(targets)
    known = _known(targets)
    if len(known) < len(set(targets)):
        known |= _compile_missing([target for target in dict.fromkeys(targets) if target not in known])
    return [_value(known[target]) for target in targets]


def known_kernels(targets: Sequence[Target]) -> list[CompiledKernel | str] | None:
    """Return each target as it was compiled before, in order; None where one of them has to be compiled."""
    known = _known(targets)
    return [_value(known[target]) for target in targets] if len(known) == len(set(targets)) else None


@contextmanager
def _held(lock: HostLock, timeout_s: float) -> Iterator[HostLock]:
    """Hold a lock of the host, after at most `timeout_s` seconds of waiting."""
    lock.acquire(timeout=timeout_s)
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def exclusive_cpu() -> Iterator[HostLock]:
    """Hold the locks of the compiler and the CPU, which a compiler would disturb, after minutes of waiting at most.

    Yields:
        The lock of the CPU, for `run_preemptible`.

    Raises:
        Unsupported: others keep one of them; the text says which.
    """
    with ExitStack() as stack:
        cpu = device_lock(CPU)
        for lock, wait_s, busy in (
            (compiler_lock(), COMPILER_WAIT_S, COMPILER_BUSY),
            (cpu, CPU_WAIT_S, CPU_BUSY),
        ):
            try:
                stack.enter_context(_held(lock, wait_s))
            except TimeoutError as error:
                raise Unsupported(busy) from error
        yield cpu


def _compile_missing(targets: Sequence[Target]) -> dict[Target, Answer]:
    """Compile what no other process has compiled by the time the compiler and the CPU are free."""
    try:
        with exclusive_cpu() as cpu:
            known = _known(targets)
            missing = [target for target in targets if target not in known]
            made = dict(zip(missing, _compile(missing, cpu), strict=True)) if missing else {}
            for target, answer in made.items():  # before the next one in line looks for it
                path = _path(target)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(answer), encoding="utf-8")
    except Unsupported as error:
        return {target: {"reason": str(error)} for target in targets} | _known(targets)
    return known | made


def failure_of(done: "subprocess.CompletedProcess[bytes]", program: str, work: str) -> str:
    """Return a sentence on why a helper process failed at its work; empty where it did not."""
    if done.returncode < 0:
        return f"{program} ended by signal {-done.returncode} on {work}"
    last = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
    return f"{program} failed: {last}" if done.returncode else ""


def _compile(targets: Sequence[Target], cpu: HostLock) -> list[Answer]:
    """Return what the process answered, in order; where it was stopped or failed, why for those that are missing."""
    request = json.dumps([asdict(target) for target in targets]).encode()
    try:
        done = run_preemptible([sys.executable, "-m", PROCESS, "compile"], input=request, timeout=LIMIT_S, cpu=cpu)
    except subprocess.TimeoutExpired as error:
        printed = error.output or b""
        reason = f"the compiler took longer than {format_seconds(LIMIT_S)}: try again when this machine is less busy"
    else:
        printed = done.stdout
        reason = failure_of(done, "the compiler", "these kernels")
    answers = [json.loads(line) for line in printed.splitlines(keepends=True) if line.endswith(b"\n")]
    return answers + [{"reason": reason}] * (len(targets) - len(answers))


def _value(answer: Answer) -> CompiledKernel | str:
    return answer["reason"] if "reason" in answer else decode(CompiledKernel, answer["compiled"])


def _known(targets: Sequence[Target]) -> dict[Target, Answer]:
    known: dict[Target, Answer] = {}
    for target in dict.fromkeys(targets):
        path = _path(target)
        with suppress(OSError, ValueError):  # never compiled, or cut off while it was written
            age_s = time.time() - path.stat().st_mtime
            answer = json.loads(path.read_text(encoding="utf-8"))
            if "compiled" in answer or 0 <= age_s < 60.0:  # a reason holds for those who waited, a kernel for good
                known[target] = answer
    return known


def _path(target: Target) -> Path:
    key = json.dumps([encode(target), fingerprint()])
    return cache_directory() / "kernels" / f"{sha256(key.encode()).hexdigest()[:24]}.json"


@cache
def fingerprint(sources: Sequence[str] = ("operations", "kernels")) -> list[str]:
    """Return what a compiled kernel depends on besides its target: sources, by default of kernels, and compiler."""
    root = Path(gpuexplore.__file__).parent
    files = [path for name in sources for path in sorted((root / name).rglob("*.py"))]
    return [
        sha256(b"".join(path.read_bytes() for path in files)).hexdigest(),
        *(
            f"{name} {host.version_of(name)}"
            for name in ("numba-cuda", "nvidia-nvjitlink", "nvidia-cuda-nvvm", "nvidia-nvvm", "llvmlite")
        ),
    ]


def run_preemptible(
    command: Sequence[str], *, input: bytes, timeout: float, cpu: HostLock
) -> "subprocess.CompletedProcess[bytes]":
    """Run a process to its end, and let measurements have the CPU meanwhile.

    Args:
        command: of the process.
        input: what it reads.
        timeout: seconds it may work; those that it is suspended do not count.
        cpu: the lock of the CPU, which the caller holds before and after.

    Raises:
        subprocess.TimeoutExpired: it worked longer; has what it printed by then.
        Unsupported: measurements did not let it go on for GIVE_UP_S.
    """
    worked_s = 0.0
    with tempfile.TemporaryFile() as given:  # Python 3.11 sends nothing on after a `communicate` that timed out
        given.write(input)
        given.seek(0)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        try:
            while True:
                began_s = time.monotonic()
                try:
                    printed, words = process.communicate(timeout=min(SLICE_S, max(timeout - worked_s, 0.0)))
                except subprocess.TimeoutExpired as error:
                    worked_s += time.monotonic() - began_s
                    if worked_s >= timeout:
                        raise subprocess.TimeoutExpired(command, timeout, output=error.output) from None
                    if cpu_is_asked_for():
                        _suspend(process, cpu)
                else:
                    return subprocess.CompletedProcess(command, process.returncode, printed, words)
        finally:
            if process.poll() is None:
                for each in _process_tree(process):
                    with suppress(psutil.NoSuchProcess):
                        each.kill()


def _suspend(process: "subprocess.Popen[bytes]", cpu: HostLock) -> None:
    """Suspend a process until no measurement asks for the CPU any more, and none has it."""
    tree = _process_tree(process)
    for each in tree:
        with suppress(psutil.NoSuchProcess):
            each.suspend()
    cpu.release()
    end_s = time.monotonic() + GIVE_UP_S
    try:
        while cpu_is_asked_for() and time.monotonic() < end_s:
            time.sleep(SLICE_S)
    finally:
        try:
            cpu.acquire(timeout=max(end_s - time.monotonic(), 0.0))
        except TimeoutError as error:
            raise Unsupported(CPU_BUSY) from error
    for each in tree:
        with suppress(psutil.NoSuchProcess):
            each.resume()


def _process_tree(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    try:
        first = psutil.Process(process.pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
